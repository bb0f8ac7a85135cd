"""The NumPy predictor equals the library: every likelihood × every functional, at ordinary rows and at extreme ones."""

import functools

import jax
import numpy as np
import pytest

import credo
from credo.evaluation.recalibration.unseen import with_settings
from credo.registry import LIKELIHOODS
from credo.storage.export.portable.prediction import Prediction
from exported import KEY, TARGETS

LEVELS = (0.001, 0.05, 0.5, 0.6, 0.95, 0.999)
DRAWS = 5
CORRECTED = "corrected "  # by what rows that training did not see said
CLASSES = {"bernoulli": 2, "categorical": 3, "mislabelled": 3, "ordinal": 3}
OUTPUTS = {"categorical": 3, "mislabelled": 3, "heteroscedastic": 2, "heteroscedastic_t": 2, "log_normal": 2}
OUTPUTS |= {"zero_inflated_poisson": 2, "zero_inflated_negative_binomial": 2}


def rows():
    """f of five draws at 12 rows, one draw or all of them far out: [row, draw]."""
    alone = [[0.0, 0.5, -0.3, 0.2, far] for far in (1.0, 20.0, 29.0, 1e5, -1e5)]
    return np.array([
        *alone, [0.0] * DRAWS, [12.0, 12.5, 11.0, 12.1, 12.2], [3.0, 4.0, 3.5, 3.1, 3.2], [5.3, 5.4, 5.2, 5.1, 5.5],
        [-40.0] * DRAWS, [40.0, 30.0, 41.0, 30.5, 29.5], [1e4, -1e4, 0.0, 3.0, -3.0],
    ])  # fmt: skip


def fitted(name, weights=(0.1, 0.3, 0.2, 0.15, 0.25)):
    """A fit of a linear network whose inputs choose the row: f_k(x) = W_k x with x one-hot. Its draws are the last
    ones, as many as there are weights."""
    likelihood, values = name.removeprefix(CORRECTED), rows()
    number, width = len(values), OUTPUTS.get(likelihood, 1)
    build = getattr(credo.likelihoods, likelihood)
    made = build(3) if likelihood in ("categorical", "mislabelled", "ordinal") else build()
    network = credo.networks.mlp([])
    inputs = np.eye(number, dtype=np.float32)
    targets = made.prepare(TARGETS[likelihood][:number])
    start = jax.eval_shape(lambda k: network.init(k, inputs, width), jax.random.key(0))
    noise = jax.eval_shape(lambda: made.init(targets, np.ones(number, np.float32)))
    kernel = np.zeros((1, DRAWS, width, number), np.float32)
    kernel[0, :, 0] = values.T
    if width == 2:
        wide = 1 if likelihood.startswith("zero") else 5
        kernel[0, :, 1] = np.clip(values.T[::-1], -wide, wide)  # log-widths, or logits of zeros
    assert start.params["output"]["kernel"].shape == kernel.shape[2:]
    own = {"network": {"output": {"kernel": kernel, "bias": np.zeros((1, DRAWS, width), np.float32)}}, "prior": {}}
    rng = np.random.default_rng(0)
    own["likelihood"] = jax.tree.map(lambda x: rng.normal(size=(1, DRAWS, *x.shape)).astype(np.float32), noise)
    if name != likelihood:
        count = CLASSES.get(likelihood, 1)
        heated = {"heat": 1.7, "share": 0.2, "frequencies": [1 / count] * count}
        made = with_settings(made, heated if likelihood in CLASSES else {"factor": 1.6})
    model = credo.Model(network, credo.priors.normal(1.0), made)
    own = jax.tree.map(lambda x: x[:, -len(weights) :], own)
    posterior = credo.posteriors.Samples(own, {}, np.log(np.array([weights], np.float32)))
    return credo.Fit(posterior, model, {}, "finished", (), {}, {}, {}, (), (number,), "float32"), inputs, targets


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    @functools.cache
    def made(likelihood):
        fit, inputs, targets = fitted(likelihood)
        folder = tmp_path_factory.mktemp(likelihood) / "p"
        credo.export(fit, folder, "numpy", key=KEY)
        found = credo.load_exported(folder).predict(inputs)
        assert isinstance(found, Prediction)
        return found, credo.predict(KEY, fit, inputs), targets.reshape(len(inputs))

    return made


