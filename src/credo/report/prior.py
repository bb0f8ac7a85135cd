"""Functions that a prior expects, along one input."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.core.prior_predictive import PriorPredictive
from credo.errors import InputError
from credo.report.style import INK, MODEL, NOISE, WIDE, axes, legend, plain

MOST_LINES = 12
BANDS = ((0.05, 0.95, 0.22, "90 % of functions"), (0.25, 0.75, 0.42, "50 % of functions"))


def prior_functions(
    prior: PriorPredictive,
    inputs: Any,
    *,
    output: int = 0,
    input_name: str = "input",
    target_name: str = "target",
    lines: int = MOST_LINES,
) -> Figure:
    """Functions drawn from a prior along its only input: some as lines, all as bands, and what may be observed.

    Args:
        prior: what `credo.prior_predictive` gave at `inputs`.
        inputs: one column [n, 1] or [n].
        output: which of several outputs, or which class.
        input_name, target_name: for the axes.
        lines: how many functions are drawn as lines.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.report import prior_functions
        >>> model = credo.Model(
        ...     credo.networks.mlp([50], "erf"), credo.priors.fan_in_normal(3.0), credo.likelihoods.gaussian(noise=0.2)
        ... )
        >>> x = np.linspace(-3, 3, 100)
        >>> figure = prior_functions(credo.prior_predictive(jax.random.key(0), model, x[:, None]), x)
        >>> figure.axes[0].get_xlabel()
        'input'
    """
    x = np.asarray(inputs, float)
    if x.ndim == 2 and x.shape[1] == 1:
        x = x[:, 0]
    if x.shape != (len(prior),):
        raise InputError(
            f"Functions are drawn along one input at {len(prior)} places, got shape {list(np.shape(inputs))}."
        )
    order = np.argsort(x, kind="stable")
    several = prior.functions.ndim == 3
    x, values = x[order], (prior.functions[..., output] if several else prior.functions)[:, order]
    classes = prior.kind == "classes"
    name = plain(f"probability of class {output}" if classes else target_name)
    figure, area = axes(f"What the prior expects: {len(values):,} functions", plain(input_name), name, WIDE)
    ends = np.quantile(values, [level for band in BANDS for level in band[:2]], axis=0)
    if not classes:
        low, high = ((end[:, output] if several else end)[order] for end in prior.interval(0.9))
        # Drawn around the band of functions, so that the two colours never mix.
        label = "90 % of observations"
        area.fill_between(x, np.minimum(low, ends[0]), ends[0], color=NOISE, alpha=0.38, lw=0, label=label)
        area.fill_between(x, ends[1], np.maximum(high, ends[1]), color=NOISE, alpha=0.38, lw=0)
    for (*_, alpha, label), low, high in zip(BANDS, ends[::2], ends[1::2]):
        area.fill_between(x, low, high, color=MODEL, alpha=alpha, lw=0, label=label)
    for i, line in enumerate(values[: max(0, lines)]):
        area.plot(x, line, color=INK, lw=0.8, alpha=0.75, label="single functions" if not i else "_")
    if x[0] < x[-1]:
        area.set_xlim(x[0], x[-1])
    legend(figure, 4)
    return figure
