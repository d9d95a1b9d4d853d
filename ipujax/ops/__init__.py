"""Functions of popops, poplin and poprand as JAX functions: each is one file."""

from ipujax.ops.float8 import Float8 as Float8
from ipujax.ops.float8 import cast_from_float8 as cast_from_float8
from ipujax.ops.float8 import cast_to_float8 as cast_to_float8
from ipujax.ops.float8 import float8_matmul as float8_matmul
from ipujax.ops.identity_loss import identity_loss as identity_loss
from ipujax.ops.multi_conv import Conv as Conv
from ipujax.ops.multi_conv import multi_conv as multi_conv
from ipujax.ops.nop import nop as nop
from ipujax.ops.print_tensor import print_tensor as print_tensor
from ipujax.ops.random import random_bernoulli as random_bernoulli
from ipujax.ops.random import random_normal as random_normal
from ipujax.ops.random import random_truncated_normal as random_truncated_normal
from ipujax.ops.random import random_uniform as random_uniform
from ipujax.ops.sequence_slice import sequence_slice as sequence_slice
from ipujax.ops.sequence_slice import sequence_slice_pack as sequence_slice_pack
from ipujax.ops.sequence_slice import sequence_slice_unpack as sequence_slice_unpack
from ipujax.ops.serialized_matmul import serialized_matmul as serialized_matmul
from ipujax.ops.sort import sort as sort
from ipujax.ops.sort import sort_key_value as sort_key_value
from ipujax.ops.top_k import top_k as top_k
