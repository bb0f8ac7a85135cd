"""Networks of infinite width as Gaussian processes (F3).

kernel          the covariance function of an infinitely wide perceptron
kernel_of       that of a model, where its limit exists
InfiniteWidth   the method: exact regression, Laplace for other likelihoods
"""

from credo.infinite.kernels import Kernel as Kernel
from credo.infinite.kernels import kernel as kernel
from credo.infinite.limit import kernel_of as kernel_of
from credo.infinite.method import InfiniteWidth as InfiniteWidth
from credo.infinite.posterior import FunctionPosterior as FunctionPosterior
