"""Bayesian neural networks that say how much they know."""

from typing import TYPE_CHECKING, Any

from credo.runtime import prepare as _prepare

if TYPE_CHECKING:
    from credo import adapters as adapters
    from credo import applications as applications
    from credo import audit as audit
    from credo import baselines as baselines
    from credo import continual as continual
    from credo import diagnostics as diagnostics
    from credo import function_space as function_space
    from credo import infinite as infinite
    from credo import interchange as interchange
    from credo import likelihoods as likelihoods
    from credo import methods as methods
    from credo import metrics as metrics
    from credo import networks as networks
    from credo import posteriors as posteriors
    from credo import priors as priors
    from credo import recalibration as recalibration
    from credo import refinement as refinement
    from credo import shallow as shallow
    from credo.adapters import from_density as from_density
    from credo.adapters import from_equinox as from_equinox
    from credo.adapters import from_flax as from_flax
    from credo.adapters import from_functions as from_functions
    from credo.adapters import from_linen as from_linen
    from credo.applications import decide as decide
    from credo.artifacts import load as load
    from credo.comparison import compare as compare
    from credo.core.model import Model as Model
    from credo.core.predict import predict as predict
    from credo.core.predictive import Predictive as Predictive
    from credo.core.prior_predictive import prior_predictive as prior_predictive
    from credo.errors import ConvergenceWarning as ConvergenceWarning
    from credo.interchange import export as export
    from credo.interchange import load_exported as load_exported
    from credo.methods.combine import refine as refine
    from credo.methods.combine import replicate as replicate
    from credo.methods.combine import subset as subset
    from credo.methods.combine import then as then
    from credo.training.checkpoint import Checkpoint as Checkpoint
    from credo.training.fit import Fit as Fit
    from credo.training.fit import fit as fit

__version__ = "0.1.0"

_prepare()

# Names are loaded when first used, so that `credo --help` never pays for JAX.
_MODULES = (
    "adapters",
    "applications",
    "audit",
    "baselines",
    "continual",
    "diagnostics",
    "estimators",
    "function_space",
    "infinite",
    "interchange",
    "likelihoods",
    "methods",
    "metrics",
    "networks",
    "posteriors",
    "priors",
    "recalibration",
    "refinement",
    "shallow",
)
_NAMES = {
    "Checkpoint": "credo.training.checkpoint",
    "ConvergenceWarning": "credo.errors",
    "Fit": "credo.training.fit",
    "Model": "credo.core.model",
    "Predictive": "credo.core.predictive",
    "compare": "credo.comparison",
    "decide": "credo.applications",
    "export": "credo.interchange",
    "fit": "credo.training.fit",
    "from_density": "credo.adapters",
    "from_equinox": "credo.adapters",
    "from_flax": "credo.adapters",
    "from_functions": "credo.adapters",
    "from_linen": "credo.adapters",
    "load": "credo.artifacts",
    "load_exported": "credo.interchange",
    "predict": "credo.core.predict",
    "prior_predictive": "credo.core.prior_predictive",
    "refine": "credo.methods.combine",
    "replicate": "credo.methods.combine",
    "subset": "credo.methods.combine",
    "then": "credo.methods.combine",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _NAMES and name not in _MODULES:
        raise AttributeError(f"module 'credo' has no attribute {name!r}")
    from credo.runtime import configure

    configure()
    if name in _MODULES:
        return importlib.import_module(f"credo.{name}")
    return getattr(importlib.import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_NAMES, "__version__"])
