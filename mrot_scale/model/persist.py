"""A fitted model to files and back, part by part."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale import __version__
from mrot_scale.config.method import MethodConfig
from mrot_scale.config.scoring import Method
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import ConfigError, DamagedModelError
from mrot_scale.method.anchors import AnchorSet
from mrot_scale.method.calibrate import Calibration
from mrot_scale.method.company import Company
from mrot_scale.method.loneliness import Loneliness
from mrot_scale.method.views import View, ViewSpec
from mrot_scale.model.columns import feature_names, numeric_schema, origin_of, schema_of
from mrot_scale.model.directory import ModelFiles
from mrot_scale.model.hybrid import HybridModel
from mrot_scale.model.lightgbm_model import LightgbmModel, parse_lightgbm
from mrot_scale.model.regressors import ScoreModel, SklearnModel, sklearn_regressor
from mrot_scale.profiles import Bins
from mrot_scale.scoring import FittedModel, FittedView
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import shown
from mrot_scale.storing.schema import Schema
from mrot_scale.versions import version_of

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

METHODS: tuple[Method, ...] = ("model", "effort")
_LONGEST_REASON = 300
_STRUCTURAL = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What Python raises where a part is not of the kind it should be."""

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "POT", "faiss-cpu", "lightgbm")


def save_model(model: FittedModel, place: Location, extra: dict[str, Any] | None = None) -> None:
    """Write the model as a new directory; `extra` is kept for the caller."""
    model_files(model, extra).write(place)


def model_files(model: FittedModel, extra: dict[str, Any] | None = None) -> ModelFiles:
    """Return the model as the files of its directory."""
    files = ModelFiles()
    files.put_json(
        "model.json",
        {
            "config": model.config.model_dump(mode="json"),
            "feature_names": model.feature_names,
            "score_model": model.score_model.kind,
            "company_view": None if model.company is None else model.company.view,
            "versions": library_versions(),
            "extra": extra or {},
        },
    )
    files.put_array("fill", model.fill)
    if model.origin is not None:
        files.put_array("origin", model.origin)
    if model.schema is not None:
        files.put_json("schema.json", model.schema.to_json())
    if model.bins is not None:
        files.put_array("bins.edges", model.bins.edges)
        files.put_array("bins.counts", model.bins.counts)
    for number, view in enumerate(model.views):
        _put_view(files, f"view{number}", view)
    if model.company is not None:
        for name in ("rows", "rarity", "reach"):
            files.put_array(f"company.{name}", getattr(model.company, name))
        if model.company.loneliness is not None:
            _put_calibration(files, "company.loneliness", model.company.loneliness.calibration)
    for method in METHODS:
        _put_calibration(files, f"last.{method}", model.last[method])
        files.put_array(f"training-scores.{method}", model.training_scores[method])
    _put_score_model(files, model.score_model)
    return files


def load_model(place: Location) -> tuple[FittedModel, dict[str, Any]]:
    """Return the model of a directory and the caller's extra, after checking every part."""
    files = ModelFiles.read(place)
    try:
        return model_of(files)
    except DamagedModelError as error:
        raise DamagedModelError(f"{place}: {error}") from None
    except _STRUCTURAL as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise DamagedModelError(f"{place}: parts do not fit together ({reason}).") from error


def model_schema(model: FittedModel) -> Schema:
    """Return the columns a model expects of a store."""
    if model.schema is not None:
        return model.schema
    return numeric_schema(model.feature_names, model.n_features, model.origin)


def library_versions() -> dict[str, str]:
    """Return the versions that decide the numbers, for the record."""
    return {"mrot-scale": __version__} | {name: version_of(name) for name in _LIBRARIES}


