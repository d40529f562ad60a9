"""What is varied, one factor at a time, and the settings that each value stands for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method

Changes = dict[str, Any]
"""Settings that differ from the defaults."""

MEDIAN_RADIUS = "median"
"""In place of a radius: the one whose ball holds the share alpha around the median row."""

_NONE, _STANDARD, _ROBUST, _GENTLE, _AUTO = (
    {"scaling": name} for name in ("none", "standard", "robust", "gentle", "auto")
)
_SEPARATE = {"scaling": "robust", "separate": True, "alpha": 0.1}
_DEFAULT_LABEL = "default"


@dataclass(frozen=True)
class Factor:
    """One factor and its values, in the order they are shown."""

    title: str
    values: Mapping[str, Changes]
    common: Changes = field(default_factory=dict)
    """What all values share, where some of them do not go with the defaults."""

    methods: Mapping[str, Method] = field(default_factory=dict)
    """How a value is measured, where not by `method`."""

    method: Method = "effort"


@dataclass(frozen=True)
class Variant:
    """One value of one factor."""

    factor: str
    value: str
    changes: str
    """As JSON: variants of different factors with the same settings share their cells."""

    method: Method
    is_base: bool
    """Whether the other values of the factor are compared with this one."""


def _each(name: str, *values: Any) -> dict[str, Changes]:
    return {str(value): {name: value} for value in values}


def _views(**views: list[Changes]) -> dict[str, Changes]:
    return {name.replace("_", " "): {"views": listed} for name, listed in views.items()}


FACTORS = {
    "alpha": Factor("Zone mass", _each("alpha", 0.01, 0.02, 0.04, 0.08, 0.16)),
    "eps": Factor("Entropic regularisation", _each("eps", 0.0, 0.01, 0.1, 1.0)),
    "batch_rows": Factor("Batch size, first pass", _each("batch_rows", 64, 128, 256, 512)),
    "repeats": Factor("Repeats", _each("repeats", 1, 2, 4, 8, 16)),
    "anchor_rows": Factor("Anchors in a set", _each("anchor_rows", 128, 256, 512, 1_024)),
    "anchor_sets": Factor("Anchor sets", _each("anchor_sets", 2, 8, 16, 32)),
    "average": Factor("Anchor sets that count", _each("average", "middle", "mean")),
    "calibration": Factor(
        "Aggregation of efforts", _each("calibration", "log-effort", "raw-effort")
    ),
    "views": Factor(
        "Views, all columns together or each by itself",
        _views(
            none=[_NONE],
            gentle=[_GENTLE],
            auto_and_gentle=[_AUTO, _GENTLE],
            gentle_and_separate=[_GENTLE, _SEPARATE],
            none_in_place_of_auto=[_NONE, _GENTLE, _SEPARATE],
            robust_in_place_of_gentle=[_AUTO, _ROBUST, _SEPARATE],
        )
        | {"all three": {}},
    ),
    "scaling": Factor(
        "Scaling, all columns together",
        _views(
            none=[_NONE],
            standard=[_STANDARD],
            robust=[_ROBUST],
            gentle=[_GENTLE],
            auto=[_AUTO],
            all_scalings=[_NONE, _STANDARD, _ROBUST],
        ),
    ),
    # A ball of one radius means the same for all rows only in one system of coordinates.
    "zone": Factor(
        "Kind of zone, standardised view",
        {
            "reference": {"zone": "reference"},
            "batch": {"zone": "batch"},
            "k = 10": {"k": 10},
            "ball": {"radius": MEDIAN_RADIUS},
        },
        common={"views": [_STANDARD]},
    ),
    "regressor": Factor(
        "Score model",
        {**_each("regressor", "lightgbm", "boosting", "svr", "knn"), "effort (no model)": {}},
        methods={"effort (no model)": "effort"},
        method="model",
    ),
    "hybrid": Factor(
        "Efforts as columns of the score model",
        _each("hybrid", "never", "auto", "always"),
        method="model",
    ),
    "label_rows": Factor(
        "Labelled rows, score model",
        _each("label_rows", 500, 1_000, 2_000, 4_000),
        method="model",
    ),
    "label_rows_effort": Factor(
        "Labelled rows, effort", _each("label_rows", 500, 1_000, 2_000, 4_000)
    ),
    # Columns cannot be seen separately without a first pass: 0 needs other views than the default.
    "distrust": Factor(
        "Rows that may not be anchors, two views",
        _each("distrust", 0.0, 0.05, 0.1, 0.2),
        common={"views": [_NONE, _ROBUST]},
    ),
    "first_alpha": Factor("Zone mass of the first pass", _each("first_alpha", 0.04, 0.16, 0.3)),
    "company": Factor("Neighbours that share their rarity", _each("company", 0, 5, 12, 20, 50)),
    "loneliness": Factor("What lying apart counts", _each("loneliness", 0, 0.1, 0.25, 0.5, 1.0)),
}
"""By the names the command line uses."""


def variants(name: str, max_train: int | None) -> list[Variant]:
    """Return the values of a factor, with the default among them."""
    factor = FACTORS[name]
    base = changes_text(factor.common, max_train)
    found: dict[tuple[str, Method], Variant] = {}
    for value, changes in {**factor.values, _DEFAULT_LABEL: {}}.items():
        text = changes_text({**factor.common, **changes}, max_train)
        method = factor.methods.get(value, factor.method)
        is_base = text == base and method == factor.method
        found.setdefault((text, method), Variant(name, value, text, method, is_base))
    return list(found.values())


def changes_text(changes: Changes, max_train: int | None) -> str:
    """Return the settings that make a difference, as JSON."""
    defaults = MethodConfig().model_dump(mode="json")
    kept = {name: value for name, value in changes.items() if value != defaults.get(name)}
    if max_train is not None and kept.get("label_rows", 0) >= max_train:
        del kept["label_rows"]  # all rows are labelled, as by default
    return json.dumps(kept, sort_keys=True)
