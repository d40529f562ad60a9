"""A month of nights with everything that happens in a month.

`pytest -m long tests/scheduled/test_thirty_nights.py -s` prints the table of what each night did.
"""

import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
import yaml

from mrot_scale.errors import GateError, MrotError
from mrot_scale.scheduled.backfill import backfill
from mrot_scale.scheduled.night import nightly
from tests.scheduled.lake import (
    ROWS,
    SETTINGS,
    changed,
    command,
    day,
    manifest,
    metrics,
    night_table,
    published_digests,
    ran,
    with_incident,
    write_night,
)

MONTH: dict[str, Any] = SETTINGS | {
    "label_rows": 1_000,
    "nightly": {"id": "reading", "refit_every": 7, "training_partitions": 7},
    "gates": {"psi": {"warn": 0.25, "fail": 1.0}},
}


@dataclass
class Month:
    """One job, night after night, and the table of what became of them."""

    lake: Path
    output: Path
    config: Path
    table: list[tuple[str, ...]] = field(default_factory=list)

    def night(self, number: int, what: str = "") -> int:
        """Run a night; return its exit code."""
        config = MONTH | {"nightly": MONTH["nightly"] | self.alerts}
        try:
            nightly(self.lake, self.output, date=day(number), config=config)
            code = 0
        except MrotError as error:
            code = error.exit_code
        self.note(number, what, code)
        return code

    @property
    def alerts(self) -> dict[str, Any]:
        script = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"
        return {"alert_command": (sys.executable, "-c", script, str(self.output / "alerts"))}

    def note(self, number: int, what: str, code: int) -> None:
        scores = self.output / "scores" / f"date={day(number)}"
        found = metrics(self.output)
        gates = [name for name, level in found["gate_level"].items() if level]
        model = self.state(number).get("published", {}).get("model", "")
        rows = f"{ds.dataset(scores).count_rows():,}" if scores.exists() else "nothing"
        self.table.append((day(number), what, str(code), rows, model, ", ".join(gates)))
        assert found["last_exit_code"] == code
        assert found["partitions"]["published"] == len(published_digests(self.output))

    def state(self, number: int) -> dict[str, Any]:
        path = self.output / "runs" / "partitions" / f"date={day(number)}.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def gates(self, number: int) -> dict[str, str]:
        """Levels of the gates of a night's last run."""
        run = self.output / "runs" / self.state(number)["run_id"] / "run.json"
        return {gate["gate"]: gate["level"] for gate in manifest(run).get("gates", [])}

    def alerted(self) -> list[tuple[str, str]]:
        path = self.output / "alerts"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [(alert["event"], alert["partition"]) for alert in found]

    def shown(self) -> str:
        head = ("night", "what happened", "exit", "published rows", "model", "gates beyond ok")
        lines = [head, ("---",) * len(head), *self.table]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@pytest.fixture
def month(tmp_path: Path) -> Month:
    config = tmp_path / "nightly.yaml"
    config.write_text(yaml.safe_dump(json.loads(json.dumps(MONTH))))
    return Month(tmp_path / "lake", tmp_path / "out", config)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::mrot_scale.errors.LeftOutWarning")
def test_thirty_nights_end_as_they_should(month: Month) -> None:
    _first_week(month)
    _second_week(month)
    _third_week(month)
    _last_week(month)
    print(f"\n{month.shown()}")
    _nothing_is_missing_but_what_must_be(month)
    _any_night_again_gives_the_same_scores(month)
    _any_order_gives_the_same_scores(month)


def _usual(month: Month, *numbers: int) -> None:
    for number in numbers:
        write_night(month.lake, number)
        assert month.night(number, "usual") == 0, number
        assert set(month.gates(number).values()) == {"ok"}, (number, month.gates(number))


def _first_week(month: Month) -> None:
    _usual(month, 1)
    assert month.state(1)["published"]["model"].startswith(day(1))
    _usual(month, 2, 3, 4)
    write_night(month.lake, 5, changed(night_table(5), "humidity", np.zeros(ROWS)))
    assert month.night(5, "a new column") == 0
    assert month.gates(5)["new_columns"] == "warn"
    _usual(month, 6, 7)
    assert month.alerted() == [("warn", f"date={day(5)}"), ("recovery", f"date={day(6)}")]


def _second_week(month: Month) -> None:
    _usual(month, 8, 9)
    assert month.state(8)["published"]["model"].startswith(day(8)), "a retrain was due"
    before = published_digests(month.output)
    write_night(month.lake, 9, night_table(9, 300, seed=77), "part-late")
    done = backfill(month.lake, month.output, start=day(10), end=day(10), lookback=2, config=MONTH)
    assert [(o.partition, o.status, o.why) for o in done.outcomes] == [
        (f"date={day(8)}", "skipped", "unchanged"),
        (f"date={day(9)}", "done", "inputs changed"),
    ]
    month.note(9, "rows came late, --lookback 2", 0)
    after = published_digests(month.output)
    assert {name for name in after if after[name] != before[name]} == {f"date={day(9)}"}
    write_night(month.lake, 10, night_table(10).slice(0, 0))
    assert month.night(10, "an empty night") == 3
    assert month.gates(10) == {"rows_below": "fail"}
    assert month.night(11, "no input at all") == 66
    write_night(month.lake, 12, with_incident(night_table(12), 0.15))
    assert month.night(12, "an incident, 15% of the rows") == 0
    assert month.gates(12)["flagged_above"] == "warn"
    scores = ds.dataset(month.output / "scores" / f"date={day(12)}").to_table().to_pylist()
    incident = [r["flag"] for r in scores if int(r["reading"][-5:]) < 0.15 * ROWS]
    assert np.mean(incident) > 0.9
    write_night(month.lake, 13)
    assert month.night(13, "after it") == 0
    _usual(month, 14)


