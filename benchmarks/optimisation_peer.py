"""BoTorch as its users write it, for `optimisation.py`: rows of the unit cube on stdout, values on stdin."""

import json
import os
import sys
import time

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood


def main() -> int:
    settings = json.loads(sys.stdin.readline())
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    torch.manual_seed(settings["seed"])
    rows, gains = [], []
    for number in range(settings["evaluations"]):
        seconds = 0.0
        if number < len(settings["first"]):
            row = settings["first"][number]
        else:
            began = time.perf_counter()
            x, y = torch.tensor(rows, dtype=torch.double), torch.tensor(gains, dtype=torch.double)[:, None]
            model = SingleTaskGP(x, y, outcome_transform=Standardize(1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            bounds = torch.tensor([[0.0] * x.shape[1], [1.0] * x.shape[1]], dtype=torch.double)
            acquisition = LogExpectedImprovement(model, best_f=y.max())
            candidates, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=8, raw_samples=512)
            row, seconds = candidates[0].tolist(), time.perf_counter() - began
        print(json.dumps({"row": row, "seconds": seconds}), flush=True)
        rows.append(row)
        gains.append(-float(sys.stdin.readline()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
