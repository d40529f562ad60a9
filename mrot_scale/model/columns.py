"""The columns a model expects, found without loading what the model is made of."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DamagedModelError
from mrot_scale.model.directory import ModelFiles
from mrot_scale.storing.location import Location
from mrot_scale.storing.schema import Column, Schema


def load_schema(place: Location) -> Schema:
    """Return the columns a model expects, without loading the model."""
    files = ModelFiles.read(place)
    fill = files.array("fill", np.float64, 1)
    found = schema_of(files, len(fill))
    if found is not None:
        return found
    names = feature_names(files.json("model.json"), len(fill))
    return numeric_schema(names, len(fill), origin_of(files, len(fill)))


def feature_names(header: Any, n_features: int) -> tuple[str, ...] | None:
    """Return the names of a model's columns, as its header gives them; None if it has none."""
    names = header.get("feature_names", "") if isinstance(header, dict) else ""
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise DamagedModelError(f"model.json does not name the {n_features} columns of the arrays.")
    return tuple(str(name) for name in names)


def numeric_schema(
    names: Sequence[str] | None, n_features: int, origin: NDArray[np.float64] | None
) -> Schema:
    """Return the schema of a model of numbers in memory."""
    found = names or [f"c{i}" for i in range(n_features)]
    shifts = np.zeros(n_features) if origin is None else origin
    columns = tuple(Column(str(name), "number") for name in found)
    return Schema(columns, tuple(float(v) for v in shifts), 0, "row")


def origin_of(files: ModelFiles, n_features: int) -> NDArray[np.float64] | None:
    """Return what a model shifts its columns by, if it does."""
    if "origin.npy" not in files:
        return None
    origin = files.array("origin", np.float64, 1)
    if len(origin) != n_features:
        raise DamagedModelError(f"origin.npy has {len(origin)} columns, not {n_features}.")
    return origin


def schema_of(files: ModelFiles, n_features: int) -> Schema | None:
    """Return the columns as the store had them, for models fitted on one."""
    if "schema.json" not in files:
        return None
    schema = Schema.from_json(files.json("schema.json"), "schema.json")
    if len(schema.features) != n_features:
        raise DamagedModelError(f"schema.json does not describe the {n_features} columns.")
    return schema
