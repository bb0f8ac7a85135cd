"""Built-in networks: plain functions over dicts of arrays."""

from credo.networks.mlp import MLP as MLP
from credo.networks.mlp import mlp as mlp
