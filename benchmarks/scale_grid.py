"""What the benchmark of scale measures: sizes, and at each of them commands, peers and limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scale_peers import PEERS
from mrot_scale.errors import ConfigError

Cell = dict[str, Any]
Find = Callable[[Cell], Cell | None]

FIELDS = ("kind", "method", "n_rows", "n_features", "workers", "repeat")
"""What tells one cell from another."""

LONG_S = 180.0
"""Seconds of a command from which on it is measured once."""

_LARGEST_VALUES = 10_000_000 * 32
_REFERENCE_ROWS, _REFERENCE_FEATURES = 1_000_000, 32
_TARGET_ROWS = 10_000_000


@dataclass(frozen=True, order=True)
class Size:
    """How large a table is."""

    rows: int
    features: int

    @classmethod
    def parse(cls, text: str) -> "Size":
        rows, _, features = text.partition("x")
        return cls(int(float(rows)), int(float(features)))

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.features}"


@dataclass(frozen=True)
class Unit:
    """Something that is measured at one size, several times over."""

    kind: str
    """ours, peer or limit."""

    method: str
    size: Size
    workers: int
    """Processes or threads that do the work."""

    def identity(self, repeat: int) -> Cell:
        return {
            "kind": self.kind,
            "method": self.method,
            "n_rows": self.size.rows,
            "n_features": self.size.features,
            "workers": self.workers,
            "repeat": repeat,
        }


@dataclass(frozen=True)
class Grid:
    """All sizes, and what to do at each."""

    rows: tuple[int, ...]
    features: tuple[int, ...]
    workers: tuple[int, ...]
    full: bool = False
    """Whether the largest sizes are measured too."""

    def settings(self) -> dict[str, Any]:
        """Return what cells in one folder must share."""
        return {
            "rows": list(self.rows),
            "features": list(self.features),
            "workers": list(self.workers),
            "full": self.full,
        }

    @property
    def sizes(self) -> list[Size]:
        """All sizes, those of fewer rows first."""
        found = (Size(n, d) for n in sorted(self.rows) for d in sorted(self.features))
        return [size for size in found if self.full or size.rows * size.features <= _LARGEST_VALUES]

    def chosen(self, only: Sequence[Size] | None) -> list[Size]:
        """Return those of the sizes that are asked for; all when none is."""
        unknown = [size for size in only or () if size not in self.sizes]
        if unknown:
            raise ConfigError(f"--only: {unknown[0]} is not in the grid.")
        return [size for size in self.sizes if only is None or size in only]

    @property
    def most_workers(self) -> int:
        return max(self.workers)

    @property
    def reference(self) -> Size:
        """Where fewer workers and other models are measured as well: 1e6 x 32 if it is there."""
        return self._nearest(_REFERENCE_ROWS)

    @property
    def target(self) -> Size:
        """Where targets are set: 1e7 x 32 if it is there."""
        return self._nearest(_TARGET_ROWS)

    def _nearest(self, rows: int) -> Size:
        def distance(size: Size) -> tuple[bool, int, int]:
            return size.rows > rows, abs(size.features - _REFERENCE_FEATURES), -size.rows

        return min(self.sizes, key=distance)

    def units(self, size: Size) -> list[Unit]:
        """Return what is measured at a size, in the order of the first turn."""
        most, is_reference = self.most_workers, size == self.reference
        ours = [("plain", most)]
        if is_reference:
            ours += [("plain", n) for n in sorted(self.workers) if n != most]
            ours += [("auto", most), ("always", most)]
        peers = [(name, peer.threads) for name, peer in PEERS.items() if self._has(peer, size)]
        limits = [(name, n) for name in ("copy", "zarr", "trees") for n in sorted({1, most})]
        limits.append(("tasks", most))
        by_kind = {"ours": ours, "peer": peers, "limit": limits}
        return [Unit(kind, m, size, n) for kind, found in by_kind.items() for m, n in found]

    def _has(self, peer: Any, size: Size) -> bool:
        return not peer.one_width or size.features == self.reference.features

    def pending(self, size: Size, repeats: int, find: Find) -> list[tuple[Unit, int]]:
        """Return what is left to measure at a size: all of one turn, then back for the next."""
        found = []
        for repeat in range(repeats):
            units = self.units(size)
            for unit in reversed(units) if repeat % 2 else units:
                if self.is_wanted(unit, repeat, find):
                    found.append((unit, repeat))
        return found

    def is_wanted(self, unit: Unit, repeat: int, find: Find) -> bool:
        """Tell whether a cell is missing, as far as the others tell that it is needed."""
        known = find(unit.identity(repeat))
        if known is not None and "error" not in known:
            return False
        first = find(unit.identity(0)) if repeat else None
        if first is not None and is_long(first):
            return False
        if unit.method == "always":
            return self._is_always_wanted(unit, find)
        return unit.kind != "peer" or not self._was_cut(unit, find)

    def _is_always_wanted(self, unit: Unit, find: Find) -> bool:
        """Tell whether plain trees were chosen: then efforts are measured by asking for them."""
        chosen = find(Unit("ours", "auto", unit.size, unit.workers).identity(0))
        return chosen is None or chosen.get("model_kind") == "plain"

    def _was_cut(self, unit: Unit, find: Find) -> bool:
        """Tell whether a peer did not get through a smaller table in its minute."""
        smaller = [size for size in self.sizes if size.features == unit.size.features]
        for size in smaller:
            cell = find(Unit("peer", unit.method, size, unit.workers).identity(0))
            is_smaller = size.rows < unit.size.rows
            if is_smaller and cell and cell.get("measured_rows", size.rows) < size.rows:
                return True
        return False


def is_long(cell: Cell) -> bool:
    """Tell whether a command of a cell takes too long to be measured again."""
    commands = cell.get("commands", {"": cell})
    return any(command.get("seconds", 0.0) > LONG_S for command in commands.values())
