"""Numbers, shares and times as people read them."""

from typing import Any

_THOUSAND, _LARGE = 1_000, 1e7
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: Any) -> str:
    """Return a number with four digits that count, thousands apart."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-4 <= abs(value) < _LARGE:
        mantissa, _, power = f"{value:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
    if abs(value) >= _THOUSAND:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def brief(value: float) -> str:
    """Return a number for an axis: 12k, 3.5M, 0.02."""
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    found = f"{value:.3g}"
    mantissa, has_power, power = found.partition("e")
    return f"{mantissa}e{int(power)}" if has_power else found


def share(value: Any) -> str:
    """Return a share in percent, with more digits the smaller it is."""
    if value is None:
        return "-"
    percent = round(100.0 * value, 6)
    if percent == round(percent):
        return f"{percent:.0f}%"
    if abs(percent) >= 10:
        return f"{percent:.1f}%"
    return f"{percent:.2f}%" if abs(percent) >= 0.01 else f"{percent:.2g}%"


def seconds(value: Any) -> str:
    """Return a duration: 0.4 s, 12.3 s, 4 min 05 s, 2 h 10 min."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def moment(text: Any) -> str:
    """Return a time as ISO writes it, without fractions of a second."""
    found = str(text or "").replace("T", " ")
    date, _, rest = found.partition(".")
    if not rest:
        return found.replace("+00:00", " UTC")
    zone = rest[rest.index("+") :] if "+" in rest else ""
    return f"{date}{' UTC' if zone == '+00:00' else zone}"
