"""What a step of IVON costs beside a step of MAP with Adam, on whatever device JAX has.

    python -m benchmarks.ivon [--width 700] [--batch-size 512] [--steps 3000] [--passes 3]

A 784-WIDTH-WIDTH-10 classifier (1 million weights at the default width) on random images; each fit runs once to
compile, then timed; passes alternate between the methods, and the ratio is taken within a pass.
"""

import argparse
import statistics
from typing import Any

import jax
import numpy as np

import credo


def run(method: Any, model: Any, data: Any, seed: int, options: argparse.Namespace) -> float:
    """Microseconds of a step, compilation left out."""
    fit = credo.fit(
        jax.random.key(seed), model, data, method, steps=options.steps, batch_size=options.batch_size, progress=False
    )
    jax.block_until_ready([x for x in jax.tree.leaves(fit.posterior) if isinstance(x, jax.Array)])
    assert np.isfinite(fit.trace["loss"]).all()
    return 1e6 * fit.timing["seconds_run"] / options.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=700)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    data = rng.random((options.rows, 784), dtype=np.float32), rng.integers(0, 10, options.rows)
    network = credo.networks.mlp([options.width, options.width])
    model = credo.Model(network, credo.priors.normal(0.1), credo.likelihoods.categorical(10))
    methods = {"map": credo.methods.MAP(learning_rate=1e-3), "ivon": credo.methods.IVON()}
    for method in methods.values():
        run(method, model, data, 0, options)
    ratios = []
    for i in range(options.passes):
        micros = {name: run(method, model, data, i + 1, options) for name, method in methods.items()}
        ratios.append(micros["ivon"] / micros["map"])
        print(f"pass {i}: map {micros['map']:.0f} µs, ivon {micros['ivon']:.0f} µs a step, ratio {ratios[-1]:.2f}")
    size = sum(a * b + b for a, b in ((784, options.width), (options.width, options.width), (options.width, 10)))
    print(f"{jax.devices()[0].device_kind}, {size:,} weights: median ratio {statistics.median(ratios):.2f} (bar 1.3)")


if __name__ == "__main__":
    main()
