"""Above which score rows are flagged: choices, and where one is kept apart from the model.

A choice says how, not at which score: the model at hand turns it into one, so that a choice
outlives a refit. It rests beside the model, never in it; changing it needs no scoring again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.scoring import Method, ScoringConfig
from mrot_scale.errors import ConfigError, DamagedDataError, ModelMismatchError
from mrot_scale.scoring import FittedModel
from mrot_scale.storing.location import Location
from mrot_scale.tails import elbow, fit_tail

Floats = NDArray[np.float64]

FORMAT = "mrot-scale-threshold"
VERSION = 1
_LIMITS = {"share": 0.5, "count": np.inf, "score": 1.0, "evt": 0.5}
"""Largest value of each kind of choice that takes one; all are above 0."""

_EXAMPLES = "share=0.005, count=50, score=0.999, elbow or evt=1e-4"
_LARGEST_FILE = 65_536


@dataclass(frozen=True)
class Choice:
    """How a threshold is found."""

    kind: str
    """share, count (per night), score, elbow or evt."""

    value: float | None = None
    rows_per_night: int | None = None
    """What a count is out of."""

    @classmethod
    def parse(cls, text: str, rows_per_night: int | None = None) -> "Choice":
        """Return the choice that `share=0.005` and the like mean."""
        kind, equals, number = text.strip().partition("=")
        if kind == "elbow" and not equals:
            return cls(kind)
        limit = _LIMITS.get(kind)
        try:
            value = float(number)
        except ValueError:
            value = np.nan
        if limit is None or not 0 < value <= limit or value == np.inf:
            raise ConfigError(f"A threshold is chosen by {_EXAMPLES}; got {text!r:.80}.")
        if kind != "count":
            return cls(kind, value)
        if rows_per_night is None:
            raise ConfigError("count needs to know out of how many: give --rows-per-night.")
        if not value <= rows_per_night / 2:
            raise ConfigError(f"count must be at most half of the {rows_per_night:,} rows a night.")
        return cls(kind, value, rows_per_night)

    @property
    def text(self) -> str:
        return self.kind if self.value is None else f"{self.kind}={self.value:g}"

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"format": FORMAT, "version": VERSION, "kind": self.kind}
        return found | {"value": self.value, "rows_per_night": self.rows_per_night}

    def score(self, training: NDArray[np.float32]) -> float:
        """Return the score it means for a model whose training rows have these scores."""
        if self.kind == "score":
            return float(self.value or 0.0)
        if self.kind == "elbow":
            return _score_of(elbow(_unbounded(training)))
        share = float(self.value or 0.0)
        if self.kind == "count":
            share /= float(self.rows_per_night or 1)
        if self.kind == "evt":
            tail = fit_tail(_unbounded(training))
            if share < tail.share:
                return _score_of(tail.value_exceeded_by(share))
        return float(np.quantile(training, 1.0 - share))


def _unbounded(scores: NDArray[np.float32]) -> Floats:
    """Return scores as -log of what is left to 1, which has no upper end."""
    left = np.maximum(1.0 - scores.astype(np.float64), np.finfo(np.float32).eps / 4)
    return np.asarray(-np.log(left))


def _score_of(unbounded: float) -> float:
    return float(-np.expm1(-unbounded))


def threshold_place(model: Location) -> Location:
    """Return where the choice for a model rests: beside it."""
    return model.sibling(f"{model.name}.threshold.json")


def stored_choice(model: Location) -> Choice | None:
    """Return the choice kept for a model, checked; None where there is none."""
    place = threshold_place(model)
    if not place.exists():
        return None
    if place.size() > _LARGEST_FILE:
        raise DamagedDataError(f"{place} is larger than any choice of a threshold.")
    try:
        found = json.loads(place.read())
        if found["format"] != FORMAT:
            raise DamagedDataError(f"{place} is no choice of a threshold.")
        version, kind, value = found["version"], str(found["kind"]), found["value"]
        text = kind if value is None else f"{kind}={float(value)!r}"
        per_night = found["rows_per_night"]
        if version == VERSION:
            return Choice.parse(text, None if per_night is None else int(per_night))
    except DamagedDataError:
        raise
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DamagedDataError(
            f"{place} is damaged ({reason}). Set the threshold again, or --clear it."
        ) from None
    raise ModelMismatchError(
        f"{place} has version {version!r:.20}, this version of mrot-scale reads {VERSION}. "
        "Set the threshold again."
    )


def store_choice(model: Location, choice: Choice) -> None:
    """Keep a choice beside a model, in place of any before it."""
    text = json.dumps(choice.to_json(), indent=1, sort_keys=True) + "\n"
    threshold_place(model).write(text.encode())


def clear_choice(model: Location) -> bool:
    """Forget the choice for a model; tell whether there was one."""
    place = threshold_place(model)
    was_there = place.exists()
    place.remove()
    return was_there


def threshold_in_force(
    model: FittedModel,
    method: Method,
    scoring: ScoringConfig,
    saved: Mapping[str, Any],
    stored: Choice | None,
) -> float:
    """Return the score above which rows are flagged.

    In this order: the threshold or the share that the settings give, the choice stored beside the
    model, the share the model was fitted with, and the default.
    """
    if scoring.threshold is not None:
        return scoring.threshold
    if "contamination" in scoring.model_fields_set:
        return model.threshold(method, scoring.contamination)
    if stored is not None:
        return stored.score(model.training_scores[method])
    return model.threshold(method, float(saved.get("contamination", scoring.contamination)))


def threshold(model: str | Path, method: Method | None = None) -> float:
    """Return the score above which a model's rows are flagged, by the choice stored beside it."""
    from mrot_scale.model.persist import load_model

    place = Location(model)
    fitted, saved = load_model(place)
    used: Method = method or saved.get("method", "model")
    return threshold_in_force(fitted, used, ScoringConfig(), saved, stored_choice(place))


def set_threshold(
    model: str | Path, choice: str | None, *, rows_per_night: int | None = None
) -> float:
    """Keep a choice such as `share=0.005` beside a model, or None to forget it.

    Returns the score above which rows are flagged from now on; nothing is scored again.
    """
    from mrot_scale.model.persist import load_model

    place = Location(model)
    load_model(place)  # what is no model gets no threshold
    if choice is None:
        clear_choice(place)
    else:
        store_choice(place, Choice.parse(choice, rows_per_night))
    return threshold(model)
