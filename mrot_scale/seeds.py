"""One rule for random numbers: a generator is named by the seed and by what it is for."""

from zlib import crc32

import numpy as np


def generator(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """Return the generator of one purpose; the same arguments always give the same stream.

    A last counter of 0 is as none: count from 1 where both are asked for.
    """
    entropy = [seed, crc32(purpose.encode()), *counters]
    return np.random.default_rng(np.random.SeedSequence(entropy))
