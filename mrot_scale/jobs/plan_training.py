"""What the stages after labelling will do: score models learn the targets, and a model is made."""

from mrot_scale.imagined import MIXED_ROWS
from mrot_scale.jobs.plan_memory import (
    CODED_COPIES,
    HELD_ARRAYS,
    MIB,
    PART_COPIES,
    VIEW_COPIES,
    Need,
    amount,
    stage_of,
    table,
)
from mrot_scale.jobs.plan_sizes import FitSizes, setting_of
from mrot_scale.jobs.plan_text import StagePlan
from mrot_scale.model.regressors import n_folds

_BINNED_ROWS = 200_000
"""Rows LightGBM looks at to find its bins."""

_LEAF_HISTOGRAM_BYTES = 63 * 256 * 16
_SVR_CACHE_BYTES = 200 * MIB


def imagine_stage(fit: FitSizes) -> list[StagePlan]:
    """Made-up rows with rare categories are given targets, where there are any."""
    if fit.n_imagined == 0:
        return []
    n_rows, made = fit.part_rows[0], fit.n_imagined
    rows = (
        table("rows", n_rows, fit.n_features, PART_COPIES + 1)
        + table("made-up rows", made, fit.n_features, 3 + VIEW_COPIES)
        + table("values", n_rows, 4 * fit.n_views + 4, 1)
    )
    routing = fit.rarities(made) + amount("anchors", 3 * fit.anchor_bytes)
    read = fit.first_bytes + fit.anchor_bytes + fit.n_views * 4 * 8 * n_rows
    moved = (read, 8 * made * (fit.n_features + fit.n_views + 1))
    return [stage_of("imagine", 1, moved, rows + routing, setting_of(fit, rows, routing))]


def choose_stage(fit: FitSizes) -> list[StagePlan]:
    """Score models are tried on folds, where the settings leave the choice."""
    if fit.config.regressor != "auto":
        return []
    moved = (fit.first_bytes + 8 * fit.part_rows[0], 0)
    need = _learning(fit, fit.part_rows[0], fit.n_features)
    return [stage_of("choose", 1, moved, need, fit.rows_setting)]


def train_stage(fit: FitSizes) -> StagePlan:
    """The score model learns the targets, and predicts each fold of the sample unseen."""
    return _trained_on(fit, "train", fit.n_features)


def judge_stage(fit: FitSizes) -> StagePlan:
    """What trees over plain columns lose is measured."""
    n_rows = fit.part_rows[0]
    need = table("rows", n_rows, fit.n_features, 6) + table("outputs and targets", n_rows, 1, 16)
    return stage_of("judge", 1, (fit.first_bytes + 16 * n_rows, 0), need, fit.rows_setting)


def hybrid_stage(fit: FitSizes) -> list[StagePlan]:
    """Trees are trained again with efforts as columns, where they turn out to need them."""
    if not fit.may_be_hybrid:
        return []
    n_columns = fit.n_features + fit.n_views
    return [_mix_stage(fit), _trained_on(fit, "hybrid", n_columns, MIXED_ROWS)]


def _mix_stage(fit: FitSizes) -> StagePlan:
    rows = table("rows", fit.part_rows[0], fit.n_features + 4 * fit.n_views, 4)
    rows += table("made-up rows", MIXED_ROWS, fit.n_features, 6 + VIEW_COPIES)
    routing = fit.rarities(MIXED_ROWS) + amount("anchors", 3 * fit.anchor_bytes)
    read = fit.first_bytes + fit.anchor_bytes + fit.n_views * 5 * 8 * fit.part_rows[0]
    moved = (read, 8 * MIXED_ROWS * (fit.n_features + fit.n_views + 1))
    return stage_of("mix", 1, moved, rows + routing, setting_of(fit, rows, routing))


def _trained_on(fit: FitSizes, name: str, n_columns: int, n_mixed: int = 0) -> StagePlan:
    folds, n_made = n_folds(fit.part_rows[0], fit.config.folds), fit.n_imagined + n_mixed
    needs = [_learning(fit, fit.part_rows[0] + n_made, n_columns)]
    if fit.n_parts > 1:
        in_parts = fit.kinds == ("lightgbm",) or name == "hybrid"
        together = _learning(fit, fit.n_labelled + n_made, n_columns)
        needs.append(_learning_by_parts(fit, n_columns) if in_parts else together)
    largest = max(needs, key=lambda need: need.n_bytes)
    made = 8 * n_made * (n_columns + 1)
    read = 8 * fit.n_labelled * (n_columns + 1) + made
    read += folds * (8 * fit.part_rows[0] * (n_columns + 1) + made)
    moved = (read, fit.score_model_bytes + 8 * fit.part_rows[0])
    return stage_of(name, 1 + folds, moved, largest, fit.rows_setting)


def _learning(fit: FitSizes, n_rows: int, n_columns: int) -> Need:
    """Memory to train a score model on rows in memory."""
    need = table("rows", n_rows, n_columns, CODED_COPIES)
    need += amount("histograms", _LEAF_HISTOGRAM_BYTES * n_columns)
    if "svr" in fit.kinds:
        need += amount("kernel cache", min(_SVR_CACHE_BYTES, 4 * n_rows**2))
    return need


def _learning_by_parts(fit: FitSizes, n_columns: int) -> Need:
    """Memory to train LightGBM on all parts, loaded a few at a time."""
    held = min(HELD_ARRAYS, fit.n_parts) + 4
    return (
        table("parts held", fit.largest, n_columns, held)
        + table("rows in bins", fit.n_labelled, n_columns, 1, size=1)
        + table("rows behind bins", min(fit.n_labelled, _BINNED_ROWS), n_columns, 2)
        + table("targets and gradients", fit.n_labelled, 1, 6)
        + amount("histograms", _LEAF_HISTOGRAM_BYTES * n_columns)
    )


def assemble_stage(fit: FitSizes) -> StagePlan:
    """All fitted parts become a model."""
    n_rows = fit.part_rows[0]
    need = table("rows", n_rows, fit.n_features, 4)
    need += table("values", n_rows, 6 * fit.n_views + 8, 1)
    need += amount("model", 4 * fit.model_bytes)
    read = fit.first_bytes + fit.model_bytes + 8 * n_rows * (4 * fit.n_views + 1)
    return stage_of("assemble", 1, (read, fit.model_bytes), need, fit.rows_setting)


def validate_stage(fit: FitSizes) -> StagePlan:
    """The model is tried on held-out rows."""
    held = fit.held_rows
    rows = table("held-out rows", held, fit.n_features, 4 + VIEW_COPIES)
    rows += amount("model", 4 * fit.model_bytes)
    routing = fit.rarities(held)
    read = fit.model_bytes + 8 * held * fit.n_features
    return stage_of("validate", 1, (read, 0), rows + routing, setting_of(fit, rows, routing))
