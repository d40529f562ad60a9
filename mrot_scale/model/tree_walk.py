"""The trees of a booster walked by compiled code, bit for bit as LightGBM walks them, but faster.

Every tree is made complete: each row takes the same number of steps in it, so that many rows can
take them side by side without a branch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrot_scale.compiling import compiled

Floats = NDArray[np.float64]

DEEPEST = 8
"""Complete trees double with every level; deeper ones are left to LightGBM."""

_BLOCK_ROWS = 128
"""Rows that take a step together: they and their nodes stay in the first-level cache."""

_LEVELS_AT_ONCE = 3
"""Levels whose nodes are all asked; every tree has at least as many."""

_NUMERICAL_NAN_OR_NONE = {0, 2, 8, 10}
"""Kinds of split that finite rows take by value alone."""


@dataclass(frozen=True)
class CompleteTrees:
    """Trees of equal depth, node `k` above nodes `2 k + 1` and `2 k + 2`."""

    feature: NDArray[np.uint32]
    """(trees, inner nodes)."""

    threshold: Floats
    """Rows above it go right."""

    leaf: Floats
    """(trees, leaves)."""

    def walk(self, rows: Floats) -> Floats:
        """Return the sum of the leaves each finite row comes to, in the order of the trees."""
        values = np.ascontiguousarray(rows)
        found = np.empty(len(values))
        compiled(_walk)(values.ravel(), values.shape[1], *self._arrays, found)
        return found

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.feature * np.uint32(_BLOCK_ROWS), self.threshold, self.leaf


def compile_walk() -> None:
    """Compile the walk before it is needed."""
    leaves = 2**_LEVELS_AT_ONCE
    inner = (1, leaves - 1)
    tree = (np.zeros(inner, np.uint32), np.zeros(inner), np.zeros((1, leaves)))
    CompleteTrees(*tree).walk(np.zeros((1, 1)))


def complete_trees(text: str) -> CompleteTrees | None:
    """Return the trees of a checked booster text; None where they are not for walking."""
    trees = [_Tree.of(block) for block in text.split("\nTree=")[1:]]
    depth = max((tree.depth() for tree in trees), default=0)
    if not 0 < depth <= DEEPEST or not all(tree.is_plain for tree in trees):
        return None
    parts = [tree.completed(max(depth, _LEVELS_AT_ONCE)) for tree in trees]
    feature, threshold, leaf = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    return CompleteTrees(feature, threshold, leaf)


@dataclass(frozen=True)
class _Tree:
    """One tree as LightGBM writes it; children below 0 are leaves."""

    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    leaf: Floats
    is_plain: bool

    @classmethod
    def of(cls, block: str) -> "_Tree":
        lines = (line.partition("=") for line in block.split("\n"))
        found = {key: value for key, equals, value in lines if equals}
        kinds = {int(kind) for kind in found.get("decision_type", "").split()}
        return cls(
            np.array(found.get("split_feature", "").split(), dtype=np.int64),
            np.array(found.get("threshold", "").split(), dtype=np.float64),
            np.array(found.get("left_child", "").split(), dtype=np.int64),
            np.array(found.get("right_child", "").split(), dtype=np.int64),
            np.array(found["leaf_value"].split(), dtype=np.float64),
            kinds <= _NUMERICAL_NAN_OR_NONE and found.get("is_linear", "0") == "0",
        )

    def depth(self, node: int = 0) -> int:
        if len(self.feature) == 0 or node < 0:
            return 0
        return 1 + max(self.depth(int(self.left[node])), self.depth(int(self.right[node])))

    def completed(self, depth: int) -> tuple[NDArray[np.uint32], Floats, Floats]:
        """Return the tree with every leaf at the same depth."""
        feature = np.zeros(2**depth - 1, dtype=np.uint32)
        threshold = np.full(2**depth - 1, np.inf)
        leaf = np.empty(2**depth)

        def fill(place: int, node: int, level: int) -> None:
            if node < 0 or len(self.feature) == 0:
                below = 2 ** (depth - level)
                first = (place + 1) * below - 2**depth
                leaf[first : first + below] = self.leaf[~node if node < 0 else 0]
                return
            feature[place], threshold[place] = self.feature[node], self.threshold[node]
            fill(2 * place + 1, int(self.left[node]), level + 1)
            fill(2 * place + 2, int(self.right[node]), level + 1)

        fill(0, 0, 0)
        return feature, threshold, leaf


def _walk(values: Any, n_columns: int, feature: Any, threshold: Any, leaf: Any, found: Any) -> None:
    # Numbers without a sign: an index that may be negative costs a check for every one used.
    n_rows, n_inner, first_leaf = found.shape[0], feature.shape[1], np.uint32(feature.shape[1])
    n_steps = 0
    while 2 ** (n_steps + _LEVELS_AT_ONCE) - 1 < n_inner:
        n_steps += 1
    x = np.zeros(n_columns * _BLOCK_ROWS, values.dtype)
    node, total = np.empty(_BLOCK_ROWS, np.uint32), np.empty(_BLOCK_ROWS)
    one, two = np.uint32(1), np.uint32(2)
    for start in range(0, n_rows, _BLOCK_ROWS):
        n = min(_BLOCK_ROWS, n_rows - start)
        for i in range(n):  # column after column: rows side by side read what lies side by side
            for column in range(n_columns):
                x[column * _BLOCK_ROWS + i] = values[(start + i) * n_columns + column]
        for i in range(_BLOCK_ROWS):
            total[i] = 0.0
        for tree in range(feature.shape[0]):
            split, limit, value = feature[tree], threshold[tree], leaf[tree]
            x0, x1, x2 = x[split[0] :], x[split[1] :], x[split[2] :]
            x3, x4, x5, x6 = x[split[3] :], x[split[4] :], x[split[5] :], x[split[6] :]
            l0, l1, l2, l3 = limit[0], limit[1], limit[2], limit[3]
            l4, l5, l6 = limit[4], limit[5], limit[6]
            # All nodes of the first levels are asked: that is faster than looking them up.
            for i in range(_BLOCK_ROWS):
                low, high = np.uint32(7), np.uint32(11)
                low += two + np.uint32(x4[i] > l4) if x1[i] > l1 else np.uint32(x3[i] > l3)
                high += two + np.uint32(x6[i] > l6) if x2[i] > l2 else np.uint32(x5[i] > l5)
                node[i] = high if x0[i] > l0 else low
            # Then all rows take one step, and the next.
            for _ in range(n_steps):
                for i in range(np.uint32(_BLOCK_ROWS)):
                    k = node[i]
                    above = np.uint32(x[split[k] + np.uint32(i)] > limit[k])
                    node[i] = two * k + one + above
            for i in range(_BLOCK_ROWS):
                total[i] += value[node[i] - first_leaf]
        for i in range(n):
            found[start + i] = total[i]
