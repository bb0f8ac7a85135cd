"""Random forests and Gaussian processes of scikit-learn."""

import numpy as np

from .answers import Answer, normal, probabilities, spread
from .split import Split, numbers

MOST_SCALES = 100  # columns up to which each has a length-scale of its own


def forest(split: Split) -> Answer:
    """Breiman (2001); the noise of numbers is that of the residuals of rows that a tree has not drawn."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    x, new = numbers(split)
    options = {"random_state": split.seed, "n_jobs": -1}
    if not split.regression:
        model = RandomForestClassifier(**options).fit(x, split.y)
        return probabilities(model.predict_proba(new), model.classes_, split)
    model = RandomForestRegressor(oob_score=True, **options).fit(x, split.y)
    return normal(model.predict(new), spread(split.y - model.oob_prediction_), split)


def gp(split: Split) -> Answer:
    """A Gaussian process with a Matérn-5/2 kernel, a length-scale for each column, and white noise; the rest are
    scikit-learn's defaults."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    x, new = numbers(split)
    centre, width = x.mean(0), x.std(0)
    width = np.where(width > 0, width, 1.0)
    x, new = (x - centre) / width, (new - centre) / width
    scales = np.full(x.shape[1], x.shape[1] ** 0.5) if x.shape[1] <= MOST_SCALES else x.shape[1] ** 0.5
    kernel = ConstantKernel() * Matern(scales, (1e-2, 1e4), nu=2.5) + WhiteKernel(0.1, (1e-8, 1e2))
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=split.seed).fit(x, split.y)
    return normal(*model.predict(new, return_std=True), split)
