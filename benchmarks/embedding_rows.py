"""Rows that look like sentence embeddings, with anomalies by what they are about.

Embeddings of sentences have unit length; they share a large common direction; the eigenvalues of
their covariance fall like a power of their number, in directions that are no columns; and sentences
about one topic lie together, closer for some topics than for others. A row is the common direction,
its topic and what is its own, added and brought to unit length; topic and own part are drawn from
the same spectrum. Half of the anomalies are about topics that no normal row is about, half are
about two known topics at once.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.quality_sets import Floats, Ints, Split, split_rows
from mrot_scale.seeds import generator

NAME = "embeddings (generated)"
N_ROWS, N_COLUMNS, N_TOPICS = 6_000, 768, 16
ANOMALY_SHARE = 0.03

SPECTRUM = 0.9
"""Eigenvalue j of the covariance is about 1 / (j + 4) to this power."""

COMMON, TOPIC, OWN = 0.6, 0.4, 0.7
"""Mean lengths of the three parts of a row."""

NARROWEST, WIDEST = 0.8, 1.25
"""Length of the own part in the closest and in the loosest topic, against the mean."""

NEW_TOPICS = 4
"""Topics that only anomalies are about."""


@dataclass(frozen=True)
class _World:
    """What all rows share: directions with their spreads, and the common direction."""

    axes: Floats
    common: Floats

    def draw(self, n_rows: int, rng: np.random.Generator) -> Floats:
        """Return directions drawn from the spectrum, of length about 1."""
        return np.asarray(rng.normal(size=(n_rows, len(self.axes))) @ self.axes)


def embedding_split(seed: int, n_rows: int = N_ROWS, n_columns: int = N_COLUMNS) -> Split:
    """Return one split of the table of that seed."""
    return split_rows(*embedding_table(seed, n_rows, n_columns), seed)


def embedding_table(seed: int, n_rows: int, n_columns: int) -> tuple[Floats, Ints]:
    """Return rows of unit length and their labels, 1 for an anomaly."""
    rng = generator(seed, "embeddings", n_columns)
    world = _world(n_columns, rng)
    topics, new = world.draw(N_TOPICS, rng), world.draw(NEW_TOPICS, rng)
    n_odd = round(ANOMALY_SHARE * n_rows)
    n_new = n_odd // 2
    topic = rng.integers(N_TOPICS, size=n_rows - n_odd)
    drawn = new[rng.integers(NEW_TOPICS, size=n_new)]
    about = np.vstack([topics[topic], drawn, _mixtures(topics, n_odd - n_new, rng)])
    loose = np.geomspace(NARROWEST, WIDEST, N_TOPICS)
    own = OWN * np.concatenate([loose[topic], rng.choice(loose, n_odd)])
    rows = COMMON * world.common + TOPIC * about + own[:, None] * world.draw(n_rows, rng)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.repeat([0, 1], [n_rows - n_odd, n_odd])


def _world(n_columns: int, rng: np.random.Generator) -> _World:
    spread = (np.arange(n_columns) + 5.0) ** (-SPECTRUM / 2)
    spread /= np.linalg.norm(spread)
    turn, _ = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))
    common = rng.normal(size=n_columns)
    return _World(spread[:, None] * turn.T, common / np.linalg.norm(common))


def _mixtures(topics: Floats, n_rows: int, rng: np.random.Generator) -> Floats:
    """Return the middle of two different topics for each row, as long as a topic."""
    first = rng.integers(len(topics), size=n_rows)
    second = (first + rng.integers(1, len(topics), size=n_rows)) % len(topics)
    return np.asarray((topics[first] + topics[second]) / np.sqrt(2))
