"""Boosted trees: a tenth of the training rows stops them early and tells the noise; then they are used as they are."""

import numpy as np

from .answers import Answer, normal, probabilities, spread, with_held_out_noise
from .split import Split, halves, numbers, with_levels

MOST_TREES, PATIENCE = 2000, 50


def lightgbm(split: Split) -> Answer:
    """Ke et al. (2017)."""
    import lightgbm as library

    (x, new), (rows, held) = with_levels(split), halves(split)
    kind = library.LGBMRegressor if split.regression else library.LGBMClassifier
    model = kind(n_estimators=MOST_TREES, random_state=split.seed, verbose=-1)
    stop = library.early_stopping(PATIENCE, verbose=False)
    model.fit(x.iloc[rows], split.y[rows], eval_set=[(x.iloc[held], split.y[held])], callbacks=[stop])
    if split.regression:
        return with_held_out_noise(model.predict, new, x.iloc[held], split.y[held], split)
    return probabilities(model.predict_proba(new), model.classes_, split)


def xgboost(split: Split) -> Answer:
    """Chen and Guestrin (2016)."""
    import xgboost as library

    (x, new), (rows, held) = with_levels(split), halves(split)
    options = {
        "n_estimators": MOST_TREES, "early_stopping_rounds": PATIENCE, "random_state": split.seed,
        "enable_categorical": True,
    }  # fmt: skip
    classes, y = np.unique(split.y, return_inverse=True)
    kind = library.XGBRegressor if split.regression else library.XGBClassifier
    y = split.y if split.regression else y
    model = kind(**options).fit(x.iloc[rows], y[rows], eval_set=[(x.iloc[held], y[held])], verbose=False)
    if split.regression:
        return with_held_out_noise(model.predict, new, x.iloc[held], split.y[held], split)
    return probabilities(model.predict_proba(new), classes, split)


def catboost(split: Split) -> Answer:
    """Prokhorenkova et al. (2018). For numbers two models, of which held-out rows take the one that is likelier:
    `RMSEWithUncertainty`, and the plain one with the noise of held-out residuals."""
    import catboost as library

    rows, held = halves(split)
    options = {
        "random_seed": split.seed, "verbose": False, "allow_writing_files": False, "early_stopping_rounds": PATIENCE,
    }  # fmt: skip
    training = library.Pool(split.x.iloc[rows], split.y[rows], cat_features=split.texts)
    validation = library.Pool(split.x.iloc[held], split.y[held], cat_features=split.texts)
    if not split.regression:
        model = library.CatBoostClassifier(**options).fit(training, eval_set=validation)
        return probabilities(model.predict_proba(split.new), model.classes_, split)
    plain = library.CatBoostRegressor(**options).fit(training, eval_set=validation)
    uncertain = library.CatBoostRegressor(loss_function="RMSEWithUncertainty", **options).fit(
        training, eval_set=validation
    )
    noise = spread(split.y[held] - plain.predict(validation))
    mean, variance = uncertain.predict(validation).T
    ours = _score(split.y[held], mean, np.sqrt(variance))
    if _score(split.y[held], plain.predict(validation), noise) >= ours:
        return normal(plain.predict(split.new), noise, split) | {"took": np.array(0)}
    mean, variance = uncertain.predict(split.new).T
    return normal(mean, np.sqrt(variance), split) | {"took": np.array(1)}


def _score(y: np.ndarray, mean: np.ndarray, std: np.ndarray | float) -> float:
    std = np.maximum(std, 1e-12)
    return float(np.mean(-np.log(std) - 0.5 * ((y - mean) / std) ** 2))


def ngboost(split: Split) -> Answer:
    """Duan et al. (2020): normal densities, or probabilities, by natural gradients."""
    from ngboost import NGBClassifier, NGBRegressor
    from ngboost.distns import k_categorical

    (x, new), (rows, held) = numbers(split), halves(split)
    options = {"n_estimators": MOST_TREES, "verbose": False, "random_state": split.seed}
    classes, y = np.unique(split.y, return_inverse=True)
    y = split.y if split.regression else y
    model = (
        NGBRegressor(**options) if split.regression else NGBClassifier(Dist=k_categorical(len(classes)), **options)
    )  # fmt: skip
    model.fit(x[rows], y[rows], X_val=x[held], Y_val=y[held], early_stopping_rounds=PATIENCE)
    best = (model.best_val_loss_itr or 0) + 1  # the library predicts with all trees unless it is told
    if split.regression:
        density = model.pred_dist(new, max_iter=best)
        return normal(density.loc, density.scale, split)
    return probabilities(model.predict_proba(new, max_iter=best), classes, split)
