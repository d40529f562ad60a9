"""Gates: each at, within and beyond its limits; few rows do not fail by chance; and settings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale import load_config
from mrot_scale.config.job import Config, full_config
from mrot_scale.config.layers import RESERVED_VARIABLES
from mrot_scale.config.nightly import GatesConfig, Limit
from mrot_scale.drift import SCORE, Drift, drift_of, profile_drift
from mrot_scale.errors import ConfigError, GateError
from mrot_scale.profiles import Bins, Profile, count_scores, count_values
from mrot_scale.scheduled.gates import (
    Finding,
    Night,
    above,
    below,
    check_columns,
    judge,
    refuse_failed,
    worst,
)
from mrot_scale.storing.schema import Column, Schema
from mrot_scale.storing.statistics import ColumnStatistics

LIMITS: dict[str, Any] = {"warn": 0.25, "fail": 0.5}
NAN = float("nan")


def stored(rows: list[list[float]], *columns: Column) -> Schema:
    """Columns with statistics of real rows."""
    values = np.array(rows, dtype=np.float64)
    statistics = ColumnStatistics(values.shape[1])
    statistics.add(values, values.astype(np.float32))
    found = columns or tuple(Column(f"c{n}", "number") for n in range(values.shape[1]))
    origin = (0.0,) * values.shape[1]
    return Schema(found, origin, len(rows), "row", statistics=tuple(statistics.finish()))


PLAIN = stored([[1.0], [2.0]])


def drift(
    name: str = "x",
    psi: float = 0,
    ks: float = 0,
    chance: float = 0,
    nulls: float = 0,
    *,
    is_score: bool | None = None,
) -> Drift:
    own = name == SCORE if is_score is None else is_score
    return Drift(name, psi, ks, chance, nulls, is_score=own)


def night(**facts: Any) -> Night:
    """A night that nothing is wrong with, but for what is given."""
    fine: dict[str, Any] = {
        "n_input": None,
        "n_rows": 1_000,
        "n_missing": 0,
        "n_flagged": 10,
        "n_previous": 1_000,
        "training": [drift(), drift(SCORE)],
        "previous": [drift(), drift(SCORE)],
        "schema": PLAIN,
    }
    return Night(**(fine | facts))


def finding(gate: str, of: Night, **gates: Any) -> Finding:
    """What one gate finds."""
    (found,) = [f for f in judge(of, GatesConfig(**gates)) if f.gate == gate]
    return found


def level(gate: str, of: Night, **gates: Any) -> str:
    return finding(gate, of, **gates).level


def test_every_gate_passes_a_night_that_nothing_is_wrong_with() -> None:
    found = judge(night(), GatesConfig())
    assert {f.level for f in found} == {"ok"}
    names = [f.gate for f in found]
    assert len(names) == len(set(names))
    limits = {name for name, field in GatesConfig.model_fields.items() if field.annotation is Limit}
    assert set(names) == limits | {"row_count"}, "each limit there is has a gate"
    assert worst(found) == "ok"
    refuse_failed(found, "date=2026-11-14")


# --- limits


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(), "ok ok ok ok ok"),
        (Limit(warn=2), "ok ok warn warn warn"),
        (Limit(fail=4), "ok ok ok ok fail"),
        (Limit(warn=2, fail=4), "ok ok warn warn fail"),
        (Limit(warn=2, fail=2), "ok ok fail fail fail"),
        (Limit(warn=0), "warn warn warn warn warn"),
    ],
)
def test_what_must_not_be_large_is_judged_beyond_its_limits(limit: Limit, expected: str) -> None:
    found = [above("g", value, limit, "it") for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert " ".join(f.level for f in found) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(), "ok ok ok ok ok"),
        (Limit(warn=4), "warn warn warn ok ok"),
        (Limit(fail=2), "fail ok ok ok ok"),
        (Limit(warn=4, fail=2), "fail warn warn ok ok"),
    ],
)
def test_what_must_not_be_small_is_judged_below_its_limits(limit: Limit, expected: str) -> None:
    found = [below("g", value, limit, "it") for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert " ".join(f.level for f in found) == expected


def test_a_finding_says_which_limit_was_passed() -> None:
    limit = Limit(warn=2, fail=4)
    assert above("g", 3.0, limit, "it is 3") == Finding("g", "warn", 3.0, 2, "it is 3, more than 2")
    assert above("g", 5.0, limit, "it is 5") == Finding("g", "fail", 5.0, 4, "it is 5, more than 4")
    assert above("g", 1.0, limit, "it is 1") == Finding("g", "ok", 1.0, 4, "it is 1")
    assert below("g", 1.0, Limit(fail=2_000), "1 row").message == "1 row, less than 2,000"


# --- rows


@pytest.mark.parametrize(
    ("n_input", "n_rows", "expected"),
    [(None, 5, "ok"), (5, 5, "ok"), (0, 0, "ok"), (6, 5, "fail"), (4, 5, "fail"), (0, 5, "fail")],
)
def test_every_row_of_the_input_must_be_scored(
    n_input: int | None, n_rows: int, expected: str
) -> None:
    assert level("row_count", night(n_input=n_input, n_rows=n_rows)) == expected


def test_rows_that_were_not_scored_are_told_with_both_numbers() -> None:
    assert finding("row_count", night(n_input=6, n_rows=5)).message == "5 rows scored of 6"
    assert finding("row_count", night(n_input=0, n_rows=5)).message == "5 rows scored of 0"


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [(101, "ok"), (100, "ok"), (99, "warn"), (10, "warn"), (9, "fail"), (0, "fail")],
)
def test_too_few_rows_are_refused(n_rows: int, expected: str) -> None:
    assert (
        level("rows_below", night(n_rows=n_rows), rows_below={"warn": 100, "fail": 10}) == expected
    )


def test_no_rows_fail_unless_that_is_allowed() -> None:
    assert level("rows_below", night(n_rows=0, n_flagged=0)) == "fail"
    assert level("rows_below", night(n_rows=1, n_flagged=0)) == "ok"
    assert level("rows_below", night(n_rows=0, n_flagged=0), rows_below={}) == "ok"


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (100, "ok"),
        (150, "ok"),
        (151, "warn"),
        (50, "ok"),
        (49, "warn"),
        (0, "warn"),
        (300, "warn"),
        (301, "fail"),
    ],
)
def test_rows_against_the_partition_before(n_rows: int, expected: str) -> None:
    found = finding(
        "rows_change", night(n_rows=n_rows, n_previous=100), rows_change={"warn": 0.5, "fail": 2}
    )
    assert found.level == expected
    assert found.value == pytest.approx(abs(n_rows - 100) / 100)


@pytest.mark.parametrize("n_previous", [None, 0])
def test_where_there_is_no_partition_before_nothing_is_said_of_it(n_previous: int | None) -> None:
    gates = {f.gate for f in judge(night(n_previous=n_previous, previous=None), GatesConfig())}
    assert not gates & {"rows_change", "previous_psi", "previous_ks"}


# --- scores


@pytest.mark.parametrize(
    ("missing", "expected"), [(0, "ok"), (1, "warn"), (100, "warn"), (101, "fail")]
)
def test_rows_without_a_score(missing: int, expected: str) -> None:
    limits = {"warn": 0, "fail": 0.1}
    assert level("missing_scores", night(n_missing=missing), missing_scores=limits) == expected
    assert level("missing_scores", night(n_missing=missing)) == ("fail" if missing else "ok")


@pytest.mark.parametrize(
    ("flagged", "expected"), [(0, "ok"), (50, "ok"), (51, "warn"), (500, "warn"), (501, "fail")]
)
def test_rows_flagged_by_default(flagged: int, expected: str) -> None:
    assert level("flagged_above", night(n_flagged=flagged)) == expected


@pytest.mark.parametrize(
    ("flagged", "expected"), [(10, "ok"), (9, "warn"), (1, "warn"), (0, "fail")]
)
def test_too_few_rows_flagged(flagged: int, expected: str) -> None:
    limits = {"warn": 0.01, "fail": 0.001}
    assert level("flagged_below", night(n_flagged=flagged), flagged_below=limits) == expected
    assert level("flagged_below", night(n_flagged=flagged)) == "ok", "unless it is asked for"


def test_shares_of_no_rows_are_none() -> None:
    found = judge(night(n_rows=0, n_flagged=0, n_previous=None), GatesConfig())
    assert {f.value for f in found if f.gate.startswith(("flagged", "missing"))} == {0.0}


# --- drift


AT = [(0.0, "ok"), (0.25, "ok"), (0.26, "warn"), (0.5, "warn"), (0.51, "fail")]


@pytest.mark.parametrize("figure", ["psi", "ks"])
@pytest.mark.parametrize(("value", "expected"), AT)
def test_drift_of_columns_of_the_score_and_against_the_partition_before(
    figure: str, value: float, expected: str
) -> None:
    """Each has limits of its own, and is judged by no other's."""
    figures: dict[str, Any] = {figure: value}
    moved, score = drift("b", **figures), drift(SCORE, **figures)
    cases = {
        figure: night(training=[drift("a"), moved, drift(SCORE)]),
        f"score_{figure}": night(training=[drift("a"), score]),
        f"previous_{figure}": night(previous=[drift("a"), moved, drift(SCORE)]),
    }
    for gate, of in cases.items():
        found = judge(of, GatesConfig(**{gate: LIMITS}))
        assert {f.gate for f in found if f.level != "ok"} <= {gate}
        assert worst(found) == expected
    with_score = night(previous=[drift("a"), score])
    gate = f"previous_{figure}"
    assert level(gate, with_score, **{gate: LIMITS}) == expected, "the score is looked at too"