def model_of(files: ModelFiles) -> tuple[FittedModel, dict[str, Any]]:
    """Return the model that files make, and the caller's extra."""
    header = files.json("model.json")
    # Models of before averaged efforts over all sets, and do not say so.
    config = MethodConfig.model_validate({"average": "mean"} | header["config"])
    fill = files.array("fill", np.float64, 1)
    views = tuple(
        _view(files, f"view{number}", view, len(fill)) for number, view in enumerate(config.views)
    )
    model = FittedModel(
        config=config,
        feature_names=feature_names(header, len(fill)),
        fill=fill,
        views=views,
        score_model=score_model_from(files, header["score_model"], config, len(fill)),
        last={m: _calibration(files, f"last.{m}") for m in METHODS},
        training_scores={m: _training_scores(files, m) for m in METHODS},
        origin=origin_of(files, len(fill)),
        schema=schema_of(files, len(fill)),
        company=_company(files, header.get("company_view"), config, views),
        bins=_bins(files, len(fill)),
    )
    return model, _extra(header["extra"])


def _bins(files: ModelFiles, n_features: int) -> Bins | None:
    """Return how the training rows were spread, where the model knows."""
    if "bins.edges.npy" not in files:
        return None
    edges = files.array("bins.edges", np.float64, 2)
    counts = files.array("bins.counts", np.int64, 2)
    fit = len(edges) == n_features and counts.shape == (n_features, edges.shape[1] + 2)
    if not fit or (np.diff(edges, axis=1) < 0).any() or (counts < 0).any():
        raise DamagedModelError(f"bins do not describe {n_features} columns.")
    return Bins(edges, counts)


def _company(
    files: ModelFiles, view: Any, config: MethodConfig, views: tuple[FittedView, ...]
) -> Company | None:
    """Return the rows that others share their rarity with, where the model has them."""
    if view is None:
        return None
    if type(view) is not int or not 0 <= view < len(views):
        raise DamagedModelError(f"model.json: company_view cannot be {shown(view)}.")
    rows = files.array("company.rows", np.float64, 2)
    rarity = files.array("company.rarity", np.float64, 2)
    reach = files.array("company.reach", np.float64, 1)
    width = views[view].anchors[0].rows.shape[1]
    fit = rarity.shape == (len(rows), len(views)) and reach.shape == rows.shape[:1]
    if not fit or rows.shape[1] != width or len(rows) < 2 or (reach < 0).any():
        raise DamagedModelError("company does not fit the views of the model.")
    return Company(rows, rarity, reach, view, config.company, _loneliness(files, config))


def _loneliness(files: ModelFiles, config: MethodConfig) -> Loneliness | None:
    """Return what rows get for lying apart, where the model counts it."""
    if config.loneliness == 0:
        return None
    return Loneliness(_calibration(files, "company.loneliness"), config.loneliness)


def _extra(found: Any) -> dict[str, Any]:
    """Return what the caller kept; what decides the threshold must make sense."""
    extra = dict(found)
    share = extra.get("contamination", 0.5)
    if type(share) is not float or not 0 < share <= 0.5:
        raise DamagedModelError(f"model.json: contamination cannot be {shown(share)}.")
    if extra.get("method", "model") not in METHODS:
        raise DamagedModelError(f"model.json: method cannot be {shown(extra['method'])}.")
    return extra


def _training_scores(files: ModelFiles, method: Method) -> NDArray[np.float32]:
    scores = files.array(f"training-scores.{method}", np.float32, 1)
    if scores.size == 0 or (np.diff(scores) < 0).any():
        raise DamagedModelError(f"training-scores.{method} are not ascending scores.")
    return scores


