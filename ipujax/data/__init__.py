"""Data for feeds: loaders, batch sizes, files, data made on the device, and benchmarks."""

from ipujax.data.batch_sizes import BatchSizes as BatchSizes
from ipujax.data.benchmark import dataset_benchmark as dataset_benchmark
from ipujax.data.benchmark import infeed_benchmark as infeed_benchmark
from ipujax.data.buffered import Buffered as Buffered
from ipujax.data.dataset_files import DatasetFile as DatasetFile
from ipujax.data.dataset_files import export_dataset as export_dataset
from ipujax.data.input_files import export_inputs as export_inputs
from ipujax.data.input_files import load_inputs as load_inputs
from ipujax.data.loader import Loader as Loader
from ipujax.data.synthetic import Synthetic as Synthetic
from ipujax.host.module_help import with_names as _with_names

__doc__ = _with_names(globals())
