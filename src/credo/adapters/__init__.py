"""Adapters: a user's network, written in any library, as credo's three pure functions."""

from credo.adapters.density import from_density as from_density
from credo.adapters.equinox import EquinoxNetwork as EquinoxNetwork
from credo.adapters.equinox import from_equinox as from_equinox
from credo.adapters.functional import FunctionalNetwork as FunctionalNetwork
from credo.adapters.functional import from_functions as from_functions
from credo.adapters.linen import LinenNetwork as LinenNetwork
from credo.adapters.linen import from_linen as from_linen
from credo.adapters.nnx import NNXNetwork as NNXNetwork
from credo.adapters.nnx import from_flax as from_flax
