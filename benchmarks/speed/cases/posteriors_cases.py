"""The library posteriors as its users write it: a log posterior, a transform, and a Python loop."""

import posteriors
import torch
from cases import problems
from cases.measure import Measured, require_finite, steady
from cases.problems import Sizes

Weights = dict[str, torch.Tensor]


def sgmcmc(seed: int, sizes: Sizes, name: str) -> Measured:
    """Steps per second of one chain on the image classifier, in place; every ``image_thin``-th position is kept."""
    torch.manual_seed(seed)
    start = {k: torch.from_numpy(v) for k, v in problems.image_weights(sizes).items()}
    pixels, labels = problems.images(sizes, sizes.image_rows)
    x, y = torch.from_numpy(pixels), torch.from_numpy(labels).long()
    scale = sizes.image_rows / sizes.image_batch

    def log_posterior(weights: Weights, batch: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(batch[0] @ weights["first"] + weights["first_bias"])
        logits = hidden @ weights["second"] + weights["second_bias"]
        likelihood = -torch.nn.functional.cross_entropy(logits, batch[1], reduction="sum")
        return scale * likelihood - 0.5 * sum((w**2).sum() for w in weights.values()), torch.tensor([])

    if name == "sgld":
        transform = posteriors.sgmcmc.sgld.build(log_posterior, lr=sizes.langevin_step)
    else:
        transform = posteriors.sgmcmc.sghmc.build(
            log_posterior, lr=sizes.hamiltonian_step, alpha=sizes.hamiltonian_friction
        )
    last: list[torch.Tensor] = []

    def run() -> None:
        state = transform.init({k: v.clone() for k, v in start.items()})
        positions = []
        for i in range(sizes.image_steps):
            rows = torch.randint(0, sizes.image_rows, (sizes.image_batch,))
            state, _ = transform.update(state, (x[rows], y[rows]), inplace=True)
            if (i + 1) % sizes.image_thin == 0:
                positions.append({k: v.clone() for k, v in state.params.items()})
        last[:] = [positions[-1]["second"]]

    result = steady(run, sizes.image_steps, sizes.repeats)
    require_finite("draws", last[0].numpy())
    result.facts = {"steps": sizes.image_steps, "threads": torch.get_num_threads()}
    return result
