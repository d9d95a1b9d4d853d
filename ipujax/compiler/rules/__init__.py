"""One rule per op: StableHLO op -> Poplar calls. Importing this package registers all of them."""

from ipujax.compiler.rules import collectives as collectives
from ipujax.compiler.rules import constant as constant
from ipujax.compiler.rules import control_flow as control_flow
from ipujax.compiler.rules import convolution as convolution
from ipujax.compiler.rules import custom_call as custom_call
from ipujax.compiler.rules import dot_general as dot_general
from ipujax.compiler.rules import elementwise as elementwise
from ipujax.compiler.rules import fft as fft
from ipujax.compiler.rules import gather as gather
from ipujax.compiler.rules import linalg as linalg
from ipujax.compiler.rules import reduce as reduce
from ipujax.compiler.rules import rng as rng
from ipujax.compiler.rules import scatter as scatter
from ipujax.compiler.rules import shape as shape
from ipujax.compiler.rules import slice as slice
from ipujax.compiler.rules import sort as sort
