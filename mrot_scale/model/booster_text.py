"""The text of a LightGBM booster: cut to what the trees need, and checked before LightGBM reads it.

LightGBM trusts its text: a wrong block size, array length or index makes it read foreign memory or
end the process. So a text must be, line by line, one that our own training could have written.
"""

import re

import numpy as np
from numpy.typing import NDArray

from mrot_scale.errors import DamagedModelError

Ints = NDArray[np.int64]

MAX_TEXT_LENGTH = 256 * 2**20
MAX_TREES = 10_000
MAX_LEAVES = 131_072
MAX_DEPTH = 64
"""Explanations recurse and take memory with the square of the depth; training stops at 6."""

_END = "end of trees\n"
_INT32_MAX = 2**31 - 1
_ALPHABET = bytes(range(32, 127)) + b"\n"
_HEADER_KEYS = (
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "feature_names",
    "feature_infos",
    "tree_sizes",
)
_TREE_KEYS = (
    "Tree",
    "num_leaves",
    "num_cat",
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "leaf_weight",
    "leaf_count",
    "internal_value",
    "internal_weight",
    "internal_count",
    "is_linear",
    "shrinkage",
)
_NAN_IS_MISSING = 8

# Narrower than Python's own parsers, which also take "1_0", "+1", " 1" and digits of other scripts.
# Repeats are possessive ("*+"): what was read is never tried again, so time grows with the length.
_INTEGER = r"(?:0|-?+[1-9][0-9]{0,9}+)"
_REAL = r"-?+(?:0|[1-9][0-9]{0,16}+)(?:\.[0-9]{1,21}+)?+(?:e[+-][0-9]{2,3}+)?+"
_THRESHOLD = rf"(?:inf|{_REAL})"
_INTEGERS = re.compile(rf"{_INTEGER}(?: {_INTEGER})*+")
_REALS = re.compile(rf"{_REAL}(?: {_REAL})*+")
_THRESHOLDS = re.compile(rf"{_THRESHOLD}(?: {_THRESHOLD})*+")
# A column that cannot be split has no range; infinite data give infinite ranges.
_FEATURE_INFO = re.compile(rf"none|\[(?:-?inf|{_REAL}):(?:-?inf|{_REAL})\]")


def canonical_text(text: str) -> str:
    """Return a fresh booster text without what follows its trees."""
    # The parameters that follow record thread counts, so equal trees would have unequal bytes;
    # LightGBM predicts the same, and prints nothing, without them.
    trees, end, _ = text.partition("\n" + _END)
    _require(bool(end), "end", "no line 'end of trees'", "one after the last tree")
    return trees + end


def check_booster_text(text: str, n_features: int) -> None:
    """Raise `DamagedModelError` unless LightGBM can read the text and predict from it safely."""
    _check_characters(text)
    header, _, trees = text.partition("\n\n")
    start = 0
    for index, size in enumerate(_check_header(header, n_features)):
        _check_tree(trees[start : start + size], index, n_features)
        start += size
    rest = trees[start:]
    _require(rest == _END, "end", rest, "'end of trees' and a newline, nothing else")


def _require(holds: bool, place: str, found: str, expected: str) -> None:
    """Raise the one kind of error of this module unless the condition holds."""
    if not holds:
        shown = found[:60].replace("\n", "\\n") or "nothing"
        raise DamagedModelError(
            f"The text of the score model is damaged at {place}: found {shown}, "
            f"expected {expected}; do: fit or copy the model again."
        )


def _check_characters(text: str) -> None:
    """Refuse texts too long to parse, and characters that LightGBM and Python count differently."""
    expected = f"at most {MAX_TEXT_LENGTH} characters"
    _require(len(text) <= MAX_TEXT_LENGTH, "length", f"{len(text)} characters", expected)
    # NUL would end the text early for LightGBM only; in ASCII, characters are bytes.
    legal = text.isascii() and not text.encode("ascii").translate(None, _ALPHABET)
    _require(legal, "characters", "a special one", "printable ASCII and newlines only")


