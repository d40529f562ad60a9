"""The benchmark of scale as Markdown."""

from collections.abc import Sequence
from typing import Any

from benchmarks.memory import COMMANDS
from benchmarks.scale_findings import (
    Pick,
    Results,
    Spread,
    command_figure,
    command_rate,
    efficiencies,
    growth,
    limit_rate,
    peer_rate,
    score_rate,
    stage_rate,
    whole_rate,
)
from benchmarks.scale_grid import Size, is_long
from benchmarks.scale_peers import PEERS
from benchmarks.scale_targets import Target, targets

Line = tuple[str, str, str, Pick]
"""How a line is called, whose cells it shows, and what of them."""

OURS: tuple[Line, ...] = (
    ("mrot-scale: score stage", "ours", "plain", stage_rate("score")),
    ("mrot-scale: score command", "ours", "plain", command_rate("score")),
    ("mrot-scale: ingest, fit and score", "ours", "plain", whole_rate),
)
_ONE_PASS = ("ECOD", "k-NN", "exact MROT")
"""Peers that have nothing to fit before they score."""

LIMITS = {
    "copy": "memory copy of float32 rows",
    "zarr": "reading the Zarr store",
    "trees": "compiled tree walk",
    "tasks": "score tasks without Dask",
}

_NOTES = """\
Medians of repeats with their range; "*" marks what was measured once because a command took over
three minutes, "@" the rows a peer was cut to so as to go in a minute. Ours reads from disk and
writes to it, in processes that are started for each command; the table and the store are in the
page cache. Peers have their rows in memory and are warm; only fitting and scoring count.
IsolationForest scores on two threads by joblib's configuration ("as it comes", n_jobs counts for
fitting alone), k-NN on two, the others on one.
"""


def lines_of_rates() -> list[Line]:
    """Return the lines of all methods: ours, then the peers."""
    found = list(OURS)
    for name in PEERS:
        if name in _ONE_PASS:
            found.append((f"{name}: fit and score in one", "peer", name, peer_rate))
        else:
            found.append((f"{name}: score", "peer", name, score_rate))
            found.append((f"{name}: fit and score", "peer", name, peer_rate))
    return found


def report(results: Results, head: str) -> str:
    """Return the whole report."""
    parts = [
        f"# Scale\n\n{head}\n\n{_NOTES}",
        f"## Targets\n\n{target_table(targets(results))}",
        f"## Rows per second\n\n{rate_table(results)}",
        f"## Ours by command\n\n{command_table(results)}",
        f"## Stages of fit, seconds\n\n{fit_table(results)}",
        f"## Exponents in rows\n\n{growth_table(results)}",
        f"## Limits, rows per second\n\n{limit_table(results)}",
        f"## More workers\n\n{efficiency_table(results)}",
        f"## Trees that are given efforts\n\n{hybrid_table(results)}",
    ]
    if results.failures:
        parts.append(f"## Failures\n\n{failure_table(results)}")
    return "\n\n".join(parts) + "\n"


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def target_table(found: Sequence[Target]) -> str:
    lines = [
        [
            target.name,
            "-" if target.figure is None else f"{target.figure:.3g}",
            f"{'at least' if target.is_least else 'at most'} {target.bound:g}",
            target.at,
            target.verdict,
        ]
        for target in found
    ]
    return markdown(["figure", "measured", "target", "at", "verdict"], lines)


def rate_table(results: Results) -> str:
    lines = [
        [name, *(_rate(results, kind, method, size, pick) for size in results.sizes)]
        for name, kind, method, pick in lines_of_rates()
    ]
    return markdown(["method", *map(str, results.sizes)], _not_empty(lines))


def _rate(results: Results, kind: str, method: str, size: Size, pick: Pick) -> str:
    text = spread_text(results.spread(pick, kind, method, size))
    cells = results.of(kind, method, size)
    if len(cells) == 1 and is_long(cells[0]):
        text += " *"
    cut = min((cell.get("measured_rows", size.rows) for cell in cells), default=size.rows)
    return f"{text} @ {cut:,}" if cut < size.rows else text


def spread_text(found: Spread | None) -> str:
    """Return a rate with its range."""
    if found is None:
        return "-"
    if found.repeats == 1:
        return short(found.median)
    return f"{short(found.median)} ({short(found.low)}..{short(found.high)})"