def _third_week(month: Month) -> None:
    _usual(month, 15, 16)
    table = night_table(17)
    write_night(month.lake, 17, changed(table, "temperature", table["temperature"].to_numpy() + 20))
    assert month.night(17, "a drifted feature") == 3
    assert month.gates(17)["psi"] == "fail"
    _killed(month, 18)
    _concurrent(month, 19)
    table = night_table(20)
    holes = np.where(np.arange(ROWS) % 10 == 0, np.nan, table["pressure"].to_numpy())
    write_night(month.lake, 20, changed(table, "pressure", holes))
    assert month.night(20, "10% of a column missing") == 0
    assert month.gates(20)["nulls"] == "warn"
    write_night(month.lake, 21)
    assert month.night(21, "after it") == 0


def _killed(month: Month, number: int) -> None:
    """Kill a run as it is about to publish; the same command again goes on."""
    write_night(month.lake, number)
    words: tuple[str, ...] = ("nightly", str(month.lake), str(month.output), "--date", day(number))
    words += ("-c", str(month.config), "--output", "json")
    code, _, _ = ran(*words, MROT_TEST="1", MROT_FAULT="publish.written:1:kill")
    assert code == -9
    assert not (month.output / "scores" / f"date={day(number)}").exists()
    assert month.state(number)["status"] == "running"
    code, out, log = ran(*words)
    assert code == 0, log
    assert json.loads(out)["status"] == "done"
    events = [json.loads(line) for line in log.splitlines()]
    assert {event["run_id"] for event in events} == {json.loads(out)["run_id"]}
    scored = next(event for event in events if event.get("stage") == "score")
    assert scored["done_before"] == scored["steps"], "the journal had it all"
    assert month.state(number)["attempts"] == 2
    month.note(number, "killed as it published, run again", 0)


def _concurrent(month: Month, number: int) -> None:
    """Two runs of one night: one publishes, the other is told who does."""
    write_night(month.lake, number)
    words: tuple[str, ...] = ("nightly", str(month.lake), str(month.output), "--date", day(number))
    words += ("-c", str(month.config))
    slow: subprocess.Popen[str] = command(
        *words, MROT_TEST="1", MROT_FAULT="begin score/*:1:sleep8"
    )[0]
    lock = month.output / "runs" / "work" / f".date={day(number)}.lock"
    while not lock.exists():
        assert slow.poll() is None
    code, _, log = ran(*words)
    assert code == 77
    assert f"process {slow.pid}" in log
    slow.communicate(timeout=120)
    assert slow.returncode == 0
    month.note(number, "two runs at once: the other exits 77", 0)


def _last_week(month: Month) -> None:
    _usual(month, 22)
    assert month.state(22)["published"]["model"].startswith(day(22)), "a retrain was due"
    _usual(month, 23, 24)
    write_night(month.lake, 25, night_table(25).drop_columns(["vibration"]))
    assert month.night(25, "a column is missing") == 3
    assert month.gates(25)["schema"] == "fail"
    write_night(month.lake, 25)
    done = backfill(month.lake, month.output, start=day(25), reprocess="failed", config=MONTH)
    assert [(o.status, o.why) for o in done.outcomes] == [("done", "failed before")]
    month.note(25, "mended, --reprocess failed", 0)
    _usual(month, 26, 27, 28, 29, 30)
    assert month.state(29)["published"]["model"].startswith(day(29)), "a retrain was due"


def _nothing_is_missing_but_what_must_be(month: Month) -> None:
    found = backfill(month.lake, month.output, missing=True, dry_run=True, config=MONTH)
    open_ends = {o.partition: o.status for o in found.outcomes if o.status != "skipped"}
    assert open_ends == {
        f"date={day(10)}": "planned",
        f"date={day(11)}": "missing",
        f"date={day(17)}": "planned",
    }
    whole = ds.dataset(month.output / "scores", partitioning="hive")
    assert whole.count_rows() == 27 * ROWS + 300


def _any_night_again_gives_the_same_scores(month: Month) -> None:
    before = published_digests(month.output)
    for number in (1, 9, 12, 18, 30):
        night = nightly(month.lake, month.output, date=day(number), config=MONTH, again=True)
        assert night.status == "done"
    assert published_digests(month.output) == before


def _any_order_gives_the_same_scores(month: Month) -> None:
    """The lake as it is now: night by night, shuffled with a fixed start, and two at a time."""
    passing = MONTH | {"nightly": MONTH["nightly"] | {"empty": "skip", "refit_from": day(1)}}
    outputs = [month.output.with_name(name) for name in ("in-order", "shuffled", "parallel")]
    values = [p.name.partition("=")[2] for p in sorted(month.lake.iterdir())]
    mixed = random.Random(3).sample(values, len(values))
    for output, order in zip(outputs, (values, mixed), strict=False):
        for value in order:
            if value == day(17):
                with pytest.raises(GateError):
                    nightly(month.lake, output, date=value, config=passing)
            else:
                nightly(month.lake, output, date=value, config=passing)
    done = backfill(month.lake, outputs[2], max_active=2, config=passing)
    assert done.exit_code == 3
    digests = [published_digests(output) for output in outputs]
    assert len(digests[0]) == 27
    assert digests[0] == digests[1] == digests[2]
    for output in outputs:
        shutil.rmtree(output)