def test_the_column_that_moved_most_is_named() -> None:
    drifts = [drift("a", psi=0.3, ks=0.6), drift("b", psi=0.9, ks=0.3), drift(SCORE)]
    assert (
        "'b' has PSI 0.900 against the training rows"
        in finding("psi", night(training=drifts)).message
    )
    assert "'a' has KS 0.600" in finding("ks", night(training=drifts)).message
    before = finding("previous_psi", night(previous=drifts)).message
    assert "'b' has PSI 0.900 against the partition before, more than 0.25" in before


def test_what_chance_gives_is_taken_off() -> None:
    """Twice the PSI of chance; and a KS of sqrt(chance / 10)."""
    noisy = [drift("x", psi=0.44, chance=0.1), drift(SCORE)]
    assert level("psi", night(training=noisy)) == "ok"
    moved = [drift("x", psi=0.46, chance=0.1), drift(SCORE)]
    found = finding("psi", night(training=moved))
    assert found.level == "warn"
    assert found.value == pytest.approx(0.26)
    assert "PSI 0.460" in found.message
    assert level("ks", night(training=[drift("x", ks=0.34, chance=0.1), drift(SCORE)])) == "ok"
    assert level("ks", night(training=[drift("x", ks=0.36, chance=0.1), drift(SCORE)])) == "warn"