OF_CLASSES = (
    "probs",
    "probs_std",
    "mean",
    "variance",
    "std",
    "aleatoric",
    "epistemic",
    "entropy",
    "mutual_information",
)
OF_NUMBERS = ("mean", "variance", "std", "aleatoric", "epistemic", "cdf")
NAMES = [*TARGETS, *(CORRECTED + name for name in TARGETS)]
PAIRS = [
    (name, what)
    for name in NAMES
    for what in (*(OF_CLASSES if name.removeprefix(CORRECTED) in CLASSES else OF_NUMBERS), "log_prob")
]
TOLERANCES = {"cdf": 3e-6, "log_prob": 5e-5}
SMALL_SHAPES = {("corrected zero_inflated_negative_binomial", "cdf"): 1e-5}  # JAX's incomplete beta function, r ≈ 0.1
COUNTS = [name for name in NAMES if name.endswith(("poisson", "binomial"))]
REAL = [name for name in NAMES if name not in COUNTS and name.removeprefix(CORRECTED) not in CLASSES]


def answer(prediction, what, targets):
    """A functional of a prediction, the library's or the exported one's."""
    found = getattr(prediction, what)
    if what in ("cdf", "log_prob"):
        others = {"classes": (0,), "counts": (0, 2, 40, 30_000, 1e9), "real": (0, 2, -40, 30_000, -1e9)}[
            prediction.kind
        ]
        if prediction.kind == "real" and targets.min() > 0:
            others = np.abs(others)  # positive numbers have no density elsewhere
        return np.stack([found(y) for y in (targets, *(np.full_like(targets, y) for y in others))])
    return found() if callable(found) else found


def test_every_likelihood_is_compared():
    """A likelihood that exports know joins the tests below with its targets."""
    assert {row.name for row in LIKELIHOODS.values() if row.numpy} == set(TARGETS)


@pytest.mark.parametrize(("likelihood", "what"), PAIRS)
def test_every_functional(both, likelihood, what):
    """To 2·10⁻⁵ of the value; the library's entropies and distribution functions are those of single precision."""
    found, wanted, targets = both(likelihood)
    found, wanted = answer(found, what, targets), answer(wanted, what, targets)
    assert np.isfinite(found).all()
    tolerance = SMALL_SHAPES.get((likelihood, what), TOLERANCES.get(what, 1e-6))
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=tolerance)


@pytest.mark.parametrize("likelihood", REAL)
@pytest.mark.parametrize("level", LEVELS)
def test_quantiles_of_numbers(both, likelihood, level):
    """F(Q(p)) = p with F in double precision, also where one draw is 10⁵ away from the others. The library is right to
    3·10⁻⁶ within four steps of single precision around Q."""
    found, wanted, _ = both(likelihood)
    np.testing.assert_allclose(found.cdf(found.quantile(level)), level, atol=1e-8)
    place = wanted.quantile(level)
    step = 4 * np.spacing(np.abs(place).astype(np.float32)).astype(float) + 1e-7
    assert (found.cdf(place - step) < level + 3e-6).all()
    assert (found.cdf(place + step) > level - 3e-6).all()


@pytest.mark.parametrize("likelihood", COUNTS)
@pytest.mark.parametrize("level", LEVELS)
def test_quantiles_of_counts(both, likelihood, level):
    """The same whole numbers up to 10⁵, beyond which rates of single precision differ by 10⁻⁶ of themselves."""
    found, wanted, _ = both(likelihood)
    found, wanted = found.quantile(level), wanted.quantile(level)
    np.testing.assert_array_equal(found[wanted < 1e5], wanted[wanted < 1e5])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("likelihood", COUNTS)
def test_one_draw_that_extrapolates_leaves_the_median_of_counts_alone(both, likelihood):
    """Five draws, one with output 10⁵: the median is that of the other four."""
    found, wanted, _ = both(likelihood)
    assert found.quantile(0.5)[3] == wanted.quantile(0.5)[3] <= 2


@pytest.mark.parametrize("weights", [(1.0,), (1e-30, 1.0)])
@pytest.mark.parametrize("name", ["student_t", "poisson", "mislabelled"])
def test_one_draw_and_draws_of_no_weight(name, weights, tmp_path):
    """Moments, densities and interval ends as in the tests above; 1e-30 is a weight that no sum can see."""
    fit, inputs, targets = fitted(name, weights)
    credo.export(fit, tmp_path / "p", "numpy", key=KEY)
    found, wanted = credo.load_exported(tmp_path / "p").predict(inputs), credo.predict(KEY, fit, inputs)
    for what in ("mean", "std", "epistemic", "log_prob"):
        one, other = (answer(x, what, targets.reshape(len(inputs))) for x in (found, wanted))
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=TOLERANCES.get(what, 1e-6))
    if name != "mislabelled":
        np.testing.assert_allclose(found.interval(0.9), wanted.interval(0.9), rtol=2e-5, atol=1e-5)
