"""Run the blocks of a page in the current folder; write down what each of them prints.

python -m docs.generate.run_page PAGE RESULT.json [MADE_UP_PATH=REAL_PATH ...]
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from docs.generate.blocks import Block, blocks


def main(page: str, result: str, *places: str) -> None:
    """Run a page; paths such as /data, which pages name, lead to folders that exist."""
    target = Path(result).resolve()
    printed: dict[int, str] = {}
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(Path(page).read_text(encoding="utf-8")):
        if not block.is_run:
            continue
        if block.mark == "new folder":
            names = {"__name__": "page"}
            os.chdir(mkdtemp(dir="."))
        code = block.code
        for place in places:
            made_up, _, real = place.partition("=")
            code = code.replace(made_up, real)
        try:
            printed[block.line] = _run(block, code, names)
        except BaseException:
            print(f"{page}, line {block.line}:", file=sys.stderr)
            raise
        target.write_text(json.dumps(printed))


def _run(block: Block, code: str, names: dict[str, Any]) -> str:
    if block.language == "sh":
        command = ["bash", "-euo", "pipefail", "-c", code]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, f"line {block.line}", "exec"), names)  # noqa: S102 - our own pages
    return out.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