def test_less_than_chance_gives_is_no_drift_at_all() -> None:
    found = finding("psi", night(training=[drift("x", psi=0.1, chance=0.1), drift(SCORE)]))
    assert (found.level, found.value) == ("ok", 0.0)


@pytest.mark.parametrize(
    ("nulls", "expected"),
    [(-0.9, "ok"), (0.0, "ok"), (0.05, "ok"), (0.06, "warn"), (0.5, "warn"), (0.51, "fail")],
)
def test_values_missing_beyond_those_in_training(nulls: float, expected: str) -> None:
    found = finding("nulls", night(training=[drift("a"), drift("b", nulls=nulls), drift(SCORE)]))
    assert found.level == expected
    assert found.value == max(nulls, 0.0)


def test_rows_without_a_score_are_no_missing_values() -> None:
    assert level("nulls", night(training=[drift("a"), drift(SCORE, nulls=0.9)])) == "ok"


def test_a_model_that_does_not_know_its_training_rows_has_no_gates_of_drift() -> None:
    gates = {f.gate for f in judge(night(training=None, previous=None), GatesConfig())}
    assert gates == {
        "row_count",
        "rows_below",
        "rows_change",
        "missing_scores",
        "flagged_above",
        "flagged_below",
    }


def test_where_no_column_can_be_compared_the_score_is_judged() -> None:
    found = judge(night(training=[drift(SCORE, psi=0.3)]), GatesConfig())
    assert worst(found) == "warn"


