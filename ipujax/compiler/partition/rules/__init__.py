"""How each op is made local. Importing this package registers all rules."""

from ipujax.compiler.partition.rules import control as control
from ipujax.compiler.partition.rules import devices as devices
from ipujax.compiler.partition.rules import dynamic as dynamic
from ipujax.compiler.partition.rules import elementwise as elementwise
from ipujax.compiler.partition.rules import gather as gather
from ipujax.compiler.partition.rules import products as products
from ipujax.compiler.partition.rules import scatter as scatter
from ipujax.compiler.partition.rules import shapes as shapes
from ipujax.compiler.partition.rules import windows as windows
