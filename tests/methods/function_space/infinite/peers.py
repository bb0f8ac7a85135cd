"""The kernel as scikit-learn wants it."""

import numpy as np
from sklearn.gaussian_process.kernels import Kernel


class Wide(Kernel):
    """A credo kernel with fixed numbers."""

    def __init__(self, function=None):
        self.function = function

    def __call__(self, X, Y=None, eval_gradient=False):
        found = self.function(np.asarray(X, np.float64), None if Y is None else np.asarray(Y, np.float64))
        return (found, np.empty((*found.shape, 0))) if eval_gradient else found

    def diag(self, X):
        return self.function.diagonal(np.asarray(X, np.float64))

    def is_stationary(self):
        return False