def _fields(text: str, keys: tuple[str, ...], place: str) -> dict[str, str]:
    """Return the values of `key=value` lines, which must hold exactly these keys in this order."""
    # Bounded splits: a hostile text of newlines or spaces must not become millions of strings.
    lines = text.split("\n", len(keys))
    for key, line in zip(keys, lines, strict=False):
        _require(line.startswith(key + "="), f"{place}, {key}", line, f"'{key}='")
    _require(len(lines) == len(keys), place, "missing or further lines", f"{len(keys)} lines")
    return {key: line[len(key) + 1 :] for key, line in zip(keys, lines, strict=True)}


def _check_header(header: str, n_features: int) -> list[int]:
    """Check what precedes the trees and return the sizes it gives for their blocks."""
    first, _, rest = header.partition("\n")
    _require(first == "tree", "header, first line", first, "'tree'")
    fields = _fields(rest, _HEADER_KEYS, "header")
    constants = {
        "version": "v4",
        "num_class": "1",
        "num_tree_per_iteration": "1",
        "label_index": "0",
        "max_feature_idx": str(n_features - 1),
        "objective": "cross_entropy",
    }
    _check_constants(fields, constants, "header")
    _check_features(fields, n_features)
    return _tree_sizes(fields["tree_sizes"])


def _check_constants(fields: dict[str, str], constants: dict[str, str], place: str) -> None:
    for key, value in constants.items():
        _require(fields[key] == value, f"{place}, {key}", fields[key], repr(value))


def _check_features(fields: dict[str, str], n_features: int) -> None:
    """Check that every feature has a name and a range."""
    for key in ("feature_names", "feature_infos"):
        count = fields[key].count(" ") + 1
        _require(count == n_features, f"header, {key}", f"{count} words", f"{n_features} words")
    names, infos = fields["feature_names"], fields["feature_infos"]
    # LightGBM skips empty names and cuts lines at "=", and would then count differently.
    usable = all(names.split(" ")) and "=" not in names
    _require(usable, "header, feature_names", "an empty name or '='", "plain names")
    usable = all(map(_FEATURE_INFO.fullmatch, infos.split(" ")))
    _require(usable, "header, feature_infos", infos, "'none' or '[low:high]' for each feature")


def _tree_sizes(value: str) -> list[int]:
    """Return the bytes of each tree's block: from its `Tree=` to before the next one's."""
    place, count = "header, tree_sizes", value.count(" ") + 1
    _require(count <= MAX_TREES, place, f"{count} trees", f"1 to {MAX_TREES}")
    sizes = _integers(value, count, place)
    _check_range(sizes, 1, MAX_TEXT_LENGTH, place)
    return [int(size) for size in sizes]


def _check_tree(block: str, index: int, n_features: int) -> None:
    """Check one tree: its block must end in two empty lines, as the sizes promise."""
    place = f"tree {index}"
    expected = "a block of the size in tree_sizes that ends in two empty lines"
    _require(block.endswith("\n\n\n"), place, block[-40:], expected)
    fields = _fields(block[:-3], _TREE_KEYS, place)
    constants = {"Tree": str(index), "num_cat": "0", "is_linear": "0"}
    _check_constants(fields, constants, place)
    leaves = _integers(fields["num_leaves"], 1, f"{place}, num_leaves")
    _check_range(leaves, 1, MAX_LEAVES, f"{place}, num_leaves")
    _check_splits(fields, int(leaves[0]) - 1, n_features, place)
    _check_leaves(fields, int(leaves[0]), place)
    _finite(fields, "shrinkage", 1, place)


def _check_splits(fields: dict[str, str], n_splits: int, n_features: int, place: str) -> None:
    """Check the arrays that have one entry for each internal node."""
    for key in ("split_gain", "internal_value", "internal_weight"):
        _finite(fields, key, n_splits, place)
    names = ("split_feature", "decision_type", "internal_count", "left_child", "right_child")
    columns = [_integers(fields[key], n_splits, f"{place}, {key}") for key in names]
    features, decisions, counts, left, right = columns
    _check_range(features, 0, n_features - 1, f"{place}, split_feature")
    _check_decisions(decisions, f"{place}, decision_type")
    # Explanations divide by the counts.
    _check_range(counts, 1, _INT32_MAX, f"{place}, internal_count")
    _check_thresholds(fields["threshold"], decisions, f"{place}, threshold")
    _check_children(left, right, place)


