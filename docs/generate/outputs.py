"""Put what the blocks of a page print, today, below them.

python -m docs.generate.outputs docs/tutorial.md
"""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generate.blocks import blocks

ROOT = Path(__file__).parent.parent.parent


def printed_by(page: Path, folder: Path) -> dict[int, str]:
    """Return what each block prints, by its line; all run in the folder."""
    result = folder / "printed.json"
    command = [sys.executable, "-m", "docs.generate.run_page", str(page), str(result)]
    subprocess.run(command, cwd=folder, check=True)  # noqa: S603
    return {int(line): text for line, text in json.loads(result.read_text()).items()}


def with_outputs(text: str, printed: dict[int, str]) -> str:
    """Return a page whose outputs are what was printed."""
    pairs = [(a, b) for a, b in pairwise(blocks(text)) if b.is_output]
    for code, output in reversed(pairs):
        start, stop = output.span
        text = text[:start] + printed[code.line].rstrip("\n") + "\n" + text[stop:]
    return text


def main(page: str) -> None:
    path = Path(page).resolve()
    with TemporaryDirectory() as folder:
        printed = printed_by(path, Path(folder))
    path.write_text(with_outputs(path.read_text(encoding="utf-8"), printed), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