def test_a_column_called_score_is_a_column() -> None:
    column = drift(SCORE, psi=0.9, nulls=0.9, is_score=False)
    found = judge(night(training=[drift("a"), column, drift(SCORE)]), GatesConfig(psi=LIMITS))
    levels = {f.gate: f.level for f in found}
    assert (levels["psi"], levels["nulls"], levels["score_psi"]) == ("fail", "fail", "ok")


def test_a_table_of_one_column_called_score_is_judged() -> None:
    found = judge(night(training=[drift(SCORE, is_score=False), drift(SCORE)]), GatesConfig())
    assert worst(found) == "ok"


# --- few rows


def simulated(seed: int, n_rows: int, shift: float = 0.0) -> Night:
    """A night, and the one before it, of as few rows from the distribution of the training rows."""
    rng = np.random.default_rng(seed)
    columns = tuple(Column(f"c{n}", "number") for n in range(5))
    schema = Schema(columns, (0.0,) * 5, 5_000, "row")

    def draw(n: int, moved: float) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        values = np.column_stack(
            [rng.normal(moved, 1, (n, 3)), rng.lognormal(moved, 1, n), rng.poisson(3, n)]
        )
        return values, rng.random(n).astype(np.float32)

    rows, scores = draw(5_000, 0.0)
    bins = Bins.of(rows)

    def profile(n: int, moved: float) -> Profile:
        values, found = draw(n, moved)
        return Profile(n, count_values(bins.edges, values), count_scores(found), {})

    trained = Profile(5_000, bins.counts, count_scores(scores), {})
    before, now = profile(n_rows, 0.0), profile(n_rows, shift)
    return night(
        n_rows=n_rows,
        n_previous=n_rows,
        n_flagged=0,
        training=profile_drift(schema, trained, now),
        previous=profile_drift(schema, before, now),
    )


@pytest.mark.parametrize("n_rows", [200, 50])
def test_few_rows_of_the_same_distribution_do_not_warn_by_chance(n_rows: int) -> None:
    warned = [
        [f.gate for f in judge(simulated(seed, n_rows), GatesConfig()) if f.level != "ok"]
        for seed in range(100)
    ]
    assert sum(map(bool, warned)) <= 5, warned


def test_two_hundred_rows_that_moved_are_seen() -> None:
    found = [judge(simulated(seed, 200, shift=1.0), GatesConfig()) for seed in range(20)]
    for findings in found:
        levels = {f.gate: f.level for f in findings}
        assert levels["psi"] == levels["previous_psi"] == "warn"
        assert levels["score_psi"] == "ok"


def test_many_rows_that_moved_a_little_are_no_more_than_they_are() -> None:
    """The PSI of a shift of .3 is .09, however many rows there are."""
    rng = np.random.default_rng(0)
    bins = Bins.of(rng.normal(size=(20_000, 1)))
    now = count_values(bins.edges, rng.normal(0.3, 1, (100_000, 1)))
    found = drift_of("x", bins.counts[0], now[0])
    assert level("psi", night(training=[found, drift(SCORE)])) == "ok"
    assert finding("psi", night(training=[found, drift(SCORE)])).value == pytest.approx(
        0.09, abs=0.015
    )


# --- columns


