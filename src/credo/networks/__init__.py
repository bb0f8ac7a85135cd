"""Built-in networks: plain functions over dicts of arrays."""

from credo.networks.augment import Augmented as Augmented
from credo.networks.augment import augmented as augmented
from credo.networks.convnet import VGG as VGG
from credo.networks.convnet import LeNet as LeNet
from credo.networks.convnet import lenet as lenet
from credo.networks.convnet import vgg as vgg
from credo.networks.embedded import Embedded as Embedded
from credo.networks.embedded import embedded as embedded
from credo.networks.mlp import MLP as MLP
from credo.networks.mlp import mlp as mlp
from credo.networks.multi_head import DenseMultiHead as DenseMultiHead
from credo.networks.multi_head import MultiHead as MultiHead
from credo.networks.multi_head import multi_head as multi_head
from credo.networks.piecewise import Piecewise as Piecewise
from credo.networks.piecewise import piecewise as piecewise
from credo.networks.piecewise import piecewise_mlp as piecewise_mlp
from credo.networks.piecewise import quantile_knots as quantile_knots
from credo.networks.recurrent import Recurrent as Recurrent
from credo.networks.recurrent import gru as gru
from credo.networks.recurrent import lstm as lstm
from credo.networks.residual_mlp import ResidualMLP as ResidualMLP
from credo.networks.residual_mlp import residual_mlp as residual_mlp
from credo.networks.resnet import ResNet as ResNet
from credo.networks.resnet import resnet20 as resnet20
from credo.networks.shallow import Shallow as Shallow
from credo.networks.shallow import shallow as shallow
