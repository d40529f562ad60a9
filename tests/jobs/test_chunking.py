"""Chunks, files, submission order and workers change no byte of efforts, models and scores."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mrot_scale import fit, ingest, load_config, score
from mrot_scale.encoding import Decoder
from mrot_scale.fitting.batched import batch_stage, measure_neighbours
from mrot_scale.fitting.sampled import sample_rows, usable_sample
from mrot_scale.fitting.setup import plan_fit, view_points
from mrot_scale.jobs.labelled import LabelPlan
from mrot_scale.running.runner import Runner
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore
from tests.jobs.made import (
    FEATURES,
    ROW_BYTES,
    SMALL,
    folder_bytes,
    mixed_table,
    stage_arrays,
    write_parts,
    zarr_values,
)
from tests.strategies import examples

INLINE = {"kind": "inline"}
KEPT = SMALL | {"run": {"keep_stages": True}}


@dataclass(frozen=True)
class Outcome:
    """All that must not depend on how the work was cut."""

    efforts: dict[str, NDArray[Any]]
    model: dict[str, bytes]
    by_model: NDArray[Any]
    by_effort: NDArray[Any]

    def check_equal(self, other: "Outcome") -> None:
        assert list(self.efforts) == list(other.efforts)
        for task, efforts in self.efforts.items():
            assert efforts.tobytes() == other.efforts[task].tobytes(), task
        assert list(self.model) == list(other.model)
        for name, content in self.model.items():
            assert content == other.model[name], name
        assert self.by_model.tobytes() == other.by_model.tobytes()
        assert self.by_effort.tobytes() == other.by_effort.tobytes()


def pipeline(
    folder: Path,
    *,
    chunk_rows: int,
    n_files: int = 1,
    group: int = 2**20,
    shuffle: int | None = None,
    cluster: dict[str, Any] | None = None,
    score_cluster: dict[str, Any] | None = None,
) -> Outcome:
    """Ingest, fit and score the mixed table, cut as told."""
    config = KEPT | {"store": {"chunk_bytes": chunk_rows * ROW_BYTES}}
    table = mixed_table().select(["reading", *FEATURES])
    source = write_parts(table, folder / "source", n_files=n_files, group=group)
    made = ingest(source, folder / "store", id="reading", config=config)
    assert len(made.schema.features) * 4 == ROW_BYTES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrot_scale.jobs.opening.Runner", partial(Runner, shuffle=shuffle))
        fit(folder / "store", folder / "model", config | {"cluster": cluster or INLINE})
        config |= {"cluster": score_cluster or INLINE}
        score(folder / "model", folder / "store", folder / "scores", config)
        score(folder / "model", folder / "store", folder / "efforts", config, method="effort")
    return Outcome(
        stage_arrays(folder / "model.run", "efforts"),
        folder_bytes(folder / "model"),
        zarr_values(folder / "scores"),
        zarr_values(folder / "efforts"),
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """One file, one chunk, tasks in order, no cluster."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, pipeline(folder, chunk_rows=10_000)


