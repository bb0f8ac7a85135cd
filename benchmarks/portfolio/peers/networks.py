"""Networks: RealMLP-TD and TabM with pytabkit's defaults, and TabPFN, which was trained before on generated tables."""

import os
import typing

import numpy as np

from .answers import Answer, probabilities, with_held_out_noise
from .split import Split, halves, numbers


def realmlp(split: Split) -> Answer:
    """Holzmüller, Grinsztajn and Steinwart (2024), Better by default."""
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    if split.regression:
        return _pytabkit(RealMLP_TD_Regressor, split)
    return _pytabkit(RealMLP_TD_Classifier, split, use_ls=False)


def tabm(split: Split) -> Answer:
    """Gorishniy, Kotelnikov and Babenko (2025), TabM."""
    from pytabkit import TabM_D_Classifier, TabM_D_Regressor

    return _pytabkit(TabM_D_Regressor if split.regression else TabM_D_Classifier, split)


def _pytabkit(kind: typing.Any, split: Split, **options: typing.Any) -> Answer:
    """The defaults, and for classes what pytabkit says to set where probabilities are scored and not the error rate."""
    held = halves(split)[1]
    x, new = split.x.copy(), split.new.copy()
    for name in x.columns.difference(split.texts):  # pytabkit takes no missing numbers
        middle, lost = x[name].median(), x[name].isna()
        if lost.any():
            x[f"{name} lost"], new[f"{name} lost"] = lost.astype(float), new[name].isna().astype(float)
        x[name], new[name] = x[name].fillna(middle), new[name].fillna(middle)
    if not split.regression:
        options["val_metric_name"] = "cross_entropy"
    model = kind(device="cpu", random_state=split.seed, n_threads=os.cpu_count(), **options)
    model.fit(x, split.y if split.regression else split.y.astype(int), val_idxs=held, cat_col_names=split.texts)
    if split.regression:
        return with_held_out_noise(model.predict, new, x.iloc[held], split.y[held], split)
    return probabilities(model.predict_proba(new), model.classes_, split)


def tabpfn(split: Split) -> Answer:
    """Hollmann, Müller, Eggensperger and Hutter (2023), the first version with its 32 configurations.

    It was written for a torch whose module of transformers exported all its names and whose checkpoints held objects.
    """
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    import torch
    from torch.nn.modules import transformer

    vars(transformer).update(Optional=typing.Optional, Tensor=torch.Tensor)
    transformer.__all__ = [name for name in vars(transformer) if not name.startswith("_")]
    from tabpfn.scripts.transformer_prediction_interface import TabPFNClassifier

    x, new = numbers(split, codes=True)
    torch.manual_seed(split.seed)
    classes, y = np.unique(split.y, return_inverse=True)
    model = TabPFNClassifier(device="cpu", N_ensemble_configurations=32)
    model.fit(x, y)
    return probabilities(model.predict_proba(new), classes, split)
