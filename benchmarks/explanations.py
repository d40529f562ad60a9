"""Whether explanations name the right columns.

    python -m benchmarks.explanations [--rows 20000] [--share 0.01] [--seeds 1] [--out DIR]

Anomalies are planted in columns that the table remembers: in the demo's pump readings and in three
tables of other shapes. A row is explained rightly if its two strongest columns were both planted
(or the one, where only one was). Beside the product's contributions stand the exact Shapley values
of the trees over plain columns. *undone*: rows whose score falls below the threshold once their two
strongest columns are what they are in the normal rows that they resemble.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.explanation_tables import Planted, planted_tables
from benchmarks.record import claim_folder, json_lines, versions
from mrot_scale import MROT
from mrot_scale.explaining import column_contributions
from mrot_scale.model.hybrid import Explaining
from mrot_scale.scoring import FittedModel

REPORT = "explanations.json"
_LIBRARIES = ("numpy", "scipy", "lightgbm")

Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> None:
    """Plant, fit, explain, and print how often the right columns were named."""
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    rows = [row for seed in range(options.seeds) for row in measured(options, seed)]
    print(table(rows))
    if options.out:
        found = {"rows": rows, "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def measured(options: argparse.Namespace, seed: int) -> Iterator[dict[str, Any]]:
    """Yield for each table and kind of anomaly how it was explained."""
    for planted in planted_tables(int(options.rows), options.share, seed):
        detector = MROT(random_state=seed, n_jobs=2).fit(planted.rows)
        yield from explained(planted, detector, seed)


def explained(planted: Planted, detector: MROT, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the findings of one table, by kind of anomaly and by way of explaining."""
    model = detector.model_
    scores = detector.anomaly_score(planted.rows)
    flagged = scores > model.threshold("model", detector.contamination)
    for name, contribute in _ways(model).items():
        for kind in planted.kinds:
            mine = np.flatnonzero(planted.kind == kind)
            found = contribute(model.rounded(planted.rows[mine]))
            right = is_right(found, planted.disturbed[mine])
            seen = flagged[mine]
            yield {
                "table": planted.name,
                "seed": seed,
                "kind": kind,
                "by": name,
                "model": model.score_model.kind,
                "planted": len(mine),
                "flagged": int(seen.sum()),
                "right": float(right.mean()),
                "right_flagged": float(right[seen].mean()) if seen.any() else None,
                "undone": _undone(detector, planted.rows[mine[seen]], found[seen]),
            }


def _ways(model: FittedModel) -> dict[str, Any]:
    trees = model.score_model
    assert isinstance(trees, Explaining)
    return {
        "contributions": lambda rows: column_contributions(model, rows),
        "Shapley of trees": trees.contributions,
    }


def is_right(contributions: Floats, disturbed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each row whether its two strongest columns are planted ones, as far as there are."""
    strongest = np.argsort(-contributions, axis=1, kind="stable")[:, :2]
    hits = np.take_along_axis(disturbed, strongest, axis=1).sum(axis=1)
    return np.asarray(hits >= np.minimum(disturbed.sum(axis=1), 2))


def _undone(detector: MROT, rows: Floats, contributions: Floats) -> float | None:
    """Return the share of flagged rows no longer flagged without their two strongest columns."""
    model = detector.model_
    if len(rows) == 0 or model.normal is None or model.whole_view is None:
        return None
    view = model.whole_view.view
    usual = view.restored(model.normal.compare(view.apply(rows)).mean)
    strongest = np.argsort(-contributions, axis=1, kind="stable")[:, :2]
    mended = rows.copy()
    np.put_along_axis(mended, strongest, np.take_along_axis(usual, strongest, axis=1), axis=1)
    return float(np.mean(detector.predict(mended) == 1))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the findings as a Markdown table, seeds together."""
    head = "| table | kind | by | planted | right | flagged | of these right | undone |"
    groups = list(dict.fromkeys((r["table"], r["kind"], r["by"]) for r in rows))
    lines = [
        _line([r for r in rows if (r["table"], r["kind"], r["by"]) == group]) for group in groups
    ]
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *lines])


def _line(rows: list[dict[str, Any]]) -> str:
    first = rows[0]
    planted, flagged = (sum(r[name] for r in rows) for name in ("planted", "flagged"))
    right = sum(r["right"] * r["planted"] for r in rows) / planted
    parts = [_mean_of_flagged(rows, name, flagged) for name in ("right_flagged", "undone")]
    return (
        f"| {first['table']} | {first['kind']} | {first['by']} | {planted} | {right:.1%} | "
        f"{flagged} | {parts[0]} | {parts[1]} |"
    )


def _mean_of_flagged(rows: list[dict[str, Any]], name: str, flagged: int) -> str:
    known = [r[name] * r["flagged"] for r in rows if r[name] is not None]
    return f"{sum(known) / flagged:.1%}" if known and flagged else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=float, default=20_000)
    parser.add_argument("--share", type=float, default=0.01, help="share of planted rows")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    return parser


if __name__ == "__main__":
    main()
