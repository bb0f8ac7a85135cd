"""Bayesian neural networks that say how much they know."""

from typing import TYPE_CHECKING, Any

from credo.renamed import SHORT as _SHORT
from credo.renamed import install as _install
from credo.renamed import new_name as _new_name
from credo.runtime import prepare as _prepare

if TYPE_CHECKING:
    from credo import adapters as adapters
    from credo import applications as applications
    from credo import likelihoods as likelihoods
    from credo import methods as methods
    from credo import networks as networks
    from credo import posteriors as posteriors
    from credo import priors as priors
    from credo import tables as tables
    from credo.adapters import from_density as from_density
    from credo.adapters import from_equinox as from_equinox
    from credo.adapters import from_flax as from_flax
    from credo.adapters import from_functions as from_functions
    from credo.adapters import from_linen as from_linen
    from credo.applications import continual as continual
    from credo.applications import decide as decide
    from credo.core.model import Model as Model
    from credo.core.predict import predict as predict
    from credo.core.predictive import Predictive as Predictive
    from credo.core.prior_predictive import prior_predictive as prior_predictive
    from credo.errors import ConvergenceWarning as ConvergenceWarning
    from credo.evaluation import audit as audit
    from credo.evaluation import baselines as baselines
    from credo.evaluation import diagnostics as diagnostics
    from credo.evaluation import metrics as metrics
    from credo.evaluation import recalibration as recalibration
    from credo.evaluation.comparison import compare as compare
    from credo.methods import function_space as function_space
    from credo.methods import shallow as shallow
    from credo.methods.combine import refine as refine
    from credo.methods.combine import replicate as replicate
    from credo.methods.combine import subset as subset
    from credo.methods.combine import then as then
    from credo.methods.function_space import infinite as infinite
    from credo.methods.variational import refinement as refinement
    from credo.storage.export import export as export
    from credo.storage.export import load_exported as load_exported
    from credo.storage.run_directory.write import load as load
    from credo.training.checkpoint import Checkpoint as Checkpoint
    from credo.training.fit import Fit as Fit
    from credo.training.fit import fit as fit
    from credo.training.stacked import stacked as stacked

__version__ = "0.1.0"

_prepare()
_install()

# Names are loaded when first used, so that `credo --help` never pays for JAX.
_MODULES = {name: f"credo.{name}" for name in (
    "adapters", "applications", "estimators", "likelihoods", "methods", "networks", "posteriors", "priors", "tables",
)} | {short: f"credo.{name}" for short, name in _SHORT.items()}  # fmt: skip
_NAMES = {
    "Checkpoint": "credo.training.checkpoint",
    "ConvergenceWarning": "credo.errors",
    "Fit": "credo.training.fit",
    "Model": "credo.core.model",
    "Predictive": "credo.core.predictive",
    "compare": "credo.evaluation.comparison",
    "decide": "credo.applications",
    "export": "credo.storage.export",
    "fit": "credo.training.fit",
    "from_density": "credo.adapters",
    "from_equinox": "credo.adapters",
    "from_flax": "credo.adapters",
    "from_functions": "credo.adapters",
    "from_linen": "credo.adapters",
    "load": "credo.storage.run_directory.write",
    "load_exported": "credo.storage.export",
    "predict": "credo.core.predict",
    "prior_predictive": "credo.core.prior_predictive",
    "refine": "credo.methods.combine",
    "replicate": "credo.methods.combine",
    "stacked": "credo.training.stacked",
    "subset": "credo.methods.combine",
    "then": "credo.methods.combine",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _NAMES and name not in _MODULES and _new_name(f"credo.{name}") is None:
        raise AttributeError(f"module 'credo' has no attribute {name!r}")
    from credo.registry import load
    from credo.runtime import configure

    configure()
    if name in _NAMES:
        return load(f"{_NAMES[name]}:{name}")
    return importlib.import_module(_MODULES.get(name, f"credo.{name}"))


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_NAMES, "__version__"])
