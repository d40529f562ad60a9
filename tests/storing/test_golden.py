"""Stores written by released versions stay readable."""

from pathlib import Path

import numpy as np

from mrot_scale.digests import digest
from mrot_scale.storing.location import Location
from mrot_scale.storing.store import FeatureStore

STORE = Path(__file__).parent.parent / "golden" / "store-v1"


def test_a_store_of_format_1_is_read_to_the_last_bit() -> None:
    store = FeatureStore.open(Location(STORE))
    assert store.schema.features[:4] == ("load", "big", "on", "city")
    rows = np.concatenate([store.read_chunk(chunk) for chunk in store.chunks])
    np.testing.assert_array_equal(
        rows[:, 0], np.array([1.5, np.nan, 3.25, -2.0, 0.1, 7.0], np.float32)
    )
    assert rows[:, 3].tolist() == [0.0, 1.0, -1.0, 0.0, 2.0, 0.0]
    assert store.schema.columns[3].vocabulary == ("Rome", "Oslo", "Bonn")
    assert store.read_ids(0)["key"].to_pylist()[0] == "a"
    assert digest(STORE) == "3a94c356395dde58d37c625c99e2029127caef54cf3d388f818d5f143a048c8a"
