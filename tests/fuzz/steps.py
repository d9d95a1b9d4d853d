"""Imports every file of steps, which registers them."""

from tests.fuzz import contractions as contractions
from tests.fuzz import control as control
from tests.fuzz import elementwise as elementwise
from tests.fuzz import indexing as indexing
from tests.fuzz import reductions as reductions
from tests.fuzz import shapes as shapes
from tests.fuzz import storage as storage
