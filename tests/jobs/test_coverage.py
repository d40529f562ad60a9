"""Coverage `all`: every row gets its effort once, in parts that do not depend on chunks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrot_scale import fit, ingest, score
from mrot_scale.encoding import Decoder
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from tests.jobs.made import (
    FEATURES,
    ROW_BYTES,
    TINY,
    folder_bytes,
    mixed_table,
    stage_arrays,
    zarr_values,
)

N_ROWS = 1_200
CONFIG = TINY | {"anchor_sets": 4, "coverage": "all", "run": {"keep_stages": True}}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of about 400 rows."""
    monkeypatch.setattr("mrot_scale.jobs.labelled._PART_BYTES", 400 * ROW_BYTES)
    monkeypatch.setattr("mrot_scale.jobs.labelled._LARGEST_PART_ROWS", 400)


def fitted(folder: Path, chunk_rows: int, **settings: Any) -> Path:
    config = CONFIG | {"store": {"chunk_bytes": chunk_rows * ROW_BYTES}} | settings
    table = mixed_table(N_ROWS).select(FEATURES)
    ingest(table, folder / "store", config=config)
    found = fit(folder / "store", folder / "model", config)
    assert found.labelled_rows == N_ROWS
    score(folder / "model", folder / "store", folder / "out", config)
    return folder


def rows_in_store(folder: Path) -> list[tuple[float, ...]]:
    """All rows as the method sees them, gaps filled with the model's medians."""
    store = FeatureStore.open(Location(folder / "store"))
    rows = np.concatenate([store.read_chunk(chunk) for chunk in store.chunks])
    decoded = Decoder(store.schema, store.schema).rows(rows)
    fill = np.load(folder / "model" / "fill.npy")
    return [tuple(row) for row in np.where(np.isfinite(decoded), decoded, fill).tolist()]


@pytest.mark.usefixtures("small_parts")
def test_every_row_gets_its_efforts_once_whatever_the_chunks(tmp_path: Path) -> None:
    cut = fitted(tmp_path / "cut", 190)
    whole = fitted(tmp_path / "whole", N_ROWS)
    gathered = stage_arrays(cut / "model.run", "gather")
    parts = [rows for name, rows in gathered.items() if name.endswith(".rows")]
    assert len(parts) == 3
    labelled = [tuple(row) for part in parts for row in part.tolist()]
    assert sorted(labelled) == sorted(rows_in_store(cut))
    efforts = stage_arrays(cut / "model.run", "routes")
    in_first_view = {n: e for n, e in efforts.items() if n.startswith("routes/00000")}
    sizes = [
        sum(len(e) for n, e in in_first_view.items() if n.split("/")[2] == f"{p:05}")
        for p in (0, 1, 2)
    ]
    assert sizes == [len(part) for part in parts]
    same = stage_arrays(whole / "model.run", "routes")
    assert {n: e.tobytes() for n, e in efforts.items()} == {n: e.tobytes() for n, e in same.items()}
    assert folder_bytes(cut / "model") == folder_bytes(whole / "model")
    assert zarr_values(cut / "out").tobytes() == zarr_values(whole / "out").tobytes()


def test_one_part_is_enough_for_few_rows(tmp_path: Path) -> None:
    found = fitted(tmp_path, 500)
    gathered = stage_arrays(found / "model.run", "gather")
    assert [tuple(row) for row in gathered["gather/00000.rows"].tolist()] == rows_in_store(found)


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
def test_parts_agree_with_one_problem_of_all_rows_about_what_is_rare(tmp_path: Path) -> None:
    parts = fitted(tmp_path / "parts", N_ROWS, repeats=4, anchor_sets=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrot_scale.jobs.labelled._LARGEST_PART_ROWS", 10**6)
        patch.setattr("mrot_scale.jobs.labelled._PART_BYTES", 2**26)
        one = fitted(tmp_path / "one", N_ROWS, repeats=4, anchor_sets=4)
    in_parts, in_one = zarr_values(parts / "out"), zarr_values(one / "out")
    assert np.corrcoef(in_parts.argsort().argsort(), in_one.argsort().argsort())[0, 1] > 0.8
