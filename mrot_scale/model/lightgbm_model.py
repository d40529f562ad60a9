"""The default score model: gradient-boosted trees. The only importer of LightGBM.

LightGBM accepts NaN targets in silence and ends the process on a damaged model text, so targets are
checked here before training and texts by `booster_text` before parsing.
"""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import can_compile
from mrot_scale.errors import DataError, MissingLibraryError
from mrot_scale.model.booster_text import canonical_text, check_booster_text
from mrot_scale.model.tree_walk import CompleteTrees, complete_trees
from mrot_scale.rows import surely_finite

Floats = NDArray[np.float64]

_SETTINGS: dict[str, Any] = {
    # Targets are shares in (0, 1); cross-entropy keeps the tail apart where squares would not.
    "objective": "cross_entropy",
    "num_leaves": 63,
    "max_depth": 6,
    # An isolated anomaly is a leaf of few rows: the default of 20 would smooth it away.
    "min_data_in_leaf": 5,
    # Targets have little noise: at .1 a hundred trees are not through with what there is to learn.
    "learning_rate": 0.15,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
    # Its threads wait for each other by spinning: with anything else on the machine two of them
    # are far slower than one. Folds and blocks of rows run side by side instead.
    "num_threads": 1,
}
N_TREES = 100

WALKED_FROM = 250_000
"""Rows that LightGBM scores in about the time that compiling takes."""


class LightgbmModel:
    """A trained booster; predictions are raw scores (log-odds), higher = more anomalous."""

    kind = "lightgbm"

    def __init__(self, text: str) -> None:
        self._text = text
        self._walked: CompleteTrees | None = None

    @cached_property
    def _booster(self) -> Any:
        """The trees in LightGBM's own form, made when first needed: many never are."""
        return _lightgbm().Booster(model_str=self._text)

    def prepare(self, n_rows: int) -> None:
        """Get ready for many rows: from so many on, compiling pays."""
        if n_rows >= WALKED_FROM and self._walked is None and can_compile():
            self._walked = complete_trees(self.text())

    @property
    def is_walked(self) -> bool:
        """Whether compiled code walks the trees."""
        return self._walked is not None

    def predict(self, rows: Floats) -> Floats:
        if self._walked is not None and surely_finite(rows):
            return self._walked.walk(rows)
        found = self._booster.predict(rows, raw_score=True, num_threads=1)
        return np.asarray(found, dtype=np.float64)

    def contributions(self, rows: Floats) -> Floats:
        """Return how much each column moved each row's raw score, shape (n, d)."""
        found = self._booster.predict(rows, pred_contrib=True, num_threads=1)
        return np.asarray(found, dtype=np.float64)[:, :-1]

    def text(self) -> str:
        """Return the model in LightGBM's own text format, the same for any number of threads."""
        return self._text


def train_lightgbm(rows: Floats, targets: Floats, *, seed: int) -> LightgbmModel:
    """Return the trees that learn the targets from the rows; same input, same bytes."""
    return _train(rows, targets, seed)


def train_lightgbm_parts(
    loaders: Sequence[Callable[[], Floats]], targets: Floats, *, seed: int
) -> LightgbmModel:
    """Return the trees that learn from rows too many for memory, loaded part by part."""
    return _train([_part_rows()(load) for load in loaders], targets, seed)


def _train(rows: Any, targets: Floats, seed: int) -> LightgbmModel:
    if not (np.isfinite(targets).all() and targets.min() >= 0 and targets.max() <= 1):
        raise DataError("Targets of the score model must be finite and in [0, 1].")
    settings = {**_SETTINGS, "seed": seed % 2**31}
    library = _lightgbm()
    data = library.Dataset(rows, targets, params={"verbosity": -1}, free_raw_data=True)
    booster = library.train(settings, data, num_boost_round=N_TREES)
    return LightgbmModel(canonical_text(str(booster.model_to_string())))


@cache
def _lightgbm() -> Any:
    """Return LightGBM, loaded when first needed: it brings half a dozen libraries with it."""
    try:
        import lightgbm
    except OSError as error:  # the wheel is there, the OpenMP runtime of the system is not
        if "libgomp" not in str(error):
            raise
        raise MissingLibraryError(
            "LightGBM cannot load the OpenMP runtime libgomp.so.1. "
            "Install it (Debian and Ubuntu: apt-get install libgomp1) and run again."
        ) from None
    return lightgbm


def check_lightgbm_loads() -> None:
    """Say what is missing where LightGBM cannot be loaded, before anything else is done."""
    _lightgbm()


@cache
def _part_rows() -> type:
    """Return the class of rows that LightGBM reads part by part."""

    class PartRows(_lightgbm().Sequence):  # type: ignore[misc]
        """Rows of one part as LightGBM asks for them: one by one for its bins, then by ranges."""

        batch_size = 65_536

        def __init__(self, load: Callable[[], Floats]) -> None:
            self._load, self._n_rows = load, len(load())

        def __getitem__(self, index: Any) -> Floats:
            # The loader keeps what it read last: asking for single rows reads nothing again.
            return np.asarray(self._load()[index])

        def __len__(self) -> int:
            return self._n_rows

    return PartRows


def parse_lightgbm(text: str, n_features: int) -> LightgbmModel:
    """Return the model of a text, after checking that LightGBM can survive reading it."""
    check_booster_text(text, n_features)
    return LightgbmModel(text)