def _put_view(files: ModelFiles, prefix: str, fitted: FittedView) -> None:
    view = fitted.view
    for name in ("center", "scale", "squash", "mean", "components"):
        files.put_array(f"{prefix}.{name}", getattr(view, name))
    files.put_array(f"{prefix}.anchor-rows", np.stack([a.rows for a in fitted.anchors]))
    files.put_array(f"{prefix}.anchor-v", np.stack([a.v for a in fitted.anchors]))
    files.put_array(f"{prefix}.anchor-ids", np.stack([a.ids for a in fitted.anchors]))
    files.put_array(f"{prefix}.anchor-eps", np.array([a.eps for a in fitted.anchors]))
    files.put_array(f"{prefix}.anchor-slack", np.array([a.slack for a in fitted.anchors]))
    if fitted.anchors[0].columns is not None:
        columns = np.concatenate([a.columns for a in fitted.anchors if a.columns is not None])
        files.put_array(f"{prefix}.anchor-columns", columns)
    if fitted.anchors[0].efforts is not None:
        efforts = [a.efforts for a in fitted.anchors if a.efforts is not None]
        files.put_array(f"{prefix}.anchor-efforts", np.stack(efforts))
    files.put_array(f"{prefix}.floor", fitted.floor)
    for name, of_set in zip(_map_names(len(fitted.maps)), fitted.maps, strict=True):
        _put_calibration(files, f"{prefix}.{name}", of_set)


def _map_names(n_maps: int) -> list[str]:
    return ["calibration"] if n_maps == 1 else [f"set{number}" for number in range(n_maps)]


def _view(files: ModelFiles, prefix: str, config: ViewConfig, n_features: int) -> FittedView:
    columns = range(n_features) if config.columns is None else config.columns
    if not all(0 <= column < n_features for column in columns):
        raise DamagedModelError(f"{prefix}: columns {columns} are not all among {n_features}.")
    width = len(columns)
    center, scale, mean = (
        files.array(f"{prefix}.{name}", np.float64, 1) for name in ("center", "scale", "mean")
    )
    squash = files.array(f"{prefix}.squash", np.bool_, 1)
    components = files.array(f"{prefix}.components", np.float64, 2)
    expected = (width,) * 3 + ((width, width, config.whiten) if config.whiten else (0, 0, 0))
    sizes = (center.size, scale.size, squash.size, mean.size, *components.shape)
    if sizes != expected or (scale == 0).any():
        raise DamagedModelError(f"{prefix}: columns differ from the {width} of the configuration.")
    spec = ViewSpec(config.scaling, config.columns, config.whiten)
    view = View(spec, center, scale, squash, mean, components)
    anchors = _anchors(files, prefix, components.shape[1] if config.whiten else width, config)
    floor = files.array(f"{prefix}.floor", np.float64, 1)
    if len(floor) not in (1, len(anchors)) or (floor <= 0).any():
        raise DamagedModelError(f"{prefix}.floor does not fit {len(anchors)} anchor sets.")
    names = _map_names(len(anchors) if config.separate else 1)
    maps = tuple(_calibration(files, f"{prefix}.{name}") for name in names)
    return FittedView(view, anchors, floor, maps)


def _anchors(
    files: ModelFiles, prefix: str, width: int, config: ViewConfig
) -> tuple[AnchorSet, ...]:
    rows = files.array(f"{prefix}.anchor-rows", np.float64, 3)
    v = files.array(f"{prefix}.anchor-v", np.float64, 2)
    ids = files.array(f"{prefix}.anchor-ids", np.int64, 2)
    eps = files.array(f"{prefix}.anchor-eps", np.float64, 1)
    fit = rows.shape[:2] == v.shape == ids.shape and len(eps) == len(v) and v.size
    if not fit or (eps < 0).any():
        raise DamagedModelError(f"{prefix}: anchor arrays differ in shape.")
    seen = _columns_seen(files, prefix, len(v), width) if config.separate else [None] * len(v)
    expected = 1 if config.separate else width
    if rows.shape[2] != expected:
        raise DamagedModelError(f"{prefix}: anchors have {rows.shape[2]} columns, not {expected}.")
    efforts = _efforts(files, prefix, v.shape) if config.relative else [None] * len(v)
    slack = _slack(files, prefix, len(v)).tolist()
    parts = zip(rows, v, ids, eps.tolist(), seen, efforts, slack, strict=True)
    return tuple(AnchorSet(*part) for part in parts)


