"""Built-in networks: plain functions over dicts of arrays."""

from credo.networks.mlp import MLP as MLP
from credo.networks.mlp import mlp as mlp
from credo.networks.multi_head import DenseMultiHead as DenseMultiHead
from credo.networks.multi_head import MultiHead as MultiHead
from credo.networks.multi_head import multi_head as multi_head
from credo.networks.shallow import Shallow as Shallow
from credo.networks.shallow import shallow as shallow
