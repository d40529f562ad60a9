"""Contents of reports made up for tests, with any text wherever text can come from outside."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from mrot_scale.profiles import SCORE_EDGES
from mrot_scale.reporting.contents import Contents
from mrot_scale.reporting.populations import score_json

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}{# #}",
    "<!-- ]]> &lt;b&gt;",
    "__proto__",
    "line\u2028para\u2029graph",
]
VOID = {"meta", "br", "input"}


def contents(text: str = "plain", *, kind: Any = "score", n_rows: int = 40) -> Contents:
    """A run in which everything that can come from outside is the text."""
    flagged = [_row(n, text) for n in range(n_rows)]
    spread: dict[str, Any] = {"kind": "number", "edges": [float(n) for n in range(21)]}
    spread |= {"training": [10] * 22 + [3], "now": [5] * 22 + [1]}
    words: dict[str, Any] = {"kind": "category", "edges": [text, "b", "(others)", "(missing)"]}
    words |= {"training": [90, 9, 1, 0], "now": None}
    return Contents(
        kind,
        text,
        run={
            "command": kind,
            "status": "done",
            "reason": text,
            "started": "2026-11-14T02:00:00.000+00:00",
            "seconds": 12.34,
            "version": "0.1.0",
            "out": f"/data/{text}",
        },
        input={"path": f"/data/{text}", "rows": 12_345, "columns": 3},
        model={"path": f"/data/{text}", "id": text, "kind": "lightgbm", "label_rows": 2_000},
        notices=[
            {"level": "fail", "name": f"columns.{text}", "message": text},
            {"level": "warn", "name": "psi", "message": f"{text!r} is odd"},
            {"level": "ok", "name": "ks", "message": "fine"},
        ],
        rows={"rows": 12_345, "flagged": 120, "missing": 3},
        threshold=0.99,
        scores=score_json([600] * 19 + [500, 100, 40][: len(SCORE_EDGES) + 1 - 19]),
        efforts=[
            {
                "view": text,
                "edges": [-1.0, 0.0, 1.0, 2.0],
                "counts": [10, 20, 5],
                "cdf": [0.3, 0.85, 1.0],
            }
        ],
        flagged=flagged,
        columns={f"{text}.n": spread, f"{text}.c": words},
        map={
            "x": [float(n) for n in range(n_rows + 20)],
            "y": [float(n % 7) for n in range(n_rows + 20)],
            "score": [row["score"] for row in flagged] + [0.1 + n / 25 for n in range(20)],
            "id": [row["id"] for row in flagged] + [str(n) for n in range(20)],
            "row": [row["row"] for row in flagged] + [100_000 + n for n in range(20)],
            "explained": [0.6, 0.2],
        },
        drift=[_drift(f"{text}.n", 0.9), _drift(f"{text}.c", 0.1), _drift("score", 0.02)],
        quality=[
            _quality(f"{text}.n", missing=3),
            _quality(f"{text}.c", kind="category", categories=4),
        ],
        stages={text: 1.5, "score": 3.0},
        left_out=[{"name": text, "reason": text}],
        notes={"flagged": "The 40 highest of 120 flagged rows."},
    )


def _row(number: int, text: str) -> dict[str, Any]:
    columns = [
        {"name": f"{text}.n", "value": 30.0 - number, "contribution": 1.5, "redacted": False},
        {"name": f"{text}.c", "value": text, "contribution": 0.25, "redacted": False},
    ]
    id = f"{text} {number:03d}"
    return {"row": 7 * number, "id": id, "score": 0.99999 - number * 1e-4, "columns": columns}


def _drift(name: str, psi: float) -> dict[str, Any]:
    found = {"name": name, "psi": psi, "ks": 0.2, "nulls": 0.05, "is_score": name == "score"}
    return found | {"previous_psi": 0.01, "past": [0.1, None, 0.3]}


def _quality(name: str, **more: Any) -> dict[str, Any]:
    found = {"name": name, "kind": "number", "categories": None, "missing": 0, "infinite": 0}
    return found | {"min": -1.5, "median": 0.25, "max": 1e9, "mean": 3.0} | more


def night(text: str = "plain") -> Contents:
    found = contents(text, kind="nightly")
    return replace(found, run=found.run | {"run_id": text})


class Page(HTMLParser):
    """A page taken apart: tags with their attributes, texts, and whether tags are closed."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(content.decode("utf-8"))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.text += data
        if {"td", "th"} & set(self._open) and "svg" not in self._open:
            self.rows[-1][-1] += data

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.tags}