def _slack(files: ModelFiles, prefix: str, n_sets: int) -> Floats:
    """Return what counts as rounding in each anchor set; models of before took the very best."""
    if f"{prefix}.anchor-slack.npy" not in files:
        return np.zeros(n_sets)
    slack = files.array(f"{prefix}.anchor-slack", np.float64, 1)
    if len(slack) != n_sets or (slack < 0).any():
        raise DamagedModelError(f"{prefix}: slack does not fit {n_sets} anchor sets.")
    return slack


def _efforts(files: ModelFiles, prefix: str, shape: tuple[int, ...]) -> list[Floats]:
    efforts = files.array(f"{prefix}.anchor-efforts", np.float64, 2)
    if efforts.shape != shape or (efforts < 0).any():
        raise DamagedModelError(f"{prefix}: efforts of anchors do not fit the anchors.")
    return list(efforts)


def _columns_seen(files: ModelFiles, prefix: str, n_sets: int, width: int) -> list[Ids]:
    columns = files.array(f"{prefix}.anchor-columns", np.int64, 1)
    if len(columns) != n_sets or (columns < 0).any() or (columns >= width).any():
        raise DamagedModelError(f"{prefix}: anchor sets see columns that the view has not.")
    return [columns[number : number + 1] for number in range(n_sets)]


def _put_calibration(files: ModelFiles, prefix: str, calibration: Calibration) -> None:
    files.put_array(f"{prefix}.knots", calibration.knots)
    files.put_array(f"{prefix}.rarity", calibration.rarity)
    files.put_array(f"{prefix}.tail-scale", np.array([calibration.tail_scale]))


def _calibration(files: ModelFiles, prefix: str) -> Calibration:
    knots = files.array(f"{prefix}.knots", np.float64, 1)
    rarity = files.array(f"{prefix}.rarity", np.float64, 1)
    tail_scale = files.array(f"{prefix}.tail-scale", np.float64, 1)
    ascending = (np.diff(knots) > 0).all() and (np.diff(rarity) > 0).all()
    sizes = (knots.size, rarity.size, tail_scale.size)
    if sizes != (max(knots.size, 2),) * 2 + (1,) or not ascending or tail_scale[0] <= 0:
        raise DamagedModelError(f"{prefix} is not a strictly increasing map.")
    return Calibration(knots, rarity, float(tail_scale[0]))


def _put_score_model(files: ModelFiles, model: ScoreModel) -> None:
    if isinstance(model, LightgbmModel):
        files.put_text("booster.txt", model.text())
    elif isinstance(model, HybridModel):
        files.put_text("booster.txt", model.trees.text())
        files.put_text("plain-booster.txt", model.plain.text())
    elif isinstance(model, SklearnModel) and model.kind != "custom":
        files.put_array("training-rows", model.rows)
        files.put_array("training-targets", model.targets)
    else:
        raise ConfigError(
            "A score model given as an object cannot be saved without pickle. "
            "Use regressor='lightgbm', 'boosting', 'svr' or 'knn' for models to keep."
        )


def score_model_files(model: ScoreModel) -> ModelFiles:
    """Return a score model alone, as files."""
    files = ModelFiles()
    _put_score_model(files, model)
    return files


def score_model_from(
    files: ModelFiles, kind: str, config: MethodConfig, n_features: int
) -> ScoreModel:
    """Return the score model that files hold."""
    if kind == "lightgbm":
        return parse_lightgbm(files.text("booster.txt"), n_features)
    if kind == "hybrid":
        trees = parse_lightgbm(files.text("booster.txt"), n_features + len(config.views))
        return HybridModel(trees, parse_lightgbm(files.text("plain-booster.txt"), n_features))
    rows = files.array("training-rows", np.float64, 2)
    targets = files.array("training-targets", np.float64, 1)
    if rows.shape != (len(targets), n_features):
        raise DamagedModelError(f"training-rows.npy has shape {rows.shape}.")
    return SklearnModel(kind, sklearn_regressor(kind, len(rows), config.seed), rows, targets)
