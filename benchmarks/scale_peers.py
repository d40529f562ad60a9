"""Other detectors on rows in memory: one of them, in this process.

    python -m benchmarks.scale_peers NAME TABLE ROWS [--within SECONDS]

Prints the seconds of fitting and of scoring the same rows as JSON; loading them is not counted.
With --within, rows are halved until fitting and scoring are expected to take no longer.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_data import Rows, load_rows

NEIGHBOURS = 10
_WARM_ROWS = 1_000
"""Rows fitted and scored first: what is loaded or compiled on first use is not counted."""


@dataclass(frozen=True)
class Peer:
    """How to fit one detector, and to score by it."""

    score: Callable[[Any, Rows], Any]
    fit: Callable[[Rows], Any] = lambda rows: None
    threads: int = 1
    exponent: float = 1.0
    """Of seconds in rows, as far as is known beforehand."""

    smallest: int = 50_000
    """Rows it is tried at first where there is a limit."""

    reach: int = 17
    """How many times the rows of the last try the next may have."""

    is_cut: bool = True
    """Whether it is measured at fewer rows where all would take too long."""

    one_width: bool = False
    """Whether it is measured at one number of features only."""


def _forest(rows: Rows) -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(n_jobs=2, random_state=0).fit(rows)


def _forest_scores(forest: Any, rows: Rows) -> Any:
    from joblib import parallel_config

    # Its own n_jobs is for fitting alone; this is how its authors say to score on several cores.
    with parallel_config(backend="threading", n_jobs=2):
        return forest.score_samples(rows)


def _histograms(rows: Rows) -> Any:
    return import_module("pyod.models.hbos").HBOS().fit(rows)


def _tails(_: Any, rows: Rows) -> Any:
    # New rows are scored together with those of the fit, twice as many: fitting scores already.
    return import_module("pyod.models.ecod").ECOD().fit(rows).decision_scores_


def _index(rows: Rows) -> Any:
    import faiss

    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows)
    return index


def _exact(_: Any, rows: Rows) -> Any:
    from mrot_scale import transport_efforts

    return transport_efforts(rows.astype(np.float64))


PEERS = {
    "IsolationForest": Peer(_forest_scores, _forest, threads=2, is_cut=False),
    "IsolationForest as it comes": Peer(
        lambda forest, rows: forest.score_samples(rows), _forest, is_cut=False, one_width=True
    ),
    "HBOS": Peer(lambda found, rows: found.decision_function(rows), _histograms),
    "ECOD": Peer(_tails, exponent=1.1),
    "k-NN": Peer(
        lambda index, rows: index.search(rows, NEIGHBOURS),
        _index,
        threads=2,
        exponent=2.0,
        smallest=8_000,
        reach=5,
    ),
    "exact MROT": Peer(_exact, exponent=2.5, smallest=800, reach=3, one_width=True),
}
"""The peers by name."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one detector on so many rows."""

    measured_rows: int
    fit_s: float
    score_s: float

    @property
    def total_s(self) -> float:
        return self.fit_s + self.score_s


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    peer = PEERS[given.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a peer warns of is its own business
        _timed(peer, given.table, min(given.rows, _WARM_ROWS))
        found = largest_within(
            lambda n: _timed(peer, given.table, n),
            halvings(given.rows, peer.smallest if given.within else given.rows),
            peer,
            given.within or 0.0,
        )
    print(json.dumps(asdict(found)))


def _timed(peer: Peer, table: Path, n_rows: int) -> Timing:
    rows = load_rows(table, n_rows)
    start = time.perf_counter()
    found = peer.fit(rows)
    fitted = time.perf_counter()
    peer.score(found, rows)
    return Timing(n_rows, fitted - start, time.perf_counter() - fitted)


def halvings(n_rows: int, smallest: int) -> list[int]:
    """Return `n_rows`, half of it, and so on down to `smallest`, ascending."""
    found = [n_rows]
    while found[-1] // 2 >= smallest:
        found.append(found[-1] // 2)
    return found[::-1]


def largest_within(
    measure: Callable[[int], Timing], sizes: Sequence[int], peer: Peer, limit_s: float
) -> Timing:
    """Return the timing at the largest size expected to take no longer than the limit."""
    found = measure(sizes[0])

    def is_next(size: int) -> bool:
        ratio = size / found.measured_rows
        return 1 < ratio <= peer.reach and found.total_s * ratio**peer.exponent <= limit_s

    while larger := [size for size in sizes if is_next(size)]:
        found = measure(larger[-1])
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_peers", description=__doc__)
    parser.add_argument("name", choices=list(PEERS))
    parser.add_argument("table", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("--within", type=float, help="seconds that it may take")
    return parser


if __name__ == "__main__":
    main()
