"""All generators: importing this registers them."""

from tests.fuzz.library import activations as activations
from tests.fuzz.library import lookups as lookups
from tests.fuzz.library import losses as losses
from tests.fuzz.library import norms as norms
from tests.fuzz.library import products as products
from tests.fuzz.library import random_numbers as random_numbers
from tests.fuzz.library import recurrent as recurrent
from tests.fuzz.library import sampled as sampled
from tests.fuzz.library import sorts as sorts
from tests.fuzz.library.case import GENERATORS as GENERATORS
