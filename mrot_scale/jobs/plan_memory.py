"""Memory of tasks as sums that can be shown, with copies as counted in the code of the tasks."""

from dataclasses import dataclass

from mrot_scale.jobs.plan_text import StagePlan
from mrot_scale.method.nearest import block_rows
from mrot_scale.scoring import rarity_rows
from mrot_scale.terminal_text import size_text

MIB = 2**20

CODED_COPIES = 6
"""Of rows that are read and written: bytes, decoded, cut, chosen, encoded, sealed."""

FILLED_COPIES = 2
"""Of a whole chunk, also where fewer rows are in it."""

PART_COPIES = 2
"""Of a part's rows while they are read; one of them stays."""

VIEW_COPIES = 5
"""Of the columns of a view while they are scaled: chosen, centred, scaled, squashed, together."""

HELD_ARRAYS = 8
"""Arrays of earlier stages that a worker keeps at hand."""

ROUTED_ROWS, SEARCHED_ROWS = 4_096, 4_096
"""Rows that are sent to anchors, or looked up in the index, at a time."""

EFFORT_COPIES = 6
"""Of efforts against anchors: floored, logarithms, rarities, together, without gaps, gaps."""

BOOSTER_BYTES = 2 * MIB
CALIBRATION_BYTES = 2 * 8 * 4_097

SMALL_BYTES = 2**24
"""What is too small to be counted one by one: records, knots, garbage not yet collected."""


@dataclass(frozen=True)
class Need:
    """Memory as a sum that can be shown."""

    n_bytes: int
    text: str

    def __add__(self, other: "Need") -> "Need":
        return Need(self.n_bytes + other.n_bytes, f"{self.text} + {other.text}")


def table(what: str, n_rows: int, n_columns: int, copies: int, *, size: int = 8) -> Need:
    """Return the memory of some copies of rows x columns."""
    text = f"{what} {n_rows:,} x {n_columns:,} columns x {size} B x {copies} copies"
    return Need(n_rows * n_columns * size * copies, text)


def matrices(n_rows: int, n_others: int, copies: int) -> Need:
    """Return the memory of some matrices between rows and rows."""
    text = f"{copies} matrices of {n_rows:,} x {n_others:,} x 8 B"
    return Need(8 * n_rows * n_others * copies, text)


def routing_matrices(n_rows: int, n_anchors: int, eps: float) -> Need:
    """Return the memory of distances while rows are sent to one set of anchors."""
    return matrices(min(n_rows, ROUTED_ROWS), n_anchors, 6 if eps > 0 else 4)


def routed_efforts(n_rows: int, n_sets: int) -> Need:
    """Return the memory to find how rare the efforts of rows against all sets of a view are."""
    return table("efforts", min(n_rows, rarity_rows(n_sets)), n_sets, EFFORT_COPIES)


def company_search(n_rows: int, n_company: int, width: int, count: int) -> Need:
    """Return the memory to find the neighbours of rows among those that others share with."""
    need = matrices(min(n_rows, block_rows(n_company)), n_company, 5)
    need += table("company", n_company, width, 4)
    return need + table("neighbours", n_rows, count + 1, 6)


def amount(what: str, n_bytes: int) -> Need:
    """Return memory that needs no explanation."""
    return Need(n_bytes, f"{what} {size_text(n_bytes)}")


def stage_of(
    name: str, n_tasks: int, moved: tuple[int, int], need: Need, setting: str
) -> StagePlan:
    """Return a stage; `moved` are the bytes read and written."""
    whole = need + amount("small things", SMALL_BYTES)
    return StagePlan(name, n_tasks, *moved, whole.n_bytes, whole.text, setting)
