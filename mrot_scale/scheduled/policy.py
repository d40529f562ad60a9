"""Which partition's model scores which partition: a function of dates and policy alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from mrot_scale.scheduled.partitions import as_day, in_order, values_until


@dataclass(frozen=True)
class Promotion:
    """A model somebody chose for all partitions from one on."""

    start: str
    model: str


def first_fit(value: str, fitted: Sequence[str], start: str | None) -> str:
    """Return the partition the first model is, or will be, fitted for."""
    if start is not None and not is_before(value, start):
        return start
    known = [v for v in fitted if start is None or is_before(v, start)]
    return in_order(known)[0] if known else value


def is_before(value: str, other: str) -> bool:
    return value != other and in_order([value, other])[0] == value


def due(value: str, first: str, every: int | None, values: Sequence[str]) -> str:
    """Return the partition whose model a partition gets when models are made every so often.

    Partitions before the first model get that one.
    """
    if every is None or is_before(value, first):
        return first
    day, start = as_day(value), as_day(first)
    if day is not None and start is not None:
        return (start + timedelta(days=(day - start).days // every * every)).isoformat()
    since = [v for v in values_until(values, value) if not is_before(v, first)]
    place = since.index(value) if value in since else max(len(since) - 1, 0)
    return since[place // every * every] if since else first


def promoted(value: str, fitted_for: str, promotions: Sequence[Promotion]) -> Promotion | None:
    """Return the promotion in force: the last one up to the partition, unless a fit came later."""
    started = [p for p in promotions if not is_before(value, p.start)]
    if not started:
        return None
    last = {p.start: p for p in started}
    found = last[in_order(list(last))[-1]]
    came_later = is_before(found.start, fitted_for) and not is_before(value, fitted_for)
    return None if came_later else found
