"""What a night must be before it is published: figures against limits, and what to say of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mrot_scale.config.nightly import ColumnRule, GatesConfig, Limit
from mrot_scale.drift import Drift
from mrot_scale.errors import GateError
from mrot_scale.storing.schema import Column, Schema

Level = Literal["ok", "warn", "fail"]
_WORST: dict[str, int] = {"ok": 0, "warn": 1, "fail": 2}
_CHANCES = 2
"""A drift counts from the limit and this many times what chance gives on."""


@dataclass(frozen=True)
class Finding:
    """One gate and what it found."""

    gate: str
    level: Level
    value: float | None
    limit: float | None
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Night:
    """The figures of a staged night."""

    n_input: int | None
    """Rows the input says it has, where it says so."""

    n_rows: int
    n_missing: int
    n_flagged: int
    n_previous: int | None
    """Rows of the partition before."""

    training: Sequence[Drift] | None
    """Against the training rows, the score last; None where the model does not know them."""

    previous: Sequence[Drift] | None
    """Against the partition before; None where there is none to compare."""

    schema: Schema
    """Columns as stored, with their statistics."""

    @property
    def flagged_share(self) -> float:
        return self.n_flagged / max(self.n_rows, 1)


def judge(night: Night, gates: GatesConfig) -> list[Finding]:
    """Return what every gate finds."""
    return [
        *_rows(night, gates),
        *_scores(night, gates),
        *_drifts(night.training, "", "the training rows", gates),
        *_drifts(night.previous, "previous_", "the partition before", gates),
        *_columns(night.schema, gates.columns),
    ]


def check_columns(
    known: Iterable[str], found: Iterable[str], carried: Iterable[str], gates: GatesConfig
) -> list[Finding]:
    """Return what is to be said of columns that are missing, or that no model knows."""
    have, want = list(found), list(known)
    missing = [name for name in want if name not in have]
    new = [name for name in have if name not in {*want, *carried}]
    level: Level = "fail" if missing else "ok"
    told = f"missing column(s) {', '.join(map(repr, missing))}" if missing else "all columns there"
    findings = [Finding("schema", level, float(len(missing)), 0.0, told)]
    level = gates.new_columns if new else "ok"
    told = f"new column(s) {', '.join(map(repr, new))}, not scored" if new else "no new columns"
    return [*findings, Finding("new_columns", level, float(len(new)), 0.0, told)]


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level among findings."""
    levels = [finding.level for finding in findings]
    return max(levels, key=_WORST.__getitem__, default="ok")


def refuse_failed(findings: Sequence[Finding], name: str) -> None:
    """Raise where a gate failed."""
    failed = [finding for finding in findings if finding.level == "fail"]
    if failed:
        told = "; ".join(f"{f.gate}: {f.message}" for f in failed)
        raise GateError(f"{name} is not published. {told}.")


def above(gate: str, value: float, limit: Limit, told: str) -> Finding:
    """Judge a figure that must not be too large."""
    for level, bound in (("fail", limit.fail), ("warn", limit.warn)):
        if bound is not None and value > bound:
            return Finding(gate, level, value, bound, f"{told}, more than {_text(bound)}")  # type: ignore[arg-type]
    return Finding(gate, "ok", value, limit.warn if limit.fail is None else limit.fail, told)


def below(gate: str, value: float, limit: Limit, told: str) -> Finding:
    """Judge a figure that must not be too small."""
    for level, bound in (("fail", limit.fail), ("warn", limit.warn)):
        if bound is not None and value < bound:
            return Finding(gate, level, value, bound, f"{told}, less than {_text(bound)}")  # type: ignore[arg-type]
    return Finding(gate, "ok", value, limit.warn if limit.fail is None else limit.fail, told)


def _text(bound: float) -> str:
    return f"{bound:,g}"


def _rows(night: Night, gates: GatesConfig) -> Iterator[Finding]:
    same = night.n_input in (None, night.n_rows)
    n_input = night.n_rows if night.n_input is None else night.n_input
    told = f"{night.n_rows:,} rows scored of {n_input:,}"
    yield Finding("row_count", "ok" if same else "fail", night.n_rows, night.n_input, told)
    yield below("rows_below", night.n_rows, gates.rows_below, f"{night.n_rows:,} rows")
    if night.n_previous:
        change = abs(night.n_rows / night.n_previous - 1)
        told = f"{night.n_rows:,} rows, {night.n_previous:,} in the partition before"
        yield above("rows_change", change, gates.rows_change, f"{told} ({change:.0%})")


