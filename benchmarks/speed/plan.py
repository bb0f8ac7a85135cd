"""Which cases there are, who is compared with whom, and the bars. Needs no library at all."""

from dataclasses import dataclass, field
from typing import Any

STEPS, GRADIENTS, ESS, SECONDS = "steps/s", "gradients/s", "median ESS of f(x) / s", "s"


@dataclass(frozen=True)
class Case:
    """One fresh process: ``function`` of ``module`` with ``options``."""

    workload: str
    library: str
    variant: str
    unit: str
    module: str
    function: str
    options: dict[str, Any] = field(default_factory=dict)
    devices: int | None = None  # virtual CPU devices asked for; None leaves the library its default

    @property
    def key(self) -> str:
        """The name by which a case is chosen and recorded, such as ``mfvi/numpyro/AutoNormal``."""
        return "/".join(part for part in (self.workload, self.library, self.variant) if part)

    @property
    def is_peer(self) -> bool:
        """Whether the case needs the peers' interpreter."""
        return self.library != "credo"


def credo(workload: str, unit: str) -> Case:
    """The credo case of a workload: the function carries the workload's name."""
    return Case(workload, "credo", "", unit, "credo_cases", workload)


CASES: tuple[Case, ...] = (
    credo("mfvi", STEPS),
    Case("mfvi", "numpyro", "AutoDiagonalNormal", STEPS, "numpyro_svi", "mfvi", {"guide": "AutoDiagonalNormal"}),
    Case("mfvi", "numpyro", "AutoNormal", STEPS, "numpyro_svi", "mfvi", {"guide": "AutoNormal"}),
    Case("mfvi", "blackjax", "meanfield_vi", STEPS, "blackjax_cases", "mfvi"),
    Case("mfvi", "pyro", "defaults", STEPS, "pyro_cases", "mfvi", {"validate": True}),
    Case("mfvi", "pyro", "validation off", STEPS, "pyro_cases", "mfvi", {"validate": False}),
    credo("many_fits", STEPS),
    Case("many_fits", "numpyro", "one by one", STEPS, "numpyro_svi", "many_fits"),
    credo("hmc", GRADIENTS),
    Case("hmc", "numpyro", "vectorized", GRADIENTS, "numpyro_mcmc", "hmc", {"chain_method": "vectorized"}),
    Case("hmc", "numpyro", "parallel", GRADIENTS, "numpyro_mcmc", "hmc", {"chain_method": "parallel"}, devices=4),
    Case("hmc", "blackjax", "vmap", GRADIENTS, "blackjax_cases", "hmc"),
    credo("nuts", ESS),
    Case("nuts", "numpyro", "parallel", ESS, "numpyro_mcmc", "nuts", {"chain_method": "parallel"}, devices=4),
    Case("nuts", "numpyro", "vectorized", ESS, "numpyro_mcmc", "nuts", {"chain_method": "vectorized"}),
    credo("predict", SECONDS),
    credo("ensemble", STEPS),
    Case("ensemble", "torch", "one by one", STEPS, "torch_cases", "ensemble"),
    credo("sgld", STEPS),
    Case("sgld", "blackjax", "scan", STEPS, "blackjax_sgmcmc", "sgld"),
    Case("sgld", "posteriors", "", STEPS, "posteriors_cases", "sgmcmc", {"name": "sgld"}),
    credo("sghmc", STEPS),
    Case("sghmc", "blackjax", "scan", STEPS, "blackjax_sgmcmc", "sghmc"),
    Case("sghmc", "posteriors", "", STEPS, "posteriors_cases", "sgmcmc", {"name": "sghmc"}),
)


@dataclass(frozen=True)
class Comparison:
    """One line of the table: credo over the fastest of ``peers``, and the least ratio asked for.

    ``credo`` and ``peer`` say which number enters: ``value`` (compilation apart) or ``cold_value``
    (the first call as a user meets it, compilation included).
    """

    work: str
    against: str
    workload: str
    peers: tuple[str, ...]
    bar: float | None = None
    credo: str = "value"
    peer: str = "value"


MFVI, MANY = "MFVI 8-50-1, N=1000, M=32", "20 independent fits"
ONE_BY_ONE = ("many_fits/numpyro/one by one",)
COMPARISONS: tuple[Comparison, ...] = (
    Comparison(
        MFVI, "NumPyro SVI.run, faster guide", "mfvi",
        ("mfvi/numpyro/AutoDiagonalNormal", "mfvi/numpyro/AutoNormal"), 5.0,
    ),
    Comparison(MFVI, "BlackJAX meanfield_vi in a scan", "mfvi", ("mfvi/blackjax/meanfield_vi",), 1.2),
    Comparison(MFVI, "Pyro SVI.step", "mfvi", ("mfvi/pyro/defaults",), 60.0),
    Comparison(MFVI, "Pyro SVI.step, validation off", "mfvi", ("mfvi/pyro/validation off",)),
    Comparison(
        MANY, "NumPyro one by one, as it runs (compiles at every fit)", "many_fits", ONE_BY_ONE, 60.0,
        peer="cold_value",
    ),
    Comparison(MANY, "NumPyro one by one, compilation left out", "many_fits", ONE_BY_ONE),
    Comparison(
        MANY, "NumPyro one by one, compilation counted on both sides", "many_fits", ONE_BY_ONE,
        credo="cold_value", peer="cold_value",
    ),
    Comparison("HMC, 4 chains, N=1000", "NumPyro vectorised", "hmc", ("hmc/numpyro/vectorized",), 2.5),
    Comparison("HMC, 4 chains, N=1000", "NumPyro parallel", "hmc", ("hmc/numpyro/parallel",), 1.0),
    Comparison("HMC, 4 chains, N=1000", "BlackJAX hmc, vmap", "hmc", ("hmc/blackjax/vmap",), 2.0),
    Comparison("NUTS, 4 chains, 8-10-1", "NumPyro parallel", "nuts", ("nuts/numpyro/parallel",)),
    Comparison("NUTS, 4 chains, 8-10-1", "NumPyro vectorised", "nuts", ("nuts/numpyro/vectorized",)),
    Comparison(
        "Deep ensemble of 10, 8-50-50-2, M=32, 100 epochs", "ten torch fits one after another", "ensemble",
        ("ensemble/torch/one by one",), 30.0,
    ),
    Comparison("SGLD 784-100-10, M=500", "BlackJAX sgld in a scan", "sgld", ("sgld/blackjax/scan",), 1.0),
    Comparison("SGLD 784-100-10, M=500", "posteriors (torch)", "sgld", ("sgld/posteriors",), 1.5),
    Comparison("SGHMC 784-100-10, M=500", "BlackJAX sghmc in a scan", "sghmc", ("sghmc/blackjax/scan",), 1.0),
    Comparison("SGHMC 784-100-10, M=500", "posteriors (torch)", "sghmc", ("sghmc/posteriors",), 1.5),
)  # fmt: skip
PREDICT_RSS_MB = 1500.0


def select(only: str) -> list[Case]:
    """Cases whose key starts with one of the comma-separated prefixes; all when empty."""
    prefixes = [p.strip() for p in only.split(",") if p.strip()]
    return [c for c in CASES if not prefixes or any(c.key.startswith(p) for p in prefixes)]
