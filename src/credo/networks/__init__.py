"""Built-in networks: plain functions over dicts of arrays."""

from credo.networks.mlp import MLP as MLP
from credo.networks.mlp import mlp as mlp
from credo.networks.shallow import Shallow as Shallow
from credo.networks.shallow import shallow as shallow
