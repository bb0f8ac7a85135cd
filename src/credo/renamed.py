"""Old names of modules: they import the module that moved, and warn once.

`SHORT` names are here to stay (`credo.metrics` is `credo.evaluation.metrics`); the others warn.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from credo.registry import load
from credo.runtime import stack_depth

SHORT = {
    "audit": "evaluation.audit",
    "baselines": "evaluation.baselines",
    "continual": "applications.continual",
    "diagnostics": "evaluation.diagnostics",
    "function_space": "methods.function_space",
    "infinite": "methods.function_space.infinite",
    "metrics": "evaluation.metrics",
    "recalibration": "evaluation.recalibration",
    "refinement": "methods.variational.refinement",
    "shallow": "methods.shallow",
}
PACKAGES = {
    "auto": "tables.auto",
    "comparison": "evaluation.comparison",
    "curvature": "methods.laplace.curvature",
    "interchange": "storage.export",
}
# Where the modules of a package went: folder → modules; a module that changed its name, too, as old=new.
MODULES = {
    ("", "core"): "programs",
    ("", "storage"): "locks archives codec=serialisation folders=atomic_write tensors",
    ("likelihoods", "core"): "special",
    ("", "storage.run_directory"): "artifacts=write runs=read",
    ("", "tables"): "recipes=model",
    ("training", "storage"): "sealed",
    ("data", "training"): "batches",
    ("data", "core"): "group_folds=folds",
    ("applications", "storage"): "records=atomic_write",
    ("applications", "tables"): "tables=effects",
    ("cli", "tables"): "job score doubts duration utility_file=utility_table train=fitting open=run",
    ("report", "evaluation.metrics"): "judge",
    ("report", "report"): "told=readout",
    ("auto", "tables.auto"): "pilot=pilots",
    ("data", "tables.read"): "tables=files binary_tables=binary excel_tables=excel text_tables=text parse number_forms",
    ("data", "tables.columns"): "kinds roles shown decode",
    ("data", "tables.rows"): "copies splits",
    ("data", "tables.encode"): "encoder learning columns targets config unseen scale far weighted",
    ("methods", "methods.points"): "map simulated_annealing optimise",
    ("methods", "methods.variational"): "bayes_by_backprop black_box_vi ivon score_function families vis",
    ("methods", "methods.laplace"): "last_layer feature_regression validation",
    ("methods", "methods.ensembles"): "deep_ensemble early_stopping swag mc_dropout dataflow",
    ("methods", "methods.mcmc"): "chains hamiltonian hmc nuts mala mclmc metropolis energy_variance ensemble_chains",
    ("methods", "methods.sgmcmc"): "sgld psgld sghmc sgnht sg_chain=chain sg_tuning=tuning",
    ("methods", "methods.population"): "smc smc_schedule importance_sampling pareto_smoothing prior_draws svgd widened",
    ("methods", "methods.function_space"): "function_space_vi",
    ("applications", "applications.forecasting"): "autoregression backtest forecast",
    ("applications", "applications.effects"): "bands dependence effort functions grid selection",
}


# Names inside modules that moved or changed: old module → name → new module and name.
NAMES = {
    "credo.applications": {"table_effects": "credo.tables.effects.table_effects"},
    "credo.applications.detection": {"Comparison": "credo.applications.detection.DetectorDifference"},
    "credo.applications.optimise": {"Categorical": "credo.applications.optimise.Category"},
    "credo.evaluation.diagnostics": {
        "Comparison": "credo.evaluation.diagnostics.ModelComparison",
        "Stacked": "credo.evaluation.diagnostics.StackedChains",
    },
}


def _new_modules() -> dict[str, str]:
    modules = SHORT | PACKAGES | {"data": "tables"}
    for (before, after), names in MODULES.items():
        for name in names.split():
            old, _, new = name.partition("=")
            modules[f"{before}.{old}" if before else old] = f"{after}.{new or old}"
    return {f"credo.{old}": f"credo.{new}" for old, new in modules.items()}


MOVED = _new_modules()


def new_name(name: str) -> str | None:
    """Where the module of an old name is now; None where it did not move.

    Example:
        >>> new_name("credo.metrics.bootstrap"), new_name("credo.methods.hmc"), new_name("credo.fit")
        ('credo.evaluation.metrics.bootstrap', 'credo.methods.mcmc.hmc', None)
    """
    if name in MOVED:
        return MOVED[name]
    package = name.rpartition(".")[0]
    above = new_name(package) if package.startswith("credo.") and package not in ("credo.data",) else None
    return None if above is None else above + name[len(package) :]


def first_name(name: str) -> str:
    """The name that a module had before it moved, which classes have in files saved then.

    Example:
        >>> first_name("credo.methods.mcmc.hmc"), first_name("credo.methods.function_space.kernels")
        ('credo.methods.hmc', 'credo.function_space.kernels')
    """
    package, below = name, ""
    if name in ("credo.methods.laplace.laplace", "credo.applications.effects.effects"):  # modules that became packages
        return name.rpartition(".")[0]
    while package:
        for old, new in MOVED.items():
            if new == package:
                return old + below
        package, _, last = package.rpartition(".")
        below = f".{last}{below}"
    return name


class Room(ModuleType):
    """A package under its old name, too. Importing a module below an old name makes it an attribute of the package,
    where a function of that name may stand by now; the function stays."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType) or not value.__name__.startswith("credo."):
            return super().__setattr__(name, value)
        moved = value.__name__ != f"{self.__name__}.{name}"
        if not moved and isinstance(vars(self).get(name, value), ModuleType):
            super().__setattr__(name, value)


class Renamed(MetaPathFinder, Loader):
    """Finds a module under its old name: the very same module, never a second copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A specification whose loader imports the module under its new name."""
        if not fullname.startswith("credo.") or new_name(fullname) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, with a warning unless the old name is one of the short ones."""
        new = new_name(spec.name)
        assert new is not None
        if spec.name.split(".")[1] not in SHORT:
            warnings.warn(f"{spec.name} is {new} now.", DeprecationWarning, stacklevel=stack_depth())
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        if type(module) is ModuleType:
            module.__class__ = Room
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again: the module gets its own specification back."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def old_name(module: str, name: str) -> Any:
    """The object of an old name in a module, with a warning; the `__getattr__` of that module calls it.

    Args:
        module: the old module.
        name: the name.
    """
    new = NAMES[module].get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{module}.{name} is {new} now.", DeprecationWarning, stacklevel=stack_depth())
    new_module, _, name = new.rpartition(".")
    return load(f"{new_module}:{name}")


def install() -> None:
    """Let old names be imported; `import credo` calls it."""
    if not any(isinstance(finder, Renamed) for finder in sys.meta_path):
        sys.meta_path.insert(0, Renamed())
