"""Checks for tests, and device failures to test recovery from them."""

from ipujax.testing.faults import FAULTS as FAULTS
from ipujax.testing.faults import inject as inject
from ipujax.testing.vertices import check_vertex as check_vertex
