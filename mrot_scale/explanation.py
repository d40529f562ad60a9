"""Why one row is scored as it is: columns, the normal rows it resembles, where its mass goes."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.config.scoring import Method
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import ConfigError
from mrot_scale.explaining import can_explain, column_contributions
from mrot_scale.method.route_story import Route, route_of
from mrot_scale.model.persist import model_schema
from mrot_scale.rows import fill_non_finite
from mrot_scale.scoring import FittedModel, FittedView, problem_of

Floats = NDArray[np.float64]

NORMAL_SHOWN = 5
"""Normal rows that are shown beside the row."""


@dataclass(frozen=True)
class ColumnPart:
    """What one column did."""

    name: str
    value: float | str | None
    """As the row has it: a number, a category, or None where it is missing."""

    contribution: float
    """Part of the row's rarity that it accounts for."""

    share: float
    """The same as a share of the whole."""

    usual: float | None
    """Mean of the normal rows that the row resembles in most columns."""

    median: float
    """Of the training rows."""

    percentile: float | None
    """Percent of the training rows with a lower value, where the model knows."""


@dataclass(frozen=True)
class ViewPart:
    """Where the row's mass is sent in one view, against the set of anchors in the middle."""

    name: str
    rarity: float
    """-log of the share of training rows that are harder to move in this view."""

    effort: float
    """What moving it costs, averaged over the sets of anchors as for its rarity."""

    cost: float
    price: float
    n_anchors: int
    n_zone: int
    """Anchors it may not use, being too near."""

    reach: float
    """Distance of the farthest of those."""

    anchor: dict[str, float]
    """The anchor it is sent to, by column; in views that see columns one by one, of each set."""

    by_column: dict[str, float]
    """Share of the cost that each column makes, or rarity in views that see them one by one."""


@dataclass(frozen=True)
class Explanation:
    """Why one row is scored as it is."""

    id: str
    method: Method
    score: float
    rarity: float
    """-log of the share of rows that score higher: 4.6 is one in a hundred."""

    threshold: float
    columns: tuple[ColumnPart, ...]
    """Strongest first."""

    normal_rows: tuple[dict[str, float], ...]
    """Normal rows it resembles in most columns, the most alike first."""

    views: tuple[ViewPart, ...]

    @property
    def is_flagged(self) -> bool:
        return bool(np.float32(self.score) > np.float32(self.threshold))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "flagged": self.is_flagged}


def explain_row(
    model: FittedModel,
    row: Floats,
    *,
    id: str,
    threshold: float,
    method: Method = "model",
    texts: dict[str, str | None] | None = None,
) -> Explanation:
    """Return why one row, in the model's numbers, is scored as it is.

    `texts` are the categories it has, by column; the model knows only how rare they are.
    """
    if not can_explain(model):
        raise ConfigError(
            "An explanation needs a view with all columns that is not whitened, or a lightgbm "
            f"model; this model is {model.score_model.kind!r} and has neither."
        )
    filled = fill_non_finite(row[None], model.fill)
    normal, usual = _resembled(model, filled)
    return Explanation(
        id,
        method,
        float(model.score(filled, method)[0]),
        float(model.rarity_of(filled, method)[0]),
        threshold,
        _columns(model, row, filled, usual, method, texts or {}),
        normal,
        tuple(
            _view_part(model, view, config, filled)
            for view, config in zip(model.views, model.config.views, strict=True)
        ),
    )


def _columns(
    model: FittedModel,
    row: Floats,
    filled: Floats,
    usual: Floats | None,
    method: Method,
    texts: dict[str, str | None],
) -> tuple[ColumnPart, ...]:
    parts = column_contributions(model, filled, method)[0]
    total, names = float(parts.sum()), model_schema(model).features
    found = [
        ColumnPart(
            name,
            texts[name] if name in texts else _number(row[place]),
            float(parts[place]),
            float(parts[place] / total) if total > 0 else 0.0,
            None if usual is None else float(usual[place]),
            float(model.fill[place]),
            _percentile(model, place, float(row[place])),
        )
        for place, name in enumerate(names)
    ]
    return tuple(found[place] for place in np.argsort(-parts, kind="stable"))


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _percentile(model: FittedModel, place: int, value: float) -> float | None:
    """Return the percent of training rows below a value, between the quantiles that are known."""
    if model.bins is None or not np.isfinite(value):
        return None
    edges, counts = model.bins.edges[place], model.bins.counts[place, :-1]
    if counts.sum() == 0:
        return None
    below = 100.0 * np.cumsum(counts) / counts.sum()
    if value > edges[-1]:
        return float((below[-2] + 100.0) / 2)
    if value <= edges[0]:
        return float(below[0] / 2)
    distinct, last = np.unique(edges[::-1], return_index=True)
    return float(np.interp(value, distinct, below[:-1][::-1][last]))


