"""Fits that nothing was fitted for, and the comparison of an exported predictor with `credo.predict`."""

import jax
import numpy as np

import credo

KEY = jax.random.key(7)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)).astype(np.float32)
F = np.sin(2 * X[:, 0]) + X[:, 1]
TARGETS = {
    "gaussian": F + 0.1 * RNG.normal(size=40),
    "student_t": F + 0.1 * RNG.standard_t(4, size=40),
    "heteroscedastic": F + 0.1 * RNG.normal(size=40),
    "heteroscedastic_t": F + 0.1 * RNG.normal(size=40),
    "bernoulli": (F > 0).astype(int),
    "categorical": np.digitize(F, [-0.5, 0.5]),
    "ordinal": np.digitize(F, [-0.5, 0.5]),
    "mislabelled": np.digitize(F, [-0.5, 0.5]),
    "poisson": RNG.poisson(np.exp(F)),
    "negative_binomial": RNG.poisson(np.exp(2 * F + 1)),
    "zero_inflated_poisson": RNG.poisson(np.exp(F + 1)) * (RNG.random(40) < 0.6),
    "zero_inflated_negative_binomial": RNG.poisson(np.exp(2 * F + 1)) * (RNG.random(40) < 0.6),
    "log_normal": np.exp(F + 0.1 * RNG.normal(size=40)),
    "gamma": np.exp(F) * RNG.gamma(4.0, 0.25, size=40),
}


def drawn(likelihood="gaussian", network=None, draws=7, weights=None, targets=None, inputs=X, spread=None, **options):
    """A fit with random numbers as its posterior, so that no training is compiled: stored draws, or with `spread` a
    mean-field Gaussian."""
    rng = np.random.default_rng(1)
    build = getattr(credo.likelihoods, likelihood)
    made = build(3, **options) if likelihood in ("categorical", "mislabelled", "ordinal") else build(**options)
    network = network or credo.networks.mlp([5])
    model = credo.Model(network, credo.priors.normal(1.0), made)
    targets = TARGETS[likelihood] if targets is None else targets
    prepared = made.prepare(targets)
    start = jax.eval_shape(lambda k: network.init(k, inputs, made.num_outputs(prepared)), jax.random.key(0))
    noise = jax.eval_shape(lambda: made.init(prepared, np.ones(len(prepared), np.float32)))
    params = {"network": start.params, "likelihood": noise, "prior": {}}

    def numbers(size, count):
        return jax.tree.map(lambda x: size * rng.normal(size=(1, *count, *x.shape)).astype(np.float32), params)

    if spread is None:
        posterior = credo.posteriors.Samples(numbers(0.7, (draws,)), {}, weights)
    else:
        own = {"network": numbers(0.7, ())["network"]}
        rest = {name: tree for name, tree in numbers(0.7, ()).items() if name != "network"}
        posterior = credo.posteriors.MeanField(own, jax.tree.map(lambda x: np.full_like(x, spread), own), rest, {})
    shapes = jax.tree.map(lambda x: x.shape[1:], inputs)
    dtypes = jax.tree.map(lambda x: str(x.dtype), inputs)
    return credo.Fit(posterior, model, {}, "finished", (), {}, {}, {}, np.shape(targets)[1:], shapes, dtypes)


def fitted(method, likelihood="gaussian", network=None):
    """A short fit; nothing here needs a good one."""
    model = credo.Model(
        network or credo.networks.mlp([5]), credo.priors.normal(1.0), getattr(credo.likelihoods, likelihood)()
    )
    return credo.fit(jax.random.key(0), model, (X, TARGETS[likelihood]), method, steps=20, progress=False)


def same(found, wanted, targets=None, rtol=1e-5, quantiles=True):
    """Every number of a prediction against `credo.predict`'s: to `rtol` of its size or, for locations, of the spread;
    entropies, which float32 knows to 1e-7 only, to 1e-6 nats; quantiles of counts exactly."""
    if wanted.kind == "classes":
        np.testing.assert_allclose(found.probs, wanted.probs, rtol=rtol, atol=1e-7)
        np.testing.assert_allclose(found.probs_std, wanted.probs_std, rtol=rtol, atol=1e-6)
        np.testing.assert_allclose(found.aleatoric, wanted.aleatoric, rtol=rtol, atol=1e-6)
        for name in ("entropy", "mutual_information"):
            np.testing.assert_allclose(getattr(found, name)(), getattr(wanted, name)(), rtol=rtol, atol=1e-6)
    else:
        spread = wanted.std
        assert (np.abs(found.mean - wanted.mean) <= rtol * (np.abs(wanted.mean) + spread)).all()
        for name in ("std", "aleatoric", "epistemic"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=rtol, atol=1e-12)
        for level in (0.05, 0.5, 0.95) if quantiles else ():
            one, other = found.quantile(level), wanted.quantile(level)
            assert (np.abs(one - other) <= (0 if wanted.kind == "counts" else rtol) * (np.abs(other) + spread)).all()
    if targets is not None:
        np.testing.assert_allclose(found.log_prob(targets), wanted.log_prob(targets), rtol=1e-5, atol=5e-5)