@pytest.mark.parametrize("new_columns", ["ok", "warn", "fail"])
def test_columns_that_are_new_or_missing(new_columns: Any) -> None:
    gates = GatesConfig(new_columns=new_columns)
    same = check_columns(["a", "b"], ["b", "a"], [], gates)
    assert [(f.gate, f.level) for f in same] == [("schema", "ok"), ("new_columns", "ok")]
    missing = check_columns(["a", "b"], ["b"], [], gates)
    assert [f.level for f in missing] == ["fail", "ok"]
    assert missing[0].message == "missing column(s) 'a'"
    new = check_columns(["a"], ["a", "x", "y"], [], gates)
    assert [f.level for f in new] == ["ok", new_columns]
    assert new[1].message == "new column(s) 'x', 'y', not scored"
    assert [f.value for f in new] == [0.0, 2.0]
    both = check_columns(["a", "b"], ["b", "x"], [], gates)
    assert [f.level for f in both] == ["fail", new_columns]


def test_columns_that_are_carried_along_are_not_new() -> None:
    found = check_columns(["a"], ["a", "id", "at"], ["id", "at", "unused"], GatesConfig())
    assert worst(found) == "ok"
    assert worst(check_columns(["a"], ["id"], ["id", "a"], GatesConfig())) == "fail"


ROWS = stored(
    [[-5.0, 1.0, 0.0], [90.0, NAN, 1.0], [20.0, 3.0, 2.0], [NAN, NAN, 2.0]],
    Column("temperature", "number"),
    Column("pressure", "number"),
    Column("kind", "category", vocabulary=("a", "b"), counts=(1, 1), n_missing=2),
)


@pytest.mark.parametrize(
    ("name", "rule", "told"),
    [
        ("temperature", {"min": -5, "max": 90, "nulls": 0.25}, None),
        ("temperature", {"min": -4.9}, "'temperature' has -5, below -4.9"),
        ("temperature", {"max": 89.9}, "'temperature' has 90, above 89.9"),
        (
            "temperature",
            {"nulls": 0.24},
            "'temperature' misses 25.0% of its values, more than 24.0%",
        ),
        ("pressure", {"nulls": 0.5, "min": 1, "max": 3}, None),
        ("pressure", {"nulls": 0}, "'pressure' misses 50.0% of its values, more than 0.0%"),
        ("kind", {"nulls": 0.5}, None),
        ("kind", {"nulls": 0.49}, "'kind' misses 50.0% of its values, more than 49.0%"),
        ("absent", {"min": 0}, "'absent' is no column that is scored"),
    ],
)
@pytest.mark.parametrize("how", ["warn", "fail"])
def test_rules_for_single_columns(
    name: str, rule: dict[str, Any], told: str | None, how: str
) -> None:
    found = finding(f"columns.{name}", night(schema=ROWS), columns={name: rule | {"level": how}})
    assert found.level == ("ok" if told is None else how)
    assert found.message == (told or f"{name!r} is as it must be")


def test_all_that_is_broken_of_a_rule_is_told_and_fails_unless_said_otherwise() -> None:
    rules = {"temperature": {"min": 0, "max": 50, "nulls": 0}, "pressure": {"max": 2}}
    found = finding("columns.temperature", night(schema=ROWS), columns=rules)
    assert found.level == "fail"
    assert found.message.count(";") == 2
    assert level("columns.pressure", night(schema=ROWS), columns=rules) == "fail"


def test_a_column_without_any_value_breaks_no_bounds() -> None:
    empty = stored([[NAN], [NAN]], Column("x", "number"))
    assert level("columns.x", night(schema=empty), columns={"x": {"min": 0, "max": 1}}) == "ok"
    assert level("columns.x", night(schema=empty), columns={"x": {"nulls": 0.9}}) == "fail"


def test_rules_find_columns_behind_those_of_several_features() -> None:
    schema = stored(
        [[9.0, 0.0, 0.0, 0.0, 0.0, 5.0]], Column("at", "datetime"), Column("x", "number")
    )
    assert level("columns.x", night(schema=schema), columns={"x": {"min": 5, "max": 5}}) == "ok"
    assert level("columns.x", night(schema=schema), columns={"x": {"max": 4}}) == "fail"


def test_a_rule_for_vectors_is_for_all_of_their_values() -> None:
    schema = stored([[0.0, 0.0, 7.0]], Column("v", "vector", width=3))
    assert level("columns.v", night(schema=schema), columns={"v": {"max": 7}}) == "ok"
    assert level("columns.v", night(schema=schema), columns={"v": {"max": 6}}) == "fail"


