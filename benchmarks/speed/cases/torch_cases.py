"""Plain torch: a network, Adam and a Python loop."""

import torch
from cases import problems
from cases.measure import Measured, require_finite, steady
from cases.problems import Sizes


def ensemble(seed: int, sizes: Sizes) -> Measured:
    """Steps per second of members trained one after another; one member is timed, the others would take as long."""
    torch.manual_seed(seed)
    x, y = map(torch.from_numpy, problems.regression(sizes))
    losses: list[float] = []

    def member() -> None:
        hidden = sizes.hidden
        network = torch.nn.Sequential(
            torch.nn.Linear(sizes.inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, hidden), torch.nn.ReLU(),
            torch.nn.Linear(hidden, 2),
        )  # fmt: skip
        optimiser = torch.optim.Adam(network.parameters(), lr=sizes.learning_rate)
        for _ in range(sizes.ensemble_steps):
            rows = torch.randint(0, sizes.num_data, (sizes.batch_size,))
            mean, raw = network(x[rows]).unbind(-1)
            scale = 1e-3 + torch.nn.functional.softplus(raw)
            loss = (0.5 * ((y[rows] - mean) / scale) ** 2 + torch.log(scale)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(float(loss))

    result = steady(member, sizes.ensemble_steps, sizes.repeats)
    require_finite("losses", losses)
    result.facts = {"steps": sizes.ensemble_steps, "last_loss": losses[-1], "threads": torch.get_num_threads()}
    return result
