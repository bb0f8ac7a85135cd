"""Geweke's test of the samplers of shallow networks (E1, E2), and of the two wrong orders that it must catch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.tree import struct
from credo.methods.shallow import prior_view
from credo.methods.shallow.gibbs import Gibbs
from credo.methods.shallow.marginal import moments, solve
from credo.methods.shallow.reversible_jump import ReversibleJump
from joint import bound, from_chain, from_prior, z_scores

INPUTS = np.linspace(-1.5, 1.5, 6)[:, None]
TWO = np.column_stack([INPUTS, INPUTS[[3, 0, 5, 1, 4, 2]]])
PLACES = {1: INPUTS, 2: TWO}
CHAINS, STEPS, THIN = 8, 2000, 4


@functools.cache
def model(num_nodes=2, beside="intercept"):
    return credo.Model(
        credo.networks.shallow(num_nodes, beside),
        credo.priors.node_hierarchy(hidden_scale=1.5, freedom=6.0, output_scale=(4.0, 4.0)),
        credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(4.0, 1.0)),
    )


@functools.cache
def prior_features(problem, sample, inputs):
    with jax.enable_x64(True):
        places = jnp.asarray(PLACES[inputs])
        return jax.jit(lambda k: from_prior(k, problem, places, 100_000, sample))(jax.random.key(99))


def scores(method, seed=0, problem=None, sample=None, inputs=1):
    problem = problem or model()
    with jax.enable_x64(True):
        places = jnp.asarray(PLACES[inputs])
        run = jax.jit(lambda k: from_chain(k, problem, method, places, CHAINS, STEPS, THIN, sample))
        return z_scores(run(jax.random.key(seed)), prior_features(problem, sample, inputs))


STALE = []  # what the wrong order carries from before the nodes moved to after it, within one trace


@struct
class BetaFirst(Gibbs):
    """The wrong order: coefficients, then the nodes without them, then what depends on both."""

    def update_nodes(self, variates, nodes, rows, view, state):
        design = nodes.design(rows.inputs, state.gamma).T
        STALE.append(solve(moments(design, rows.targets, rows.precision), view.coefficients))
        return super().update_nodes(variates, nodes, rows, view, state)

    def draw_coefficients(self, variates, solved, columns):
        return super().draw_coefficients(variates, STALE.pop(), columns)


@pytest.mark.full  # the next test but one has the same sampler, and reversible jump the same prior
def test_gibbs_leaves_the_prior_as_it_is():
    z = scores(Gibbs(warmup=0, passes=1))
    assert np.abs(z).max() < bound(z)


@functools.cache
def laplace_nodes():
    """Nodes under a prior that is not normal: candidates are whole draws of it instead of normals that are scaled."""
    prior = credo.priors.by_path({"hidden*": credo.priors.laplace(3.0), "*": credo.priors.normal(1.0)})
    return credo.Model(credo.networks.shallow(2, "intercept"), prior, credo.likelihoods.gaussian(0.1))


@struct
class SameCandidates(Gibbs):
    """Wrong: every pass of a sweep proposes the same draws of the prior, the last pass what the first accepted."""

    def fresh_nodes(self, variates, view):
        return jnp.broadcast_to(super().fresh_nodes(variates, view)[:1], variates["walk"].shape)


def test_passes_with_fresh_nodes_leave_a_prior_that_is_not_normal_as_it_is():
    z = scores(Gibbs(warmup=0, passes=3, fresh=0.5), problem=laplace_nodes())
    assert np.abs(z).max() < bound(z)


@pytest.mark.full
def test_the_same_candidates_in_every_pass_are_caught():
    z = scores(SameCandidates(warmup=0, passes=10, fresh=0.9), problem=laplace_nodes())
    assert np.abs(z).max() > 2 * bound(z)


@pytest.mark.full
def test_coefficients_before_nodes_are_caught():
    z = scores(BetaFirst(warmup=0, passes=1))
    assert np.abs(z).max() > 2 * bound(z)


@pytest.mark.full
def test_a_ratio_without_the_prior_is_caught(monkeypatch):
    monkeypatch.setattr(prior_view.PriorView, "log_node", lambda self, gamma, j, node: jnp.zeros(()))
    z = scores(Gibbs(warmup=0, passes=1, fresh=0.0))
    assert np.abs(z).max() > 2 * bound(z)


@functools.cache
def jump_prior(problem, more):
    """Draws of the prior of `ReversibleJump`: a number of nodes, then everything else; no node, no coefficient."""
    nodes = problem.network.num_nodes
    batch = Batch(jnp.asarray(INPUTS), jnp.zeros((len(INPUTS), 1)), jnp.ones(len(INPUTS)), jnp.asarray(6.0))

    def sample(key):
        key_number, key_rest = jax.random.split(key)
        number = jax.random.categorical(key_number, jnp.log(more) * jnp.arange(nodes + 1))
        params = problem.sample_prior(key_rest, batch).params
        output = params["network"]["output"]["kernel"] * (jnp.arange(nodes) < number)
        return params | {"network": params["network"] | {"output": {"kernel": output}}}

    return sample


@pytest.mark.parametrize(
    "prior",
    ["node_hierarchy"] + [pytest.param(name, marks=pytest.mark.full) for name in ("hierarchical", "laplace nodes")],
)
def test_reversible_jump_leaves_the_prior_as_it_is(prior):
    problem = laplace_nodes() if prior == "laplace nodes" else model(3, "linear")
    if prior == "hierarchical":
        own = credo.priors.hierarchical(credo.priors.log_normal(1.0, 0.5))
        problem = credo.Model(problem.network, own, credo.likelihoods.gaussian("inferred"))
    z = scores(ReversibleJump(warmup=0, more=0.7), problem=problem, sample=jump_prior(problem, 0.7))
    assert np.abs(z).max() < bound(z)


@struct
class Forgetful(ReversibleJump):
    """Wrong: the prior of the number of nodes is left out of the ratio."""

    def _jump(self, variates, nodes, rows, view, place):
        return ReversibleJump(more=1.0, jumps=self.jumps)._jump(variates, nodes, rows, view, place)


@pytest.mark.full
def test_a_jump_without_the_prior_of_its_number_is_caught():
    problem = model(3, "linear")
    z = scores(Forgetful(warmup=0, more=0.7), problem=problem, sample=jump_prior(problem, 0.7))
    assert np.abs(z).max() > 2 * bound(z)


@functools.cache
def selected_prior(problem, share):
    """Draws of the prior where inputs are used with this probability; the weights of others are 0."""
    batch = Batch(jnp.asarray(TWO), jnp.zeros((len(TWO), 1)), jnp.ones(len(TWO)), jnp.asarray(6.0))

    def sample(key):
        key_used, key_rest = jax.random.split(key)
        params = problem.sample_prior(key_rest, batch).params
        used = jax.random.bernoulli(key_used, share, (TWO.shape[1],))
        network = params["network"]
        for layer in ("hidden", "linear"):
            network = network | {layer: network[layer] | {"kernel": network[layer]["kernel"] * used}}
        return params | {"network": network}

    return sample


@pytest.mark.full
@pytest.mark.parametrize("method", [Gibbs(warmup=0, passes=1, select_inputs=True, input_share=0.4)], ids=["gibbs"])
def test_selection_of_inputs_leaves_the_prior_as_it_is(method):
    problem = model(2, "linear")
    z = scores(method, problem=problem, sample=selected_prior(problem, 0.4), inputs=2)
    assert np.abs(z).max() < bound(z)


@pytest.mark.full
def test_two_classes_leave_the_prior_as_it_is():
    problem = model(2, "linear")
    problem = credo.Model(problem.network, problem.prior, credo.likelihoods.bernoulli())
    z = scores(Gibbs(warmup=0, passes=1), problem=problem)
    assert np.abs(z).max() < bound(z)


@pytest.mark.full
def test_both_samplers_with_fresh_keys():
    """Five runs of each with keys that nobody chose; all ten pass with probability above 1 − 1e-3."""
    problem = model(3, "linear")
    for seed in np.random.SeedSequence().generate_state(5):
        z = scores(Gibbs(warmup=0, passes=1), int(seed))
        assert np.abs(z).max() < bound(z), seed
        z = scores(ReversibleJump(warmup=0, more=0.7), int(seed), problem, jump_prior(problem, 0.7))
        assert np.abs(z).max() < bound(z), seed
