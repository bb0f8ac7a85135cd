"""Fits, checkpoints, runs and predictions in a process whose JAX is in double precision from the start."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from credo.registry import ROWS

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("nuts", "laplace", "bayes_by_backprop")
SCRIPT = """
    import contextlib, itertools, sys, tempfile
    from pathlib import Path
    import jax, numpy as np
    import jax.numpy as jnp
    assert jnp.zeros(()).dtype == np.float64
    import credo
    from credo.registry import find
    from oracles import linear

    problem = linear(num_rows=64, dims=2)
    data = jnp.asarray(problem.inputs, jnp.float64), jnp.asarray(problem.targets, jnp.float64)

    def same(one, other):
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))

    for name in sys.argv[1:]:
        row = find(name)
        method = row.load()(**row.quick_settings())
        options = {"steps": 20 * row.thin, "thin": row.thin}
        whole = credo.fit(jax.random.key(0), problem.model(), data, method, **options)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            every = credo.Checkpoint(place / "state", every=0.0)
            arguments = jax.random.key(0), problem.model(), data, method
            events = itertools.count()

            def stop(event):
                if next(events) == 1:  # the first block has been saved
                    raise InterruptedError

            with contextlib.suppress(InterruptedError):
                credo.fit(*arguments, checkpoint=every, callbacks=[stop], **options)
            resumed = credo.fit(*arguments, checkpoint=every, **options)
            same(whole.posterior, resumed.posterior)
            resumed.save(place / "run")
            again = credo.load(place / "run")
            means = [credo.predict(jax.random.key(1), f, data[0]).mean for f in (whole, again)]
            same(*means)
            assert np.isfinite(means[0]).all()
        if name in ("map", "laplace", "bayes_by_backprop"):
            start = jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float64), whole.point().params)
            warm = credo.fit(jax.random.key(2), problem.model(), data, method, start=start, **options)
            assert warm.outcome == "finished"
        print(name)
"""


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param(tuple(row.name for row in ROWS), marks=pytest.mark.full)], ids=["some", "all"]
)
def test_a_process_in_double_precision(names):
    """Killed and resumed, saved and loaded, and started at double weights: the same numbers, and all of them finite."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *names], capture_output=True, text=True, timeout=1800,
        env=os.environ | {"JAX_ENABLE_X64": "1", "PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-3000:]
    assert tuple(found.stdout.split()) == names
