"""The border to ArviZ: imported when first needed, in a way that cannot fail, and the same on versions 0 and 1."""

import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np


@cache
def arviz() -> Any:
    """The package. Importing it takes longer than most fits, so nothing else in credo imports it."""
    with quiet(), _private_stamp():
        import arviz as package

    return package


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """ArviZ warns in its own words; what it found is said in sentences of the result instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _private_stamp() -> Iterator[None]:
    """Give ArviZ a cache folder of its own while it is imported.

    Late 0.x versions write into the user's cache on which day they last warned of version 1. All processes write
    through one temporary name, so the import fails where two do so at once, and where the cache cannot be written.
    """
    import platformdirs

    usual = platformdirs.user_cache_dir
    with tempfile.TemporaryDirectory(prefix="credo-arviz-") as folder:

        def cache_dir(appname: str | None = None, *args: Any, **options: Any) -> str:
            return folder if appname == "arviz" else usual(appname, *args, **options)

        platformdirs.user_cache_dir = cache_dir
        try:
            yield
        finally:
            platformdirs.user_cache_dir = usual


def modern() -> bool:
    """Is it version 1, whose data are xarray's DataTree instead of InferenceData?"""
    return int(arviz().__version__.split(".")[0]) >= 1


def assemble(groups: dict[str, Any], dims: dict[str, list[str]], attributes: dict[str, str]) -> Any:
    """Groups of arrays [chain, draw, …] (observed and constant data without) as DataTree or InferenceData.

    Args:
        groups: group → name → array.
        dims: name → axes after chain and draw; the log likelihood has the first alone.
        attributes: of the posterior.
    """
    az = arviz()
    present = {name for values in groups.values() for name in values}
    dims = {name: axes for name, axes in dims.items() if name in present}
    with quiet():
        if modern():
            return az.from_dict(groups, dims=dims, attrs={"posterior": attributes})
        data = az.from_dict(**groups, dims=dims, posterior_attrs=attributes)
        if any(len(dims.get(name, ())) > 1 for name in groups.get("log_likelihood", ())):
            # One number for each row, though a row has several entries.
            rows = {name: dims[name][:1] for name in groups["log_likelihood"] if name in dims}
            data.log_likelihood = az.from_dict(log_likelihood=groups["log_likelihood"], dims=rows).log_likelihood
    return data


def rhat(chains: np.ndarray) -> np.ndarray:
    """R-hat of chains [chain, draw, …], rank-normalised and split."""
    return _each(arviz().rhat, chains)


def ess(chains: np.ndarray) -> np.ndarray:
    """Bulk effective sample size of chains [chain, draw, …]."""
    return _each(arviz().ess, chains)


def _each(function: Any, chains: np.ndarray) -> np.ndarray:
    data = arviz().convert_to_dataset({"x": np.asarray(chains, np.float64)})
    return np.asarray(function(data)["x"])