# --- what comes of findings


def found_at(*levels: Any) -> list[Finding]:
    return [Finding(f"gate{n}", x, 1.0, 0.0, f"message {n}") for n, x in enumerate(levels)]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([], "ok"),
        (["ok", "ok"], "ok"),
        (["ok", "warn", "ok"], "warn"),
        (["fail", "warn", "ok"], "fail"),
        (["warn", "fail"], "fail"),
    ],
)
def test_the_worst_level_counts(levels: list[str], expected: str) -> None:
    assert worst(found_at(*levels)) == expected


def test_a_night_that_failed_is_refused_with_every_gate_that_failed() -> None:
    refuse_failed(found_at("ok", "warn"), "date=2026-11-14")
    with pytest.raises(GateError) as caught:
        refuse_failed(found_at("fail", "warn", "ok", "fail"), "date=2026-11-14")
    expected = "date=2026-11-14 is not published. gate0: message 0; gate3: message 3."
    assert str(caught.value) == expected
    assert caught.value.exit_code == 3


def test_findings_are_plain_json() -> None:
    assert found_at("warn")[0].to_json() == {
        "gate": "gate0",
        "level": "warn",
        "value": 1.0,
        "limit": 0.0,
        "message": "message 0",
    }


# --- settings


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is said of settings in a file that are wrong."""
    for name in list(os.environ):
        if name.startswith("MROT_") and name not in RESERVED_VARIABLES:
            monkeypatch.delenv(name)

    def told(text: str, **sources: Any) -> str:
        path = tmp_path / "nightly.yaml"
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_config(path, **sources)
        assert caught.value.exit_code == 78
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "nightly: {refit_evry: 7}",
            "nightly.refit_evry is not a setting. Did you mean refit_every?",
        ),
        ("refit_every: 7", "refit_every is not a setting. Did you mean nightly.refit_every?"),
        (
            "nightly: {refit_every: 0}",
            "nightly.refit_every: Input should be greater than or equal to 1",
        ),
        ("nightly: {refit_every: 1.5}", "nightly.refit_every: Input should be a valid integer"),
        ("nightly: {refit_drift: 0}", "nightly.refit_drift: Input should be greater than 0"),
        ("nightly: {training_partitions: 0}", "nightly.training_partitions"),
        (
            "nightly: {group_rows: 15}",
            "nightly.group_rows: Input should be greater than or equal to 16",
        ),
        ("nightly: {most_groups: 0}", "nightly.most_groups"),
        ("nightly: {key: ''}", "nightly.key: String should have at least 1 character"),
        ("nightly: {key: a/b}", "nightly.key: String should match pattern"),
        ("nightly: {key: a=b}", "nightly.key: String should match pattern"),
        ("nightly: {id: ''}", "nightly.id"),
        ("nightly: {model: ''}", "nightly.model"),
        ("nightly: {empty: maybe}", "nightly.empty: Input should be 'fail' or 'skip'"),
        ("nightly: {alert_seconds: 0}", "nightly.alert_seconds: Input should be greater than 0"),
        (
            "nightly: {alert_seconds: .inf}",
            "nightly.alert_seconds: Input should be a finite number",
        ),
        (
            "nightly: {alert_command: mail me}",
            "nightly.alert_command: Input should be a valid tuple",
        ),
        ("nightly: {exclude: label}", "nightly.exclude: Input should be a valid tuple"),
        ("gates: {psy: {warn: 1}}", "gates.psy is not a setting. Did you mean psi?"),
        ("gates: {psi: 0.3}", "gates.psi: Input should be a valid dictionary"),
        ("gates: {psi: {wran: 1}}", "gates.psi.wran is not a setting. Did you mean warn?"),
        ("gates: {psi: {warn: high}}", "gates.psi.warn: Input should be a valid number"),
        ("gates: {psi: {warn: .nan}}", "gates.psi.warn: Input should be a finite number"),
        (
            "gates: {new_columns: maybe}",
            "gates.new_columns: Input should be 'ok', 'warn' or 'fail'",
        ),
        ("gates: {columns: {t: {}}}", "gates.columns.t: a rule needs min, max or nulls"),
        ("gates: {columns: {t: {level: warn}}}", "gates.columns.t: a rule needs min, max or nulls"),
        ("gates: {columns: {t: {min: 9, max: 1}}}", "gates.columns.t: min 9.0 is above max 1.0"),
        ("gates: {columns: {t: {nulls: 2}}}", "gates.columns.t.nulls: Input should be less than"),
        (
            "gates: {columns: {t: {nulls: -1}}}",
            "gates.columns.t.nulls: Input should be greater than",
        ),
        (
            "gates: {columns: {t: {mni: 1}}}",
            "gates.columns.t.mni is not a setting. Did you mean min?",
        ),
        ("gates: {columns: {t: {min: 1, level: ok}}}", "gates.columns.t.level"),
        ("gates: {columns: [t]}", "gates.columns: Input should be a valid dictionary"),
    ],
)
def test_mistakes_in_settings_are_named_with_the_file(
    text: str, message: str, complaint: Callable[..., str]
) -> None:
    told = complaint(text)
    assert message in told
    assert "nightly.yaml" in told


@pytest.mark.parametrize(
    "text",
    [
        "gates: {psi: {warn: 0.5, fail: 0.25}}",
        "gates: {rows_below: {warn: 10, fail: 100}}",
    ],
)
def test_a_warning_that_could_never_be_given_is_a_mistake(
    text: str, complaint: Callable[..., str]
) -> None:
    assert "warn" in complaint(text)


def test_commands_are_not_taken_from_the_environment(complaint: Callable[..., str]) -> None:
    told = complaint("seed: 1", environment={"MROT_NIGHTLY__ALERT_COMMAND": "[rm, -rf]"})
    assert told.startswith("MROT_NIGHTLY__ALERT_COMMAND: commands")
    assert "-rf" not in told


def test_the_address_of_a_webhook_is_no_setting(complaint: Callable[..., str]) -> None:
    assert load_config(environment={"MROT_WEBHOOK": "https://hooks.example.com/x"}) == Config()
    assert "is not a setting" in complaint("nightly: {webhook: https://hooks.example.com/x}")


def test_gates_may_be_set_by_the_environment_and_by_flags() -> None:
    environment = {
        "MROT_GATES__PSI": "{warn: 0.1, fail: 0.4}",
        "MROT_GATES__NEW_COLUMNS": "fail",
        "MROT_NIGHTLY__REFIT_EVERY": "7",
        "MROT_NIGHTLY__REFIT_FROM": "2026-11-14",
    }
    overrides = {"nightly": {"refit_every": 14}}
    found = load_config(environment=environment, overrides=overrides)
    assert found.gates.psi == Limit(warn=0.1, fail=0.4)
    assert found.gates.new_columns == "fail"
    assert (found.nightly.refit_every, found.nightly.refit_from) == (14, "2026-11-14")


@pytest.mark.parametrize("name", ["keep", "exclude"])
def test_columns_may_be_listed_by_the_environment(name: str) -> None:
    found = load_config(environment={f"MROT_NIGHTLY__{name.upper()}": "[site, unit]"})
    assert getattr(found.nightly, name) == ("site", "unit")


@pytest.mark.parametrize("text", ["2026-11-14", "'2026-11-14'"])
def test_a_day_may_be_written_with_or_without_quotes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "nightly.yaml"
    path.write_text(f"nightly: {{refit_from: {text}}}")
    assert load_config(path, environment={}).nightly.refit_from == "2026-11-14"


def test_a_limit_that_is_given_replaces_the_whole_default() -> None:
    """What is not given is not checked."""
    found = full_config({"gates": {"flagged_above": {"fail": 0.9}}}).gates
    assert found.flagged_above == Limit(warn=None, fail=0.9)
    assert found.psi == Limit(warn=0.25)
