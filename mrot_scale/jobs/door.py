"""What is refused before the first task: values, columns and conditions that cannot work."""

from mrot_scale.conditions import parse_condition
from mrot_scale.config.job import Config
from mrot_scale.config.method import NonFinite
from mrot_scale.errors import ConfigError, DataError, OutputError
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore

_ROWS_SHOWN = 5


def check_absent(output: Location) -> None:
    """Refuse an output that exists, where nothing is to be gone on with."""
    if output.exists():
        raise OutputError(f"{output} exists already. Choose another path or remove it.")


def check_fit_input(store: FeatureStore, config: Config, exclude: str | None) -> None:
    """Refuse a store that cannot be fitted as configured."""
    if config.regressor == "custom":
        raise ConfigError("regressor 'custom' is an object: it can only be used with MROT.")
    if store.n_rows < 2:
        raise DataError(f"{store.location} has {store.n_rows} row(s); fitting needs more.")
    check_missing(store, config.non_finite)
    check_exclusion(store, exclude)


def check_missing(store: FeatureStore, policy: NonFinite) -> None:
    """Refuse missing and infinite numbers where the policy says so, with counts and first rows."""
    if policy != "reject":
        return
    numbers = zip(store.schema.features, store.schema.statistics, strict=True)
    bad = [(name, s) for name, s in numbers if s.missing or s.infinite]
    if not bad:
        return
    counts = ", ".join(f"{n!r}: {s.missing} NaN, {s.infinite} inf" for n, s in bad[:_ROWS_SHOWN])
    more = f" and {len(bad) - _ROWS_SHOWN} more column(s)" if len(bad) > _ROWS_SHOWN else ""
    rows = sorted({row for _, s in bad for row in s.first_bad_rows})[:_ROWS_SHOWN]
    raise DataError(
        f"{store.location} has values that are not finite ({counts}{more}), first in rows "
        f"{', '.join(map(str, rows))}. Clean them, or set non_finite: impute or score-nan."
    )


def check_condition(condition: str | None) -> None:
    """Refuse a condition that cannot be read."""
    if condition is not None:
        parse_condition(condition)


def check_exclusion(store: FeatureStore, condition: str | None) -> None:
    """Refuse a condition on columns the store cannot give, or on values they cannot have."""
    if condition is None:
        return
    parsed = parse_condition(condition)
    known = [*store.schema.carried, store.schema.id_column]
    known += [c.name for c in store.schema.columns]
    parsed.check_columns(list(dict.fromkeys(known)))
    first = store.read_chunk(0)
    parsed.mask(store.columns(0, first, sorted(parsed.columns)).slice(0, 0))