def test_efforts_of_the_pipeline_are_those_of_the_same_rows_in_memory(
    whole: tuple[Path, Outcome],
) -> None:
    store = FeatureStore.open(Location(whole[0] / "store"))
    rows = Decoder(store.schema, store.schema).rows(store.read_chunk(0))
    config = load_config(overrides=SMALL, environment={}).method.for_columns(rows.shape[1])
    sample, _, _ = usable_sample(rows[sample_rows(len(rows), 600, 0)], config.non_finite)
    setup = plan_fit(len(sample), config, 1, None)
    met = [view_points(sample, config.views[view]) for view in config.batch_views]
    points = measure_neighbours(met, setup)
    for view, efforts in zip(config.batch_views, batch_stage(points, setup), strict=True):
        in_order = [
            efforts[batch.rows[batch.own], batch.repeat]
            for repeat in range(setup.plan.repeats)
            for batch in setup.plan.repeat_batches(repeat)
        ]
        found = [e for task, e in whole[1].efforts.items() if task.startswith(f"efforts/{view:05}")]
        assert np.concatenate(found).tobytes() == np.concatenate(in_order).tobytes()


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param({"chunk_rows": 111, "n_files": 3, "group": 97}, id="ragged chunks and files"),
        pytest.param({"chunk_rows": 256, "shuffle": 3}, id="tasks in another order"),
        pytest.param(
            {"chunk_rows": 700, "n_files": 2, "cluster": {"kind": "local", "workers": 2}},
            id="two workers",
        ),
    ],
)
def test_any_cut_gives_the_bytes_of_the_whole(
    whole: tuple[Path, Outcome], tmp_path: Path, cut: dict[str, Any]
) -> None:
    pipeline(tmp_path, **cut).check_equal(whole[1])


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("chunk_rows", [101, 512, 1_500])
def test_any_number_of_workers_gives_the_bytes_of_the_whole(
    whole: tuple[Path, Outcome], tmp_path: Path, workers: int, chunk_rows: int
) -> None:
    cluster = {"kind": "local", "workers": workers}
    found = pipeline(tmp_path, chunk_rows=chunk_rows, cluster=cluster, score_cluster=cluster)
    found.check_equal(whole[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_cuts_and_orders_give_the_bytes_of_the_whole(
    whole: tuple[Path, Outcome], tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pipeline(
        tmp_path,
        chunk_rows=int(rng.integers(40, 1_600)),
        n_files=int(rng.integers(1, 9)),
        group=int(rng.integers(1, 1_600)),
        shuffle=seed,
    ).check_equal(whole[1])


@given(
    chunk_rows=st.integers(7, 400),
    n_files=st.integers(1, 5),
    group=st.integers(1, 400),
)
@examples(6)
def test_any_cut_of_source_and_store_rests_as_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, chunk_rows: int, n_files: int, group: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    table = mixed_table(300).select(["reading", *FEATURES, "note"])
    source = write_parts(table, folder / "source", n_files=n_files, group=group)
    config = {"store": {"chunk_bytes": chunk_rows * ROW_BYTES}}
    columns: dict[str, Any] = {"id": "reading", "keep": ["note"], "exclude": ["note"]}
    ingest(source, folder / "a", config=config, **columns)
    ingest(table, folder / "b", **columns)
    cut, whole = (FeatureStore.open(Location(folder / name)) for name in "ab")
    assert cut.chunks.chunk_rows == chunk_rows
    assert cut.schema == whole.schema
    features = np.concatenate([cut.read_chunk(c) for c in cut.chunks])
    assert features.tobytes() == whole.read_chunk(0).tobytes()
    ids = pa.concat_tables([cut.read_ids(c) for c in cut.chunks])
    assert ids.equals(whole.read_ids(0).cast(ids.schema))


@given(
    n_rows=st.integers(2, 3_000),
    label_rows=st.integers(16, 2_000),
    coverage=st.sampled_from(["sample", "all"]),
    part_rows=st.integers(50, 5_000),
    data=st.data(),
)
@examples(60)
def test_chunks_take_every_row_of_a_part_once_however_they_are_cut(
    n_rows: int, label_rows: int, coverage: Any, part_rows: int, data: Any
) -> None:
    chunk_rows = data.draw(st.integers(1, n_rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrot_scale.jobs.labelled._PART_BYTES", 1)
        patch.setattr("mrot_scale.jobs.labelled._LARGEST_PART_ROWS", part_rows)
        patch.setattr("mrot_scale.jobs.labelled._BLOCK_ROWS", 128)
        plan = LabelPlan(n_rows, label_rows, coverage, 3, seed=5)
        starts = range(0, n_rows, chunk_rows)
        bounds = [(start, min(start + chunk_rows, n_rows)) for start in starts]
        parts = []
        for part in range(plan.n_parts):
            cut = np.concatenate([plan.rows_of_part(part, *b) for b in bounds])
            np.testing.assert_array_equal(cut, plan.rows_of_part(part, 0, n_rows))
            parts.append(cut)
        held = np.concatenate([plan.held_out(*b) for b in bounds])
        np.testing.assert_array_equal(held, plan.held_out(0, n_rows))
    labelled = np.concatenate(parts)
    assert len(np.unique(labelled)) == len(labelled)
    assert len(labelled) == (n_rows if coverage == "all" else min(n_rows, label_rows))
    assert not np.isin(held, labelled).any()
