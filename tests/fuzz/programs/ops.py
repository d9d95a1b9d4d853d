"""Imports every file of ops, which registers them."""

from tests.fuzz.programs import control as control
from tests.fuzz.programs import elementwise as elementwise
from tests.fuzz.programs import reductions as reductions
from tests.fuzz.programs import sources as sources
from tests.fuzz.programs import views as views
