"""Counts in bins of equal counts become counts in cells of equal width, to be drawn."""

from collections.abc import Sequence

CELLS = 36


def even_cells(edges: Sequence[float], counts: Sequence[int], cells: int = CELLS) -> list[float]:
    """Return counts in cells from the first to the last edge.

    What lies below or above is in the first and the last cell; counts have no value at their end.
    """
    found = [0.0] * cells
    known = list(counts[:-1])
    if not edges or sum(known) == 0:
        return found
    low, span = edges[0], (edges[-1] - edges[0]) or 1.0

    def cell_of(value: float) -> float:
        return min(max((value - low) / span * cells, 0.0), float(cells))

    ends = [edges[0], *edges, edges[-1]]
    for left, right, count in zip(ends, ends[1:], known, strict=False):
        _spread(found, cell_of(left), cell_of(right), count)
    return found


def _spread(found: list[float], start: float, stop: float, count: float) -> None:
    """Add a count evenly between two places; of no width, it goes into one cell."""
    last = len(found) - 1
    if stop - start < 1e-9:
        found[min(int(start), last)] += count
        return
    for cell in range(int(start), min(int(stop), last) + 1):
        inside = min(stop, cell + 1) - max(start, cell)
        found[cell] += count * max(inside, 0.0) / (stop - start)
