"""What stages have found out about views reaches later tasks as it was, whoever asks for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrot_scale import fit, ingest
from mrot_scale.config.job import full_config
from mrot_scale.jobs.view_records import ViewRecords
from mrot_scale.running.commit import Record
from mrot_scale.running.tasks import Work
from mrot_scale.storing.location import Location
from tests.jobs.made import FEATURES, TINY, mixed_table, run_records, write_parts

TWO_VIEWS = [{"scaling": "robust"}, {"scaling": "standard"}]


@pytest.mark.parametrize(
    ("wanted", "loneliness"), [(0, 0.0), (5, 0.0), (5, 0.5)], ids=["alone", "in company", "lonely"]
)
def test_tasks_find_the_same_by_one_array_and_by_all_of_them(
    wanted: int, loneliness: float, tmp_path: Path
) -> None:
    config = TINY | {"views": TWO_VIEWS, "company": wanted, "run": {"keep_stages": True}}
    config |= {"loneliness": loneliness}
    table = mixed_table(300).select(["reading", *FEATURES])
    ingest(write_parts(table, tmp_path / "parts"), tmp_path / "store", id="reading", config=config)
    fit(tmp_path / "store", tmp_path / "model", config)

    records = _travelled(_found(run_records(tmp_path / "model.run")))
    work, method = Work(Location(tmp_path / "model.run"), "any"), full_config(config).method
    standings = records.standings(work, method)
    kept = records.company_kept(work, method)
    assert (kept is None) == (wanted == 0)
    if kept is not None:
        assert (kept.loneliness is None) == (loneliness == 0)
    assert len(standings) == len(TWO_VIEWS)
    np.testing.assert_array_equal(
        records.target_rarity(work), np.column_stack([s.target_rarity for s in standings])
    )


def _found(done: dict[str, Record]) -> ViewRecords:
    """Records of all views, from those of a run by task."""
    learnt, anchors, calibrated, company = (
        [done[key].to_json() for key in sorted(done) if key.startswith(f"{stage}/")]
        for stage in ("views", "anchors", "calibrate", "company")
    )
    return ViewRecords(learnt, anchors, calibrated, *company)


def _travelled(records: ViewRecords) -> ViewRecords:
    argument: dict[str, Any] = json.loads(json.dumps(records.to_json()))
    assert ViewRecords(**argument) == records
    return ViewRecords(**argument)
