"""What `optimisation.py` minimises: three functions with a known minimum, and a search for hyper-parameters."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import credo
from credo.applications.optimise import Float, Int, Space

Point = dict[str, Any]
A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
SIDE = 32.768  # half the side of Ackley's box


def branin(point: Point) -> float:
    """Branin's function. Dixon and Szegö (1978), Towards global optimization 2."""
    x, y = point["x0"], point["x1"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(point: Point) -> float:
    """Hartmann's function of six settings. Dixon and Szegö (1978)."""
    x = np.array([point[f"x{i}"] for i in range(6)])
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(A * (x - P) ** 2).sum(1)))


def ackley10(centre: np.ndarray, point: Point) -> float:
    """Ackley's function of ten settings, moved: −20 e^(−0.2 √mean z²) − e^(mean cos 2πz) + 20 + e with z = x − centre.

    Ackley (1987), A connectionist machine for genetic hillclimbing. Its minimum would lie in the middle of the box,
    which some methods find without looking.
    """
    z = np.array([point[f"x{i}"] for i in range(10)]) - centre
    bowl = -20 * math.exp(-0.2 * math.sqrt((z**2).mean()))
    return bowl - math.exp(np.cos(2 * math.pi * z).mean()) + 20 + math.e


def svr(point: Point) -> float:
    """Root mean squared error by cross-validation of a support vector machine on the diabetes table."""
    import pandas as pd
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from sklearn.svm import SVR

    table = pd.read_csv(Path(credo.__file__).parent / "tables" / "bundled" / "diabetes.csv")
    y = table.pop("progression") if "progression" in table else table.pop(table.columns[-1])
    machine = SVR(C=point["C"], epsilon=point["epsilon"], gamma=point["gamma"])
    model = make_pipeline(PolynomialFeatures(point["degree"]), StandardScaler(), machine)
    folds = KFold(5, shuffle=True, random_state=0)
    x = pd.get_dummies(table).to_numpy(float)
    return float(-cross_val_score(model, x, y, cv=folds, scoring="neg_root_mean_squared_error").mean())


class Problem(NamedTuple):
    """What is searched, for how long, and the smallest value; None where nobody knows it."""

    space: Space
    least: float | None
    evaluations: int


def cube(num: int, low: float, high: float) -> Space:
    return Space({f"x{i}": Float(low, high) for i in range(num)})


MACHINE = Space(
    {
        "C": Float(1e-2, 1e4, log=True),
        "epsilon": Float(1e-2, 1e2, log=True),
        "gamma": Float(1e-5, 1, log=True),
        "degree": Int(1, 2),
    }
)
PROBLEMS = {
    "branin": Problem(Space({"x0": Float(-5, 10), "x1": Float(0, 15)}), 0.39788735773, 40),
    "hartmann6": Problem(cube(6, 0, 1), -3.32236801, 60),
    "ackley10": Problem(cube(10, -SIDE, SIDE), 0.0, 100),
    "svr": Problem(MACHINE, None, 40),
}


def objective(name: str, seed: int) -> Callable[[Point], float]:
    """The function to minimise. The minimum of Ackley's lies at random within the middle 60 % of the box."""
    if name == "ackley10":
        return partial(ackley10, np.random.default_rng([seed, 10]).uniform(-0.6 * SIDE, 0.6 * SIDE, 10))
    return {"branin": branin, "hartmann6": hartmann6, "svr": svr}[name]
