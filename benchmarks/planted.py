"""Which kinds of planted anomalies are found, beside peers.

    python -m benchmarks.planted [--tables pumps,skewed] [--rows 20000] [--share 0.01] [--seeds 1]
        [--loneliness 0.5]

The tables are those of `benchmarks.explanations`: pump readings, columns that a few causes explain,
clusters, and skewed columns; and one of 200 columns, with a quarter of the rows and as many planted
ones. Every detector learns from one half of the rows, without labels, and
scores the other. Ours stands there as it comes, and with `loneliness`. Peers see standardised
columns, without which neighbour distances would see the widest alone.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import chosen_names, exit_code
from benchmarks.explanation_tables import Planted, planted_tables, wide_table
from benchmarks.quality_families import LIBRARIES
from benchmarks.quality_peers import PEERS
from benchmarks.record import claim_folder, json_lines, versions
from mrot_scale import MROT
from mrot_scale.config.scoring import Method

REPORT = "planted.json"
TABLES = ("pumps", "correlated", "clusters", "skewed", "wide")
_METHODS: tuple[Method, ...] = ("model", "effort")
_PEER_KEYS = ("iforest", "knn", "lof")

Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return exit_code(run, _parser().parse_args(arguments))


def run(options: argparse.Namespace) -> None:
    """Plant, fit, score, and print what was found."""
    options.tables = chosen_names(options.tables, list(TABLES), "--tables")
    if options.out:
        claim_folder(options.out, REPORT)
    rows = [row for seed in range(options.seeds) for row in measured(options, seed)]
    print(table(rows))
    if options.out:
        found = {"rows": rows, "versions": versions(LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def measured(options: argparse.Namespace, seed: int) -> Iterator[dict[str, Any]]:
    """Yield for each table, kind of anomaly and method what was found."""
    for planted in tables_of(int(options.rows), options.share, seed):
        if planted.name not in options.tables:
            continue
        order = np.random.default_rng(seed).permutation(len(planted.rows))
        train, test = np.sort(order[::2]), np.sort(order[1::2])
        parts = (planted.rows[train], planted.rows[test])
        scores = ours(*parts, seed, 0.0) | ours(*parts, seed, options.loneliness)
        scores |= peers(*parts, seed)
        yield from found_by_kind(planted, test, scores, seed)


def tables_of(n_rows: int, share: float, seed: int) -> Iterator[Planted]:
    """Yield all tables of one seed."""
    yield from planted_tables(n_rows, share, seed)
    yield wide_table(n_rows // 4, int(share * n_rows), seed)


def ours(train: Floats, test: Floats, seed: int, loneliness: float) -> dict[str, Floats]:
    """Return our scores of the test rows, by both methods."""
    detector = MROT(random_state=seed, n_jobs=2, loneliness=loneliness).fit(train)
    suffix = f", loneliness {loneliness:g}" if loneliness else ""
    return {
        f"{method}{suffix}": detector.anomaly_score(test, method=method).astype(np.float64)
        for method in _METHODS
    }


def peers(train: Floats, test: Floats, seed: int) -> dict[str, Floats]:
    """Return the peers' scores of the test rows."""
    center, scale = train.mean(axis=0), train.std(axis=0)
    seen = [(part - center) / np.where(scale > 0, scale, 1.0) for part in (train, test)]
    scores = {}
    for key in _PEER_KEYS:
        (peer,) = PEERS[key].score(seen[0], seen[1], seed)
        scores[peer.method] = peer.scores
    return scores


def found_by_kind(
    planted: Planted, test: NDArray[np.int64], scores: dict[str, Floats], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield both areas for the anomalies of each kind among normal rows."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    kind = planted.kind[test]
    for name in (str(k) for k in np.unique(kind) if k != "normal"):
        among = np.isin(kind, [name, "normal"])
        labels = kind[among] == name
        for method, values in scores.items():
            yield {
                "table": planted.name,
                "kind": name,
                "method": method,
                "seed": seed,
                "roc": 100 * float(roc_auc_score(labels, values[among])),
                "pr": 100 * float(average_precision_score(labels, values[among])),
            }


def table(rows: list[dict[str, Any]]) -> str:
    """Return AUC-ROC / AUC-PR as a Markdown table, means over seeds."""
    methods = list(dict.fromkeys(r["method"] for r in rows))
    kinds = list(dict.fromkeys((r["table"], r["kind"]) for r in rows))
    lines = [f"| table | kind | {' | '.join(methods)} |", "|---" * (2 + len(methods)) + "|"]
    for where in kinds:
        mine = [r for r in rows if (r["table"], r["kind"]) == where]
        cells = [_cell([r for r in mine if r["method"] == method]) for method in methods]
        lines.append(f"| {' | '.join((*where, *cells))} |")
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    roc, pr = (float(np.mean([r[area] for r in rows])) for area in ("roc", "pr"))
    return f"{roc:.1f} / {pr:.1f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", help=f"comma-separated, of {', '.join(TABLES)}")
    parser.add_argument("--rows", type=float, default=20_000)
    parser.add_argument("--share", type=float, default=0.01, help="share of planted rows")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--loneliness", type=float, default=0.5, help="shown beside the default")
    parser.add_argument("--out", type=Path, help="folder for the figures as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