def _check_leaves(fields: dict[str, str], n_leaves: int, place: str) -> None:
    """Check the arrays that have one entry for each leaf."""
    _finite(fields, "leaf_value", n_leaves, place)
    # LightGBM writes no weight for a tree that is a constant.
    _finite(fields, "leaf_weight", 0 if n_leaves == 1 else n_leaves, place)
    counts = _integers(fields["leaf_count"], n_leaves, f"{place}, leaf_count")
    _check_range(counts, 1, _INT32_MAX, f"{place}, leaf_count")


def _check_decisions(decisions: Ints, place: str) -> None:
    """Check that all splits are numeric, which leaves 0, 2, 4, 6, 8 and 10."""
    # Bit 0 would be a categorical split, bit 1 sends missing values to the left, and bits 2 and 3
    # say what is missing: 0 nothing, 1 zero, 2 NaN.
    _check_range(decisions, 0, _NAN_IS_MISSING + 2, place)
    _require(not (decisions & 1).any(), place, "a categorical split", "numeric splits only")


def _check_thresholds(value: str, decisions: Ints, place: str) -> None:
    """Check thresholds: finite, or the `inf` by which LightGBM parts any number from NaN."""
    _check_form(value, len(decisions), place, _THRESHOLDS, "numbers or 'inf'")
    infinite = _infinite(value)
    # The first comparison keeps out numbers such as 1e+999, which become infinite only when read.
    legal = infinite.sum() == value.count("inf")
    legal = legal and bool((decisions[infinite] >= _NAN_IS_MISSING).all())
    _require(legal, place, value, "finite numbers, 'inf' only where NaN is missing")


def _check_children(left: Ints, right: Ints, place: str) -> None:
    """Check that the children make one binary tree that is not too deep (~i stands for leaf i)."""
    n_splits, place = len(left), f"{place}, left_child and right_child"
    if n_splits == 0:
        return
    # All leaves (negative) and all nodes but the root 0; each is the child of exactly one node.
    once_each = np.concatenate([np.arange(-n_splits - 1, 0), np.arange(1, n_splits)])
    proper = np.array_equal(np.sort(np.concatenate([left, right])), once_each)
    _require(proper, place, "other children", "every node and leaf as a child exactly once")
    depth, reached = _walk(left, right)
    _require(depth <= MAX_DEPTH, place, f"depth above {MAX_DEPTH}", f"at most {MAX_DEPTH}")
    _require(reached == n_splits, place, "a cycle", "every node below the root")


def _walk(left: Ints, right: Ints) -> tuple[int, int]:
    """Return the depth of the tree and how many internal nodes hang on its root."""
    depth = reached = 0
    level = np.zeros(1, dtype=np.int64)
    # Each level costs a pass, so the walk gives up below the depth that is allowed.
    while len(level) and depth <= MAX_DEPTH:
        depth += 1
        reached += len(level)
        below = np.concatenate([left[level], right[level]])
        level = below[below >= 0]
    return depth, reached


def _integers(value: str, count: int, place: str) -> Ints:
    """Return exactly `count` integers of at most ten digits."""
    _check_form(value, count, place, _INTEGERS, "integers")
    return np.array(value.split(), dtype=np.int64)


def _finite(fields: dict[str, str], key: str, count: int, place: str) -> None:
    """Check that a field holds exactly `count` finite numbers."""
    place = f"{place}, {key}"
    _check_form(fields[key], count, place, _REALS, "numbers")
    finite = not _infinite(fields[key]).any()
    _require(finite, place, "an infinite number", "finite numbers only")


def _infinite(value: str) -> NDArray[np.bool_]:
    """Return which of the numbers are infinite."""
    # Reading decimals is most of the work, and without these marks no number can be infinite.
    if "e+" not in value and "inf" not in value:
        return np.zeros(value.count(" ") + 1 if value else 0, dtype=np.bool_)
    return np.isinf(np.array(value.split(), dtype=np.float64))


def _check_form(value: str, count: int, place: str, form: re.Pattern[str], kind: str) -> None:
    """Check that a value is `count` well-formed numbers with one space between them."""
    found = value.count(" ") + 1 if value else 0
    _require(found == count, place, f"{found} {kind}", f"{count} {kind}")
    _require(not value or bool(form.fullmatch(value)), place, value, f"plain {kind}")


def _check_range(values: Ints, low: int, high: int, place: str) -> None:
    outside = values[(values < low) | (values > high)]
    found = str(outside[0]) if len(outside) else ""
    _require(not found, place, found, f"{low} to {high}")
