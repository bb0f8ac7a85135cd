"""Networks of infinite width as Gaussian processes (F3).

kernel          the covariance function of an infinitely wide perceptron
kernel_of       that of a model, where its limit exists
InfiniteWidth   the method: exact regression, Laplace for other likelihoods
"""

from credo.methods.function_space.infinite.kernels import Kernel as Kernel
from credo.methods.function_space.infinite.kernels import kernel as kernel
from credo.methods.function_space.infinite.limit import kernel_of as kernel_of
from credo.methods.function_space.infinite.method import InfiniteWidth as InfiniteWidth
from credo.methods.function_space.infinite.posterior import FunctionPosterior as FunctionPosterior
