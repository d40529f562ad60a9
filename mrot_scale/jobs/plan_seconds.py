"""How long the stages of a fit will take: what was timed, multiplied."""

from mrot_scale.imagined import MIXED_ROWS
from mrot_scale.jobs.plan_calibration import (
    coded_byte_seconds,
    learner,
    read_row_seconds,
    view_speed,
)
from mrot_scale.jobs.plan_sizes import FitSizes, numbered_rows, seen_columns
from mrot_scale.jobs.plan_text import StagePlan
from mrot_scale.model.regressors import n_folds

# Seconds that settings hardly change, measured once; they matter little beside what is timed.
_VIEWED_VALUE_S = 2e-8
_LEARNT_VALUE_S = 1.2e-7
_CALIBRATED_VALUE_S = 5e-7
_DRAWN_ROW_S = 1e-8
_SEARCHED_VALUE_S = 2e-10


def fit_seconds(fit: FitSizes, stages: dict[str, StagePlan]) -> dict[str, float]:
    """Return the estimated work of each stage."""
    byte_s = coded_byte_seconds()
    seconds = {name: byte_s * stage.written_bytes for name, stage in stages.items()}
    for found in (
        _sampling_seconds(fit, stages, byte_s),
        _view_seconds(fit, stages),
        _training_seconds(fit, byte_s),
    ):
        seconds |= {name: seconds[name] + s for name, s in found.items() if name in seconds}
    return seconds


def _sampling_seconds(
    fit: FitSizes, stages: dict[str, StagePlan], byte_s: float
) -> dict[str, float]:
    # Every task finds out anew which rows are drawn.
    drawn = fit.store.n_rows * fit.n_parts if fit.n_parts > 1 else _drawn_rows(fit)
    first, n_rows = fit.part_rows[0], fit.n_labelled
    return {
        "sample": fit.store.n_rows * read_row_seconds(fit.store) + drawn * _DRAWN_ROW_S,
        "gather": byte_s * stages["gather"].read_bytes,
        "views": first * sum(fit.columns) * _LEARNT_VALUE_S,
        "calibrate": fit.n_views * (0.05 + first * fit.n_sets * _CALIBRATED_VALUE_S),
        "label": fit.n_views * (0.02 + n_rows * fit.n_sets * _CALIBRATED_VALUE_S),
    }


def _drawn_rows(fit: FitSizes) -> int:
    return len(fit.store.chunks) * numbered_rows(fit)


def _view_seconds(fit: FitSizes, stages: dict[str, StagePlan]) -> dict[str, float]:
    """Return the work of the stages that solve, measure and route, over all views."""
    pairs = zip(fit.widths, fit.anchors, strict=True)
    narrow = [seen_columns(plan, width) for width, plan in pairs]
    speeds = {width: view_speed(fit, width) for width in sorted({*fit.widths, *narrow})}
    n_batches = sum(setup.plan.n_batches for setup in fit.setups[: fit.n_met])
    per_view = [speeds[width] for width in narrow]
    met = [speeds[fit.widths[view]] for view in fit.config.batch_views]
    n_met = sum(fit.part_rows[: fit.n_met])
    seen = fit.largest * sum(fit.columns) * _VIEWED_VALUE_S
    blocks = stages["efforts"].n_tasks // fit.n_met_views
    sets = [plan.n_sets for plan in fit.anchors]
    routed = sum(n * s.route for n, s in zip(sets, per_view, strict=True))
    n_routed = sum(fit.part_rows[: fit.n_routed])
    shared = fit.n_company * fit.company_width * _SEARCHED_VALUE_S
    return {
        "neighbours": n_met * sum(s.zone for s in met) + 2 * fit.n_met * seen,
        "efforts": n_batches * sum(s.batch for s in met) + blocks * seen,
        "anchors": sum(n * s.anchor_set for n, s in zip(sets, per_view, strict=True)) + seen,
        "routes": n_routed * routed + seen,
        "company": fit.part_rows[0] * shared + 1.0,
        "label": (fit.n_labelled - fit.part_rows[0]) * shared,
        "imagine": fit.n_imagined * (routed + shared) + 0.1,
        "mix": MIXED_ROWS * (routed + shared) + 0.1,
        "validate": fit.held_rows * (routed + shared) + 0.2,
    }


def _training_seconds(fit: FitSizes, byte_s: float) -> dict[str, float]:
    """Return the work of choosing, training and trying score models; `auto` counts the slowest."""
    learners = [learner(kind, fit.n_features) for kind in fit.kinds]
    first, n_columns = fit.part_rows[0], fit.n_features
    folds = n_folds(first, fit.config.folds)
    fold_rows = first * (folds - 1) // folds + fit.n_imagined
    by_fold = [folds * x.train(fold_rows, n_columns) + first * x.predicted_row_s for x in learners]
    whole = [x.train(fit.n_labelled + fit.n_imagined, n_columns) for x in learners]
    reading = byte_s * (fit.all_bytes + folds * fit.first_bytes)
    taught = max(map(sum, zip(by_fold, whole, strict=True))) + reading
    return {
        "choose": sum(by_fold),
        "train": taught,
        "hybrid": taught * (1 + fit.n_views / n_columns),
        "assemble": 0.2 + first * max(x.predicted_row_s for x in learners),
    }
