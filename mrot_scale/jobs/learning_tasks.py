"""Score models are chosen, trained and judged."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.method import MethodConfig
from mrot_scale.jobs.sample_tasks import method_of
from mrot_scale.model.choose import best_by_validation, fit_of
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.hybrid import HybridModel, distillation_loss, mean_of_copies, wants_hybrid
from mrot_scale.model.lightgbm_model import train_lightgbm_parts
from mrot_scale.model.persist import score_model_files, score_model_from
from mrot_scale.model.regressors import fold_predictions, predict_fold
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work

Floats = NDArray[np.float64]
Json = Any


def choose_regressor(work: Work, *, part: Json, labels: Json, method: str) -> Record:
    """Find which score model does best on rows it has not seen."""
    rows, shares = work.array(part, "rows"), work.array(labels, "shares")
    return work.attempt.record(kind=best_by_validation(rows, shares, method_of(method), 1))


def train_fold(
    work: Work,
    *,
    part: Json,
    labels: Json,
    extra: list[Json],
    method: str,
    kind: str,
    fold: int,
) -> Record:
    """Train on all folds but one, and predict that one."""
    config = method_of(method)
    unseen = predict_fold(
        fit_of(_plain(kind), config.seed, None),
        (_taught(work, part, labels, kind), work.array(labels, "shares")),
        _extra_rows(work, extra, kind),
        folds=config.folds,
        seed=config.seed,
        fold=fold,
    )
    work.attempt.put_array("unseen", unseen)
    return work.attempt.record()


def _plain(kind: str) -> str:
    """Return what a hybrid model is trained as."""
    return "lightgbm" if kind == "hybrid" else kind


def _taught(work: Work, part: Json, labels: Json, kind: str) -> Floats:
    """Return the rows of a part as a kind of score model is taught them."""
    rows = work.array(part, "rows")
    return np.column_stack([rows, work.array(labels, "rarity")]) if kind == "hybrid" else rows


def _extra_rows(work: Work, extra: list[Json], kind: str) -> tuple[Floats, Floats] | None:
    """Return made-up rows and their targets, if there are any."""
    if not extra:
        return None
    rows = np.concatenate([_taught(work, made, made, kind) for made in extra])
    return rows, np.concatenate([work.array(made, "shares") for made in extra])


def train_model(
    work: Work,
    *,
    parts: list[Json],
    labels: list[Json],
    extra: list[Json],
    method: str,
    kind: str,
    plain: Json | None = None,
) -> Record:
    """Train the score model on all labelled rows, part by part where there are several."""
    pairs = [*zip(parts, labels, strict=True), *((made, made) for made in extra)]
    shares = np.concatenate([work.array(label, "shares") for _, label in pairs])
    seed = method_of(method).seed
    if len(parts) == 1 or _plain(kind) != "lightgbm":
        rows = np.concatenate([_taught(work, *pair, kind) for pair in pairs])
        model = fit_of(_plain(kind), seed, None)(rows, shares)
    else:
        model = train_lightgbm_parts(_loaders(work, pairs, kind), shares, seed=seed)
    if plain is not None:
        files = ModelFiles.of(dict(contents(work, plain)))
        n_features = work.array(parts[0], "rows").shape[1]
        model = HybridModel(
            model, score_model_from(files, "lightgbm", method_of(method), n_features)
        )
    for name, content in score_model_files(model).content.items():
        work.attempt.put(name, content)
    return work.attempt.record(kind=kind)


def _loaders(work: Work, pairs: list[tuple[Json, Json]], kind: str) -> list[Callable[[], Floats]]:
    """Return what loads the rows of each part; the last two are kept at hand."""

    @lru_cache(2)
    def load(number: int) -> Floats:
        return _taught(work, *pairs[number], kind)

    return [partial(load, number) for number in range(len(pairs))]


def judge_trees(
    work: Work, *, part: Json, labels: Json, folds: list[Json], method: str, kind: str
) -> Record:
    """Measure what trees over plain columns lose, and whether they are to be given efforts."""
    config, rows = method_of(method), work.array(part, "rows")
    targets = mean_of_copies(rows, work.array(labels, "shares"))
    loss = distillation_loss(unseen_outputs(work, folds, len(rows), config), targets)
    return work.attempt.record(loss=loss, hybrid=wants_hybrid(config, kind, loss))


def unseen_outputs(work: Work, folds: list[Json], n_rows: int, config: MethodConfig) -> Floats:
    """Return what is said of each row by the model that has not seen it."""
    found = [work.array(fold, "unseen") for fold in folds]
    return fold_predictions(found, n_rows, folds=config.folds, seed=config.seed)


def contents(work: Work, record: Json) -> Iterator[tuple[str, bytes]]:
    """Yield the files a record holds, with their names."""
    for name, ref in Record.from_json(record).objects.items():
        yield name, ref.read(work.run)
