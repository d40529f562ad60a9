"""What a score run writes: settings given now over those the model was fitted with."""

from collections.abc import Mapping, Sequence
from typing import Any

from mrot_scale.config.job import Config
from mrot_scale.config.scoring import Method
from mrot_scale.encoding import check_fits
from mrot_scale.errors import ConfigError
from mrot_scale.explaining import can_explain
from mrot_scale.jobs.door import check_missing
from mrot_scale.jobs.score_tasks import ScoreOptions
from mrot_scale.model.persist import model_schema
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.store import FeatureStore
from mrot_scale.thresholds import Choice, threshold_in_force


def score_options(
    model: FittedModel,
    saved: Mapping[str, Any],
    config: Config,
    parquet: bool,
    keep: Sequence[str],
    stored: Choice | None = None,
) -> ScoreOptions:
    """Return what to write: settings given now win over those the model was fitted with.

    `stored` is the choice of a threshold that is kept beside the model.
    """
    given = config.scoring.model_fields_set
    method: Method = config.scoring.method
    if "method" not in given and saved.get("method") in ("model", "effort"):
        method = saved["method"]
    policy = config.non_finite if "non_finite" in config.model_fields_set else None
    return ScoreOptions(
        method=method,
        non_finite=policy or model.config.non_finite,
        threshold=threshold_in_force(model, method, config.scoring, saved, stored),
        flag=config.scoring.flag,
        percentile=config.scoring.percentile,
        top_columns=min(config.scoring.top_columns, model.n_features),
        parquet=parquet,
        keep=tuple(keep),
    )


def check_score_input(model: FittedModel, store: FeatureStore, options: ScoreOptions) -> None:
    """Refuse a store the model cannot score as asked."""
    check_fits(model_schema(model), store.schema)
    check_missing(store, options.non_finite)
    store.check_columns_kept(options.keep)
    _check_names(store, options)
    if options.top_columns and not can_explain(model):
        raise ConfigError(
            "scoring.top_columns needs a view with all columns that is not whitened, or a "
            f"lightgbm model; this model is {model.score_model.kind!r} and has neither."
        )


def _check_names(store: FeatureStore, options: ScoreOptions) -> None:
    """Refuse kept columns and identifiers whose names the scores need for themselves."""
    tops = [f"top_{place + 1}" for place in range(options.top_columns)]
    own = {*options.arrays(1, 1), *tops, *(f"{name}_contribution" for name in tops)}
    taken = own & {store.schema.id_column, *options.keep} if options.parquet else set()
    if taken:
        raise ConfigError(
            f"Column {sorted(taken)[0]!r} has the name of a column of the scores. Rename it, or "
            "leave it out of --keep."
        )
