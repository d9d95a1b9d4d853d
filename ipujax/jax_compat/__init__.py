"""All uses of private parts of jax and jaxlib, by theme; no other package of ipujax has any.

Each function is one dependence, with its reason. All were tested with the series in
`versions.TESTED`; any other series is refused at load. Private modules are imported inside the
functions, so that `check_versions` raises its error before an import fails.
"""

from ipujax.jax_compat.call_primitives import abstract as abstract
from ipujax.jax_compat.call_primitives import batched as batched
from ipujax.jax_compat.call_primitives import call_primitive as call_primitive
from ipujax.jax_compat.call_primitives import call_with_label as call_with_label
from ipujax.jax_compat.call_primitives import hide_frames as hide_frames
from ipujax.jax_compat.call_primitives import set_dead_code_rule as set_dead_code_rule
from ipujax.jax_compat.call_primitives import trace_avals as trace_avals
from ipujax.jax_compat.call_primitives import trace_call as trace_call
from ipujax.jax_compat.call_primitives import traced_again as traced_again
from ipujax.jax_compat.call_primitives import varying_like as varying_like
from ipujax.jax_compat.call_primitives import varying_over as varying_over
from ipujax.jax_compat.call_primitives import with_outputs as with_outputs
from ipujax.jax_compat.call_primitives import without_dead as without_dead
from ipujax.jax_compat.call_primitives import zeros_of as zeros_of
from ipujax.jax_compat.callbacks import CALLBACK_TARGET as CALLBACK_TARGET
from ipujax.jax_compat.callbacks import PARTITIONED as PARTITIONED
from ipujax.jax_compat.callbacks import allow_callbacks as allow_callbacks
from ipujax.jax_compat.callbacks import (
    allow_effects_in_checkpoints as allow_effects_in_checkpoints,
)
from ipujax.jax_compat.callbacks import forget_failed_effects as forget_failed_effects
from ipujax.jax_compat.callbacks import io_effects as io_effects
from ipujax.jax_compat.callbacks import lower_to_callback as lower_to_callback
from ipujax.jax_compat.compilation import estimate_costs_by_compiling as estimate_costs_by_compiling
from ipujax.jax_compat.compilation import (
    outlive_interrupted_compiles as outlive_interrupted_compiles,
)
from ipujax.jax_compat.compilation import show_text_on_demand as show_text_on_demand
from ipujax.jax_compat.compilation_cache import allow_persistent_cache as allow_persistent_cache
from ipujax.jax_compat.compilation_cache import replace_cache_entries as replace_cache_entries
from ipujax.jax_compat.complex_functions import COMPLEX_PREFIX as COMPLEX_PREFIX
from ipujax.jax_compat.complex_functions import lower_complex_functions as lower_complex_functions
from ipujax.jax_compat.custom_partitioning import (
    CUSTOM_PARTITIONING_TARGET as CUSTOM_PARTITIONING_TARGET,
)
from ipujax.jax_compat.custom_partitioning import Sharded as Sharded
from ipujax.jax_compat.custom_partitioning import partition_custom as partition_custom
from ipujax.jax_compat.equations import as_traced as as_traced
from ipujax.jax_compat.equations import bind as bind
from ipujax.jax_compat.equations import evaluate as evaluate
from ipujax.jax_compat.equations import frames_of as frames_of
from ipujax.jax_compat.equations import holds as holds
from ipujax.jax_compat.equations import inlined as inlined
from ipujax.jax_compat.equations import inner_equations as inner_equations
from ipujax.jax_compat.equations import inner_jaxprs as inner_jaxprs
from ipujax.jax_compat.equations import is_literal as is_literal
from ipujax.jax_compat.equations import is_ordered as is_ordered
from ipujax.jax_compat.equations import line_of as line_of
from ipujax.jax_compat.equations import line_of_error as line_of_error
from ipujax.jax_compat.equations import long_locations as long_locations
from ipujax.jax_compat.equations import metadata_here as metadata_here
from ipujax.jax_compat.equations import metadata_of as metadata_of
from ipujax.jax_compat.equations import name_of as name_of
from ipujax.jax_compat.equations import short_locations as short_locations
from ipujax.jax_compat.equations import value_of as value_of
from ipujax.jax_compat.executables import kept_arguments as kept_arguments
from ipujax.jax_compat.executables import load_executable as load_executable
from ipujax.jax_compat.executables import needs_this_process as needs_this_process
from ipujax.jax_compat.executables import num_devices as num_devices
from ipujax.jax_compat.exports import abstract_mesh as abstract_mesh
from ipujax.jax_compat.exports import in_shardings_of as in_shardings_of
from ipujax.jax_compat.exports import mesh_of_exported as mesh_of_exported
from ipujax.jax_compat.exports import mesh_over as mesh_over
from ipujax.jax_compat.exports import module_of_exported as module_of_exported
from ipujax.jax_compat.exports import out_shardings_of as out_shardings_of
from ipujax.jax_compat.exports import with_automatic_axes as with_automatic_axes
from ipujax.jax_compat.foreign_calls import platforms_of_target as platforms_of_target
from ipujax.jax_compat.interpreting import interpreting as interpreting
from ipujax.jax_compat.lowerings import keep_erfc as keep_erfc
from ipujax.jax_compat.lowerings import lower_broadcast as lower_broadcast
from ipujax.jax_compat.lowerings import lower_checks as lower_checks
from ipujax.jax_compat.lowerings import lower_linalg_as_on_cpu as lower_linalg_as_on_cpu
from ipujax.jax_compat.lowerings import lower_named_platforms_only as lower_named_platforms_only
from ipujax.jax_compat.lowerings import (
    lower_narrow_special_functions as lower_narrow_special_functions,
)
from ipujax.jax_compat.lowerings import lower_reduce_scatter as lower_reduce_scatter
from ipujax.jax_compat.mapped_axes import abstract_result as abstract_result
from ipujax.jax_compat.mapped_axes import (
    allow_vmap_of_grouped_all_to_all as allow_vmap_of_grouped_all_to_all,
)
from ipujax.jax_compat.mapped_axes import mapped_axes as mapped_axes
from ipujax.jax_compat.mapped_axes import num_sums as num_sums
from ipujax.jax_compat.mapped_axes import varying_axes as varying_axes
from ipujax.jax_compat.modules import artifact_of as artifact_of
from ipujax.jax_compat.modules import deserialize_artifact as deserialize_artifact
from ipujax.jax_compat.modules import is_undecodable as is_undecodable
from ipujax.jax_compat.modules import lent_context as lent_context
from ipujax.jax_compat.modules import num_devices_of as num_devices_of
from ipujax.jax_compat.modules import parse_module as parse_module
from ipujax.jax_compat.modules import refine_shapes as refine_shapes
from ipujax.jax_compat.modules import run_passes as run_passes
from ipujax.jax_compat.modules import serialize_artifact as serialize_artifact
from ipujax.jax_compat.modules import stablehlo_version as stablehlo_version
from ipujax.jax_compat.pallas import lower_pallas_interpreted as lower_pallas_interpreted
from ipujax.jax_compat.platform import PLATFORM as PLATFORM
from ipujax.jax_compat.platform import allow_donation as allow_donation
from ipujax.jax_compat.platform import backends_exist as backends_exist
from ipujax.jax_compat.platform import is_registered as is_registered
from ipujax.jax_compat.platform import logs_compiles as logs_compiles
from ipujax.jax_compat.platform import other_platform as other_platform
from ipujax.jax_compat.platform import outlive_views as outlive_views
from ipujax.jax_compat.platform import register_platform as register_platform
from ipujax.jax_compat.platform import register_refusal as register_refusal
from ipujax.jax_compat.ports import Port as Port
from ipujax.jax_compat.ports import call_port as call_port
from ipujax.jax_compat.processes import coordinator as coordinator
from ipujax.jax_compat.processes import coordinator_address as coordinator_address
from ipujax.jax_compat.processes import num_processes as num_processes
from ipujax.jax_compat.processes import rank as rank
from ipujax.jax_compat.programs import evaluate_module as evaluate_module
from ipujax.jax_compat.programs import exported_like as exported_like
from ipujax.jax_compat.programs import load_program as load_program
from ipujax.jax_compat.programs import read_compile_options as read_compile_options
from ipujax.jax_compat.programs import write_compile_options as write_compile_options
from ipujax.jax_compat.shardings import INSPECT_TARGET as INSPECT_TARGET
from ipujax.jax_compat.shardings import allow_inspect_sharding as allow_inspect_sharding
from ipujax.jax_compat.shardings import block_bytes as block_bytes
from ipujax.jax_compat.shardings import blocks_of as blocks_of
from ipujax.jax_compat.shardings import hlo_sharding as hlo_sharding
from ipujax.jax_compat.shardings import is_unreduced as is_unreduced
from ipujax.jax_compat.shardings import sharding_bytes as sharding_bytes
from ipujax.jax_compat.sparse import lower_spsolve as lower_spsolve
from ipujax.jax_compat.topologies import compile_for_topologies as compile_for_topologies
from ipujax.jax_compat.transfers import allow_dlpack as allow_dlpack
from ipujax.jax_compat.transfers import follow_transfer_guard as follow_transfer_guard
from ipujax.jax_compat.transfers import lower_device_put as lower_device_put
from ipujax.jax_compat.transfers import lower_to_memory as lower_to_memory
from ipujax.jax_compat.transfers import put_arrays as put_arrays
from ipujax.jax_compat.versions import TESTED as TESTED
from ipujax.jax_compat.versions import check_versions as check_versions
from ipujax.jax_compat.watched_calls import WatchedCall as WatchedCall
from ipujax.jax_compat.watched_calls import watch_calls as watch_calls
