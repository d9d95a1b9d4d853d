"""JAX on Graphcore IPUs. `import jax` is enough: JAX finds the plugin by its entry point."""

from ipujax import optim as optim
from ipujax.api.blocks import block as block
from ipujax.api.collectives import all_gather as all_gather
from ipujax.api.collectives import all_to_all as all_to_all
from ipujax.api.collectives import assume_equal_across_replicas as assume_equal_across_replicas
from ipujax.api.collectives import cross_replica_mean as cross_replica_mean
from ipujax.api.collectives import cross_replica_sum as cross_replica_sum
from ipujax.api.memories import memory_stats as memory_stats
from ipujax.api.phases import ParallelPhasedExecution as ParallelPhasedExecution
from ipujax.api.phases import Phase as Phase
from ipujax.api.phases import SerialPhasedExecution as SerialPhasedExecution
from ipujax.api.pipeline import accumulate as accumulate
from ipujax.api.pipeline import pipeline as pipeline
from ipujax.api.plan import Plan as Plan
from ipujax.api.plan_stages import plan_stages as plan_stages
from ipujax.api.pmap import pmap as pmap
from ipujax.api.precision import precision as precision
from ipujax.api.reduce_scatter import reduce_scatter as reduce_scatter
from ipujax.api.replica_grouping import ReplicaGrouping as ReplicaGrouping
from ipujax.api.replica_grouping import replica_grouping as replica_grouping
from ipujax.api.replicas import replication_factor as replication_factor
from ipujax.api.replicas import replication_index as replication_index
from ipujax.api.schedule_chart import schedule_chart as schedule_chart
from ipujax.api.stages import shard as shard
from ipujax.api.stages import stage as stage
from ipujax.api.strategies import AutoStage as AutoStage
from ipujax.api.strategies import PipelinedExecution as PipelinedExecution
from ipujax.api.strategies import ShardedExecution as ShardedExecution
from ipujax.api.strategies import Stage as Stage
from ipujax.api.verify import VerifyReport as VerifyReport
from ipujax.api.verify import verify as verify
from ipujax.config import IPUConfig as IPUConfig
from ipujax.errors import ConfigError as ConfigError
from ipujax.errors import InternalError as InternalError
from ipujax.errors import IpuError as IpuError
from ipujax.errors import MismatchError as MismatchError
from ipujax.errors import NestingError as NestingError
from ipujax.errors import OracleError as OracleError
from ipujax.errors import OutOfMemoryError as OutOfMemoryError
from ipujax.errors import PipelineError as PipelineError
from ipujax.errors import PlacementError as PlacementError
from ipujax.errors import ReplicationError as ReplicationError
from ipujax.errors import UnsupportedDtypeError as UnsupportedDtypeError
from ipujax.errors import UnsupportedOpError as UnsupportedOpError

__version__ = "0.1.0"
