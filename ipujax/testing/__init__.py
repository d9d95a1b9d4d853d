"""Checks for tests, and failures of devices to test what recovers from them."""

from ipujax.testing.faults import FAULTS as FAULTS
from ipujax.testing.faults import inject as inject
from ipujax.testing.vertices import check_vertex as check_vertex