def _resembled(
    model: FittedModel, filled: Floats
) -> tuple[tuple[dict[str, float], ...], Floats | None]:
    """Return the normal rows most like a row, and the mean of all that it is compared with."""
    if model.whole_view is None or model.normal is None:
        return (), None
    view, normal = model.whole_view.view, model.normal
    point = view.apply(filled)
    alike = normal.compare(point)
    apart = np.minimum(np.square(normal.rows[alike.ids[0]] - point / normal.scale), 4.0)
    nearest = alike.ids[0][np.argsort(apart.sum(axis=1), kind="stable")[:NORMAL_SHOWN]]
    rows = view.restored(normal.rows[nearest] * normal.scale)
    names = model_schema(model).features
    return tuple(_named(names, row) for row in rows), view.restored(alike.mean)[0]


def _named(names: Any, values: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _view_part(
    model: FittedModel, view: FittedView, config: ViewConfig, filled: Floats
) -> ViewPart:
    problem = problem_of(model.config, config)
    point = view.view.apply(filled)[0]
    routes = [route_of(anchors, point, problem) for anchors in view.anchors]
    costs = np.array([[route.cost for route in routes]])
    middle = int(np.argsort(costs[0], kind="stable")[len(routes) // 2])
    route = routes[middle]
    measured = view.routes(filled, problem, 1)
    paid = measured if config.relative else costs
    return ViewPart(
        _view_name(view, config),
        float(view.rarity(measured, problem)[0]),
        float(np.exp(view.log_efforts(paid, problem)[0])),
        route.cost,
        route.price,
        len(view.anchors[middle].rows),
        route.n_zone,
        float(np.sqrt(route.reach)),
        _anchor(model, view, routes, middle),
        _by_column(model, view, point, routes, middle),
    )


def _view_name(view: FittedView, config: ViewConfig) -> str:
    if config.relative:
        return f"{view.view.name}, next to those around"
    return view.view.name + (", column by column" if config.separate else "")


def _seen_names(model: FittedModel, view: FittedView) -> list[str]:
    names, chosen = model_schema(model).features, view.view.spec.columns
    return list(names) if chosen is None else [names[column] for column in chosen]


def _anchor(
    model: FittedModel, view: FittedView, routes: list[Route], middle: int
) -> dict[str, float]:
    """Return the anchor that mass is sent to, in the columns as they were."""
    if view.view.spec.whiten is not None:
        return {}
    names, anchors = _seen_names(model, view), view.anchors
    if anchors[middle].columns is None:
        return _named(names, view.view.restored(anchors[middle].rows[routes[middle].target]))
    found = np.zeros(len(names))
    seen: list[int] = []
    for route, own in zip(routes, anchors, strict=True):
        if own.columns is not None and int(own.columns[0]) not in seen:
            seen.append(int(own.columns[0]))
            found[seen[-1]] = own.rows[route.target, 0]
    restored = view.view.restored(found)
    return {names[column]: float(restored[column]) for column in sorted(seen)}


def _by_column(
    model: FittedModel, view: FittedView, point: Floats, routes: list[Route], middle: int
) -> dict[str, float]:
    if view.view.spec.whiten is not None:
        return {}
    names, anchors = _seen_names(model, view), view.anchors
    if anchors[middle].columns is None:
        steps = np.square(point - anchors[middle].rows[routes[middle].target])
        return _named(names, steps / (steps.sum() or 1.0))
    found: dict[str, list[float]] = {}
    sign = problem_of(model.config).effort_sign
    floors = np.broadcast_to(view.floor, len(anchors))
    for route, own, of_set, floor in zip(routes, anchors, view.maps, floors, strict=True):
        assert own.columns is not None
        value = sign * np.log(np.maximum(route.cost, floor))
        rarity = float(of_set.neg_log_survival(np.array([value]))[0])
        found.setdefault(names[int(own.columns[0])], []).append(rarity)
    return {name: float(np.mean(values)) for name, values in found.items()}
