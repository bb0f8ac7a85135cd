"""References for problems without a closed form: long NUTS chains, run once by a command and stored as small arrays.

    credo audit --remake --problems gap --out folder

A reference is written only where R-hat of every function value is below 1.01 over at least 8 chains from dispersed
starts (draws of the prior).
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.mixture import Flat
from credo.core.model import Model
from credo.core.tree import field_values
from credo.errors import ArtifactError, Refusal
from credo.evaluation.audit.truth import Truth, function_values, truth_of_draws
from credo.evaluation.diagnostics import arviz_border
from credo.methods.mcmc.nuts import NUTS
from credo.training.many import fit_many

FOLDER = Path(__file__).parent / "references"
CHAINS, WARMUP, DRAWS, THIN, SEED = 8, 2000, 3000, 2, 2026
LARGEST_RHAT = 1.01
ARRAYS = ("mean", "std", "quantiles", "grid", "log_density", "cdf", "effective")


def load_reference(name: str, inputs: np.ndarray, targets: np.ndarray, places: np.ndarray) -> Truth:
    """The stored truth of a problem; a sentence where it belongs to other data."""
    from safetensors import safe_open

    path = FOLDER / f"{name}.safetensors"
    again = f"`{_command(name)}` makes it."
    if not path.is_file():
        raise ArtifactError(f"The reference of the audit problem {name!r} is not there: {again}")
    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["about"])
        arrays = {key: file.get_tensor(key).astype(np.float64) for key in file.keys()}  # noqa: SIM118
    if about["digest"] != digest(inputs, targets, places):
        raise ArtifactError(f"The reference of the audit problem {name!r} was made for other data: {again}")
    source = (
        f"NUTS: {about['chains']} chains of {about['draws']:,} draws (one of {about['thin']} is kept) from draws of "
        f"the prior; R-hat of functions at most {about['rhat']:.4f}."
    )
    return Truth(kind=about["kind"], source=source, **{key: arrays.get(key) for key in ARRAYS})  # type: ignore[arg-type]


def _command(name: str) -> str:
    return f"credo audit --remake --problems {name}"


def digest(*arrays: np.ndarray) -> str:
    """A fingerprint of the data of a problem."""
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.round(np.asarray(array, np.float64), 5).tobytes())
    return text.hexdigest()[:16]


def _keep(key: jax.Array, model: Model, posterior: Any, places: jax.Array) -> Any:
    draws = posterior.outputs(key, model, places, None)
    return draws.values[0], jax.tree.map(lambda x: x[0], draws.likelihood)


def make_reference(problem: Any, chains: int = CHAINS, draws: int = DRAWS, seed: int = SEED) -> tuple[Truth, dict]:
    """Run the chains of a problem: its truth, and what there is to say about them; Refusal where they disagree."""
    model: Model = problem.model.inferring()
    key_start, key_run = jax.random.split(jax.random.key(seed))
    y = model.likelihood.prepare(problem.targets)
    one = Batch(problem.inputs, y, np.ones(len(y), np.float32), np.float32(len(y)))
    start = jax.vmap(lambda k: model.sample_prior(k, one))(jax.random.split(key_start, chains))
    batch = jax.tree.map(lambda x: np.broadcast_to(x, (chains, *np.shape(x))), one)
    places = np.broadcast_to(problem.places, (chains, *problem.places.shape))
    method = NUTS(chains=1, warmup=WARMUP, target_acceptance=0.95)
    outputs, noise = fit_many(
        key_run, method, model, batch, _keep, extra=places, start=start, steps=draws * THIN, thin=THIN
    )  # fmt: skip
    flat = jax.tree.map(lambda x: jnp.asarray(x.reshape(-1, *x.shape[2:])), (outputs, noise))
    pooled = Flat(flat[0], flat[1], jnp.full(chains * draws, -np.log(chains * draws)))
    values, _ = function_values(model.likelihood, pooled)
    tracked = values.reshape(chains, draws, *values.shape[1:])
    rhat, ess = float(arviz_border.rhat(tracked).max()), arviz_border.ess(tracked)
    if not rhat < LARGEST_RHAT:
        raise Refusal(f"The chains of {problem.name} disagree (R-hat {rhat:.4f}): no reference is written.")
    truth = truth_of_draws(model.likelihood, pooled, ess, "")
    about = {
        "command": _command(problem.name), "seed": seed, "chains": chains, "draws": draws,
        "thin": THIN, "warmup": WARMUP, "rhat": rhat, "effective": float(ess.min()), "kind": truth.kind,
        "jax": jax.__version__, "digest": digest(problem.inputs, problem.targets, problem.places),
    }  # fmt: skip
    return truth, about


def write_reference(problem: Any, folder: Path = FOLDER, **options: Any) -> dict:
    """Make a reference and store it; returns what is said about it."""
    from safetensors.numpy import save_file

    truth, about = make_reference(problem, **options)
    arrays = {key: field_values(truth)[key] for key in ARRAYS}
    single = {key: np.ascontiguousarray(a, np.float32) for key, a in arrays.items() if a is not None}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(single, folder / f"{problem.name}.safetensors", {"about": json.dumps(about)})
    return about