def short(value: float) -> str:
    """Return a number in three digits and a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def _not_empty(lines: list[list[str]]) -> list[list[str]]:
    return [line for line in lines if any(cell != "-" for cell in line[1:])]


def command_table(results: Results) -> str:
    head = ["size", "workers", "command", "seconds", "stages, s", "beside, s"]
    head += ["driver, MiB", "largest worker", "all processes", "MB read", "MB written"]
    lines = [
        _command_line(results, size, workers, command)
        for size in results.sizes
        for workers in sorted(results.grid.workers, reverse=True)
        for command in COMMANDS
        if results.of("ours", "plain", size, workers)
    ]
    return markdown(head, lines)


def _command_line(results: Results, size: Size, workers: int, command: str) -> list[str]:
    def told(pick: Pick, form: str) -> str:
        found = results.spread(pick, "ours", "plain", size, workers)
        if found is None:
            return "-"
        ends = f" ({found.low:{form}}..{found.high:{form}})" if found.repeats > 1 else ""
        return f"{found.median:{form}}{ends}"

    def moved(name: str) -> float | None:
        pick: Pick = lambda cell: cell["commands"][command]["bytes"][name] / 1e6  # noqa: E731
        return results.middle(pick, "ours", "plain", size, workers)

    seconds = [told(command_figure(command, n), ".1f") for n in ("seconds", "stage_s", "beside_s")]
    memory = [
        f"{results.middle(command_figure(command, n), 'ours', 'plain', size, workers) or 0:.0f}"
        for n in ("driver_mib", "worker_mib", "tree_mib")
    ]
    bytes_ = [f"{moved(name) or 0:,.0f}" for name in ("rchar", "wchar")]
    return [str(size), str(workers), command, *seconds, *memory, *bytes_]


def fit_table(results: Results) -> str:
    sizes = [size for size in results.sizes if results.of("ours", "plain", size)]
    cells = [results.of("ours", "plain", size)[0] for size in sizes]
    stages = list(dict.fromkeys(s for cell in cells for s in cell["commands"]["fit"]["stages"]))

    def seconds(stage: str, size: Size) -> str:
        pick: Pick = lambda cell: cell["commands"]["fit"]["stages"].get(stage)  # noqa: E731
        found = results.middle(pick, "ours", "plain", size)
        return "-" if found is None else f"{found:.1f}"

    lines = [[stage, *(seconds(stage, size) for size in sizes)] for stage in stages]
    return markdown(["stage", *map(str, sizes)], lines)


def growth_table(results: Results) -> str:
    names = ("stage_s", "driver_mib", "worker_mib", "tree_mib")
    lines = [
        [
            g["command"],
            str(g["features"]),
            f"{g['from_rows']:,} to {g['to_rows']:,}",
            *("-" if g[name] is None else f"{g[name]:.3f}" for name in names),
        ]
        for g in growth(results)
    ]
    head = ["command", "features", "rows", "time of stages", "driver", "worker", "all processes"]
    return markdown(head, lines)


def limit_table(results: Results) -> str:
    lines = []
    for name, label in LIMITS.items():
        for processes in sorted({1, results.grid.most_workers}):
            rates = [results.spread(limit_rate, "limit", name, s, processes) for s in results.sizes]
            lines.append([f"{label}, {processes}", *map(spread_text, rates)])
    for processes in sorted({1, results.grid.most_workers}):
        rates = [
            results.spread(_lightgbm_rate, "limit", "trees", s, processes) for s in results.sizes
        ]
        lines.append([f"LightGBM on the same trees, {processes}", *map(spread_text, rates)])
    lines.append(["score stage / reading Zarr", *(_share(results, s) for s in results.sizes)])
    return markdown(["what, by processes", *map(str, results.sizes)], _not_empty(lines))


def _lightgbm_rate(cell: dict[str, Any]) -> float:
    return float(cell["lightgbm_rows_per_s"])


def _share(results: Results, size: Size) -> str:
    ours = results.middle(stage_rate("score"), "ours", "plain", size)
    limit = results.middle(limit_rate, "limit", "zarr", size)
    return f"{ours / limit:.1%}" if ours and limit else "-"


def efficiency_table(results: Results) -> str:
    lines = [
        [
            e["command"],
            e["at"],
            f"{e['from']} to {e['to']}",
            " to ".join(f"{seconds:.1f}" for seconds in e["seconds"]),
            f"{e['efficiency']:.2f}",
        ]
        for e in efficiencies(results)
    ]
    return markdown(["command", "at", "workers", "seconds of stages", "efficiency"], lines)


def hybrid_table(results: Results) -> str:
    size, lines = results.grid.reference, []
    for method in ("plain", "auto", "always"):
        cells = results.of("ours", method, size)
        for command in COMMANDS if cells else ():
            seconds = results.middle(command_figure(command, "seconds"), "ours", method, size)
            rate = results.spread(stage_rate(command), "ours", method, size)
            line = [method, cells[0]["model_kind"], command, f"{seconds:.1f}", spread_text(rate)]
            lines.append(line)
    head = ["hybrid", "model", "command", "seconds", "rows per second of stages"]
    return f"At {size}.\n\n" + markdown(head, lines)


def failure_table(results: Results) -> str:
    lines = [
        [cell["method"], f"{cell['n_rows']:,} x {cell['n_features']}", cell["error"]]
        for cell in results.failures
    ]
    return markdown(["what", "size", "error"], lines)
