"""Functions of popops, poplin and poprand as JAX functions, each in one file."""

from ipujax.host.module_help import with_names as _with_names
from ipujax.ops.candidate_samplers import Candidates as Candidates
from ipujax.ops.candidate_samplers import (
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
)
from ipujax.ops.candidate_samplers import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from ipujax.ops.candidate_samplers import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from ipujax.ops.candidate_samplers import uniform_candidate_sampler as uniform_candidate_sampler
from ipujax.ops.embedding_lookup import embedding_lookup as embedding_lookup
from ipujax.ops.float8 import Float8 as Float8
from ipujax.ops.float8 import cast_from_float8 as cast_from_float8
from ipujax.ops.float8 import cast_to_float8 as cast_to_float8
from ipujax.ops.float8 import float8_matmul as float8_matmul
from ipujax.ops.histogram import fixed_width_bins as fixed_width_bins
from ipujax.ops.histogram import histogram as histogram
from ipujax.ops.histogram import histogram_update as histogram_update
from ipujax.ops.identity_loss import identity_loss as identity_loss
from ipujax.ops.multi_conv import Conv as Conv
from ipujax.ops.multi_conv import multi_conv as multi_conv
from ipujax.ops.nop import nop as nop
from ipujax.ops.normalise_image import normalise_image as normalise_image
from ipujax.ops.print_tensor import print_tensor as print_tensor
from ipujax.ops.random import random_bernoulli as random_bernoulli
from ipujax.ops.random import random_normal as random_normal
from ipujax.ops.random import random_truncated_normal as random_truncated_normal
from ipujax.ops.random import random_uniform as random_uniform
from ipujax.ops.remote_embedding import remote_embedding_lookup as remote_embedding_lookup
from ipujax.ops.remote_embedding import remote_embedding_update as remote_embedding_update
from ipujax.ops.sampled_losses import nce_loss as nce_loss
from ipujax.ops.sampled_losses import sampled_softmax_loss as sampled_softmax_loss
from ipujax.ops.sequence_slice import sequence_slice as sequence_slice
from ipujax.ops.sequence_slice import sequence_slice_pack as sequence_slice_pack
from ipujax.ops.sequence_slice import sequence_slice_unpack as sequence_slice_unpack
from ipujax.ops.serialized_matmul import serialized_matmul as serialized_matmul
from ipujax.ops.sort import sort as sort
from ipujax.ops.sort import sort_key_value as sort_key_value
from ipujax.ops.top_k import top_k as top_k

__doc__ = _with_names(globals())