def _scores(night: Night, gates: GatesConfig) -> Iterator[Finding]:
    missing = night.n_missing / max(night.n_rows, 1)
    told = f"{night.n_missing:,} of {night.n_rows:,} rows have no score"
    yield above("missing_scores", missing, gates.missing_scores, told)
    told = f"{night.flagged_share:.2%} of the rows are flagged"
    yield above("flagged_above", night.flagged_share, gates.flagged_above, told)
    yield below("flagged_below", night.flagged_share, gates.flagged_below, told)


def _drifts(
    drifts: Sequence[Drift] | None, prefix: str, against: str, gates: GatesConfig
) -> Iterator[Finding]:
    """Judge the features together, and the score by limits of its own against the training rows."""
    if drifts is None:
        return
    columns = [drift for drift in drifts if not drift.is_score or prefix]
    score = [drift for drift in drifts if drift.is_score and not prefix]
    for some, name in ((columns, prefix), (score, "score_")):
        if some:
            yield _worst_psi(some, f"{name}psi", against, getattr(gates, f"{name}psi"))
            yield _worst_ks(some, f"{name}ks", against, getattr(gates, f"{name}ks"))
    if columns and not prefix:
        yield _worst_nulls(columns, gates.nulls)


def _worst_psi(drifts: Sequence[Drift], gate: str, against: str, limit: Limit) -> Finding:
    drift = max(drifts, key=lambda d: d.psi - _CHANCES * d.chance)
    beyond = max(drift.psi - _CHANCES * drift.chance, 0.0)
    return above(gate, beyond, limit, f"{drift.name!r} has PSI {drift.psi:.3f} against {against}")


def _worst_ks(drifts: Sequence[Drift], gate: str, against: str, limit: Limit) -> Finding:
    drift = max(drifts, key=lambda d: d.ks - _ks_chance(d))
    beyond = max(drift.ks - _ks_chance(drift), 0.0)
    return above(gate, beyond, limit, f"{drift.name!r} has KS {drift.ks:.3f} against {against}")


def _ks_chance(drift: Drift) -> float:
    """Return what a KS reaches by chance in few rows: `chance` is bins / rows."""
    return float((drift.chance / 10) ** 0.5)


def _worst_nulls(drifts: Sequence[Drift], limit: Limit) -> Finding:
    drift = max(drifts, key=lambda d: d.nulls - d.nulls_chance)
    told = f"{drift.name!r} misses {max(drift.nulls, 0):.1%} more of its values than in training"
    return above("nulls", max(drift.nulls - drift.nulls_chance, 0.0), limit, told)


def _columns(schema: Schema, rules: dict[str, ColumnRule]) -> Iterator[Finding]:
    """Judge single columns by the rules for them."""
    positions = {column.name: _positions(schema, column) for column in schema.columns}
    for name, rule in rules.items():
        gate = f"columns.{name}"
        if name not in positions:
            yield Finding(gate, rule.level, None, None, f"{name!r} is no column that is scored")
            continue
        broken = [told for place in positions[name] for told in _broken(schema, place, rule)]
        told = "; ".join(broken) or f"{name!r} is as it must be"
        yield Finding(gate, rule.level if broken else "ok", None, None, told)


def _positions(schema: Schema, column: Column) -> range:
    """Return the places of a column's own values: not of what a time became beside them."""
    first = schema.position(column)
    return range(first, first + (column.width if column.kind == "vector" else 1))


def _broken(schema: Schema, position: int, rule: ColumnRule) -> Iterator[str]:
    name, found = schema.features[position], schema.statistics[position]
    categories = dict(schema.category_features())
    missing = categories[position].n_missing if position in categories else found.missing
    share = missing / max(schema.n_rows, 1)
    if rule.nulls is not None and share > rule.nulls:
        yield f"{name!r} misses {share:.1%} of its values, more than {rule.nulls:.1%}"
    if rule.min is not None and found.min is not None and found.min < rule.min:
        yield f"{name!r} has {found.min:g}, below {rule.min:g}"
    if rule.max is not None and found.max is not None and found.max > rule.max:
        yield f"{name!r} has {found.max:g}, above {rule.max:g}"
