"""What a night costs beside plain scoring: the same Parquet partition by `nightly` and by `score`.

    python -m benchmarks.nightly [--rows 1e6] [--features 32] [--repeats 3] [--out DIR]

Both are commands in processes of their own and take turns; the model is there before. The night
before has been scored, as it has on any but the first night. Medians are compared.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.memory import run_watched
from benchmarks.record import claim_folder, json_lines, versions
from benchmarks.tables import write_table

REPORT = "nightly.json"
NIGHTS = ("2026-11-13", "2026-11-14")
_LIBRARIES = ("numpy", "zarr", "dask", "distributed", "lightgbm", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.out:
        claim_folder(options.out, REPORT)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        rows = measure(Path(folder), options)
    print(table(cost(rows)), flush=True)
    if options.out:
        found = {"rows": rows, "cost": cost(rows), "versions": versions(_LIBRARIES)}
        (options.out / REPORT).write_text(json_lines(found), encoding="utf-8")


def measure(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the seconds of both commands, repeat by repeat."""
    for night in NIGHTS:
        place = folder / "lake" / f"date={night}"
        place.mkdir(parents=True)
        write_table(place / "part-0.parquet", int(options.rows), options.features)
    workers = ["--workers", str(options.workers)]
    run_watched(_nightly(NIGHTS[0], *workers), folder)
    model = json.loads(next((folder / "out" / "models").glob("*/entry.json")).read_text())["id"]
    rows = []
    for repeat in range(options.repeats):
        words = {
            "score": _score(model, repeat, *workers),
            "nightly": _nightly(NIGHTS[1], "--again", *workers),
        }
        for command in reversed(list(words)) if repeat % 2 else list(words):
            found = run_watched(words[command], folder)
            rows.append({"command": command, "repeat": repeat, **found})
    return rows


def _nightly(night: str, *more: str) -> list[str]:
    return ["-m", "mrot_scale", "nightly", "lake", "out", "--date", night, *more]


def _score(model: str, repeat: int, *more: str) -> list[str]:
    partition, out = f"lake/date={NIGHTS[1]}", f"scores{repeat}"
    words = ["-m", "mrot_scale", "score", f"out/models/{model}/model", partition, out]
    return [*words, "--parquet", f"{out}-parquet", *more]


def cost(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of both commands, and how much longer a night takes."""
    seconds = {
        name: median(row["seconds"] for row in rows if row["command"] == name)
        for name in ("score", "nightly")
    }
    return {
        **seconds,
        "repeats": len(rows) // 2,
        "added": seconds["nightly"] / seconds["score"] - 1,
    }


def table(found: dict[str, Any]) -> str:
    """Return the comparison as Markdown."""
    return (
        "| repeats | score, s | nightly, s | added |\n|---|---|---|---|\n"
        f"| {found['repeats']} | {found['score']:.1f} | {found['nightly']:.1f} | "
        f"{found['added']:+.1%} |"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nightly", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scratch", type=Path)
    return parser


if __name__ == "__main__":
    main()
