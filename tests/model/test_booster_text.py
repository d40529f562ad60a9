"""A booster text is either refused, or one that LightGBM reads and predicts from without dying."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from mrot_scale.errors import DamagedModelError
from mrot_scale.model import booster_text
from mrot_scale.model.booster_text import MAX_DEPTH, MAX_TREES, canonical_text, check_booster_text
from mrot_scale.model.lightgbm_model import train_lightgbm

Floats = NDArray[np.float64]
Generator = np.random.Generator
Mutation = Callable[[str, Generator], str]

SPLIT_KEYS = (
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "internal_value",
    "internal_weight",
    "internal_count",
)
LEAF_KEYS = ("leaf_value", "leaf_weight", "leaf_count")


# --- Texts: written by hand, and trained.


def _block(index: int, left: list[int], right: list[int]) -> str:
    """Return the block of a tree over one feature, with the values of a real one."""
    splits, leaves = len(left), len(left) + 1
    fields: dict[str, list[Any]] = {
        "Tree": [index],
        "num_leaves": [leaves],
        "num_cat": [0],
        "split_feature": [0] * splits,
        "split_gain": [2.37831] * splits,
        "threshold": [-1.2843777042320637] * splits,
        "decision_type": [2] * splits,
        "left_child": left,
        "right_child": right,
        "leaf_value": [0.021702909538956219] * leaves,
        "leaf_weight": [1.4999999105930335] * leaves if splits else [],
        "leaf_count": [6] * leaves,
        "internal_value": [-0.00035822] * splits,
        "internal_weight": [8.5] * splits,
        "internal_count": [40] * splits,
        "is_linear": [0],
        "shrinkage": [0.1],
    }
    lines = [f"{key}={' '.join(map(str, values))}\n" for key, values in fields.items()]
    return "".join(lines) + "\n\n"


def _text(blocks: list[str]) -> str:
    """Return the text of a booster over one feature."""
    return (
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
        "max_feature_idx=0\nobjective=cross_entropy\nfeature_names=Column_0\n"
        f"feature_infos=[-2.5:1e+05]\ntree_sizes={' '.join(str(len(b)) for b in blocks)}\n\n"
        f"{''.join(blocks)}end of trees\n"
    )


def _chain(depth: int) -> str:
    """Return a text whose only tree is as deep as it has splits."""
    left = [*range(1, depth), -1]
    return _text([_block(0, left, [-i - 2 for i in range(depth)])])


SMALL = _text([_block(0, [1, -1, -3], [2, -2, -4]), _block(1, [-1, 2, -2], [1, -4, -3])])
STUMP = _text([_block(0, [], [])])


def _with_sizes(text: str) -> str:
    """Return the text with tree_sizes that fit again, so an edit is judged for itself."""
    head, _, rest = text.partition("\n\n")
    cuts = [i for i in range(len(rest)) if rest.startswith("Tree=", i)]
    end = rest.rfind("end of trees")
    cuts.append(end if end >= 0 else len(rest))
    sizes = " ".join(str(stop - start) for start, stop in pairwise(cuts))
    lines = [f"tree_sizes={sizes}" if "tree_sizes=" in x else x for x in head.split("\n")]
    return "\n".join(lines) + "\n\n" + rest


def _edited(text: str, tree: int, key: str, change: Callable[[str], str]) -> str:
    """Return the text with the value of one key of one tree changed, its sizes repaired."""
    head, *trees = text.split("Tree=")
    lines = f"Tree={trees[tree]}".split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{key}="))
    lines[at] = f"{key}={change(lines[at].removeprefix(f'{key}='))}"
    trees[tree] = "\n".join(lines).removeprefix("Tree=")
    return _with_sizes("Tree=".join([head, *trees]))


def _rows(n: int, n_features: int, *, holes: bool, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n_features))
    if holes:
        rows[rng.uniform(size=rows.shape) < 0.3] = np.nan
    return rows


def _shares(rows: Floats, seed: int) -> Floats:
    """Return targets that depend on the first column, and on whether it is missing."""
    noise = np.random.default_rng(seed).uniform(size=len(rows))
    return np.where(np.isnan(rows[:, 0]), 0.9, 0.8 * noise / (1 + np.nan_to_num(rows[:, 0]) ** 2))


def _train(rows: Floats, targets: Floats, n_trees: int, threads: int = 1) -> Any:
    settings = {
        "objective": "cross_entropy",
        "min_data_in_leaf": 5,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": threads,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(rows, targets, params={"verbosity": -1})
    return lightgbm.train(settings, data, num_boost_round=n_trees)


@dataclass(frozen=True)
class Trained:
    """A booster, the rows it learned, and rows with every kind of value to predict."""

    booster: Any
    rows: Floats
    unseen: Floats

    @property
    def text(self) -> str:
        return canonical_text(self.booster.model_to_string())


def _trained(shape: str) -> Trained:
    """Return a booster of the named shape."""
    n_features = {"one feature": 1, "stump": 2}.get(shape, 4)
    rows = _rows(600, n_features, holes="NaN" in shape, seed=5)
    targets = _shares(rows, seed=6)
    if shape == "stump":
        rows = np.ones_like(rows)
    if shape == "constant target":
        targets = np.zeros_like(targets)
    if shape == "constant and empty columns":
        rows[:, 1], rows[:, 2] = 7.0, np.nan
    unseen = _rows(200, n_features, holes=True, seed=7)
    unseen[0], unseen[1], unseen[2], unseen[3] = np.inf, -np.inf, 0.0, np.nan
    return Trained(_train(rows, targets, 100 if "100" in shape else 5), rows, unseen)


SHAPES = (
    "plain",
    "100 trees",
    "one feature",
    "stump",
    "constant target",
    "NaN",
    "100 trees, NaN",
    "constant and empty columns",
)


@pytest.fixture(scope="module", params=SHAPES)
def trained(request: pytest.FixtureRequest) -> Trained:
    return _trained(request.param)


def _predictions(booster: Any, rows: Floats) -> list[bytes]:
    """Return the bytes of every kind of prediction."""
    kinds: list[dict[str, bool]] = [
        {"raw_score": True},
        {"pred_contrib": True},
        {"pred_leaf": True},
    ]
    return [np.asarray(booster.predict(rows, num_threads=1, **k)).tobytes() for k in kinds]


# --- The canonical form.


def test_trained_texts_are_accepted(trained: Trained) -> None:
    check_booster_text(trained.text, trained.rows.shape[1])


def test_shapes_are_what_they_are_called() -> None:
    """The shapes must reach the branches they stand for."""
    assert "num_leaves=1\n" in _trained("stump").text
    assert "num_leaves=1\n" in _trained("constant target").text
    assert _trained("100 trees").text.count("Tree=") == 100
    with_holes = _trained("NaN").text
    assert "threshold=inf" in with_holes
    assert "decision_type=8" in with_holes
    assert " none" in _trained("constant and empty columns").text


def test_canonical_form_predicts_the_same_bits_in_silence(
    trained: Trained, capfd: pytest.CaptureFixture[str]
) -> None:
    again = lightgbm.Booster(model_str=trained.text)
    assert _predictions(again, trained.unseen) == _predictions(trained.booster, trained.unseen)
    assert capfd.readouterr() == ("", "")


def test_canonical_form_is_a_fixed_point(trained: Trained) -> None:
    again = lightgbm.Booster(model_str=trained.text)
    assert canonical_text(again.model_to_string()) == trained.text
    assert canonical_text(trained.text) == trained.text


def test_canonical_form_does_not_know_the_threads() -> None:
    rows = _rows(600, 3, holes=True, seed=1)
    one, two = (_train(rows, _shares(rows, 2), 5, threads).model_to_string() for threads in (1, 2))
    assert one != two
    assert canonical_text(one) == canonical_text(two)


def test_fresh_text_is_not_canonical() -> None:
    rows = _rows(600, 3, holes=True, seed=1)
    fresh = _train(rows, _shares(rows, 2), 5).model_to_string()
    with pytest.raises(DamagedModelError, match=r"at end: .* nothing else"):
        check_booster_text(fresh, 3)


def test_canonical_form_needs_the_end_of_the_trees() -> None:
    with pytest.raises(DamagedModelError, match="no line 'end of trees'"):
        canonical_text(SMALL.replace("end of trees\n", ""))


def test_the_score_model_is_accepted() -> None:
    rows = _rows(3000, 6, holes=False, seed=8)
    model = train_lightgbm(rows, _shares(rows, 9), seed=1)
    check_booster_text(canonical_text(model.text()), 6)


def test_sizes_count_the_bytes_from_tree_to_tree() -> None:
    text = _trained("100 trees, NaN").text
    assert _with_sizes(text) == text


# --- Damages, one by one.


def test_texts_by_hand_are_accepted() -> None:
    for text in (SMALL, STUMP, _chain(1), _chain(MAX_DEPTH)):
        check_booster_text(text, 1)


HEADER_DAMAGES = [
    ("tree\n", "", "first line"),
    ("tree\n", "tree \n", "first line"),
    ("version=v4", "version=v3", "version"),
    ("num_class=1", "num_class=2", "num_class"),
    ("num_tree_per_iteration=1", "num_tree_per_iteration=0", "num_tree_per_iteration"),
    ("label_index=0", "label_index=1", "label_index"),
    ("max_feature_idx=0", "max_feature_idx=1", "max_feature_idx"),
    ("max_feature_idx=0", "max_feature_idx=00", "max_feature_idx"),
    ("objective=cross_entropy", "objective=binary sigmoid:1", "objective"),
    ("objective=cross_entropy", "objective=", "objective"),
    ("feature_names=Column_0", "feature_names=Column_0 Column_1", "feature_names"),
    ("feature_names=Column_0", "feature_names=", "feature_names"),
    ("feature_names=Column_0", "feature_names==", "feature_names"),
    ("feature_infos=[-2.5:1e+05]", "feature_infos=", "feature_infos"),
    ("feature_infos=[-2.5:1e+05]", "feature_infos=none none", "feature_infos"),
    ("feature_infos=[-2.5:1e+05]", "feature_infos=1:2:3", "feature_infos"),
    ("feature_infos=[-2.5:1e+05]", "feature_infos=[=:1]", "feature_infos"),
    ("label_index=0\n", "", "label_index"),
    ("label_index=0\n", "label_index=0\nlabel_index=0\n", "max_feature_idx"),
    ("label_index=0\n", "label_index=0\naverage_output\n", "max_feature_idx"),
    ("\ntree_sizes=", "\nmonotone_constraints=0\ntree_sizes=", "tree_sizes"),
    ("\n\nTree=0", "\nnew_key=1\n\nTree=0", "header: found missing or further lines"),
    ("\n\nTree=0", "\n\n\nTree=0", "tree 0"),
    ("\n\nTree=0", "\nTree=0", "header"),
]


@pytest.mark.parametrize(("old", "new", "place"), HEADER_DAMAGES)
def test_damaged_header_is_refused(old: str, new: str, place: str) -> None:
    assert SMALL.count(old) == 1
    with pytest.raises(DamagedModelError, match=place):
        check_booster_text(SMALL.replace(old, new), 1)


SIZE_DAMAGES = [
    lambda sizes: [],
    lambda sizes: sizes[:1],
    lambda sizes: [*sizes, 1],
    lambda sizes: [*sizes, *sizes],
    lambda sizes: [sizes[0] - 1, sizes[1] + 1],
    lambda sizes: [sizes[0] + 1, sizes[1] - 1],
    lambda sizes: [sizes[0], sizes[1] + 1],
    lambda sizes: [sizes[0], sizes[1] - 1],
    lambda sizes: [sum(sizes)],
    lambda sizes: [0, sum(sizes)],
    lambda sizes: [sizes[0], -sizes[1]],
    lambda sizes: [9_999_999_999, sizes[1]],
    lambda sizes: [2**64 + sizes[0], sizes[1]],
    lambda sizes: [f"+{sizes[0]}", sizes[1]],
    lambda sizes: [f"0{sizes[0]}", sizes[1]],
    lambda sizes: [f"{sizes[0]} ", sizes[1]],
    lambda sizes: [f"{sizes[0]}.0", sizes[1]],
]


@pytest.mark.parametrize("damage", SIZE_DAMAGES)
def test_wrong_tree_sizes_are_refused(damage: Callable[[list[int]], list[Any]]) -> None:
    sizes = [
        len("Tree=" + part.removesuffix("end of trees\n")) for part in SMALL.split("Tree=")[1:]
    ]
    right = f"tree_sizes={sizes[0]} {sizes[1]}\n"
    assert right in SMALL
    wrong = f"tree_sizes={' '.join(map(str, damage(sizes)))}\n"
    with pytest.raises(DamagedModelError, match=r"tree_sizes|tree [01]|at end"):
        check_booster_text(SMALL.replace(right, wrong), 1)


def test_size_counted_from_the_end_is_refused() -> None:
    """As a Python slice, this negative size would give the right block."""
    block = _block(0, [], [])
    damaged = _text([block]).replace(f"={len(block)}\n", f"=-{len('end of trees.')}\n")
    with pytest.raises(DamagedModelError, match="tree_sizes: found -13"):
        check_booster_text(damaged, 1)


TREE_DAMAGES = [
    ("Tree", "0"),
    ("Tree", "2"),
    ("Tree", "01"),
    ("num_leaves", "0"),
    ("num_leaves", "-4"),
    ("num_leaves", "131073"),
    ("num_leaves", "4 4"),
    ("num_leaves", ""),
    ("num_leaves", "4.0"),
    ("num_cat", "1"),
    ("num_cat", "-1"),
    ("is_linear", "1"),
    ("shrinkage", ""),
    ("shrinkage", "nan"),
    ("shrinkage", "1e+999"),
    ("shrinkage", "1 1"),
    ("split_feature", "0 1 0"),
    ("split_feature", "0 -1 0"),
    ("split_feature", "0 2147483648 0"),
    ("split_feature", "0 4294967296 0"),
    ("split_gain", "1 inf 1"),
    ("split_gain", "1 nan 1"),
    ("threshold", "1 nan 1"),
    ("threshold", "1 inf 1"),
    ("threshold", "1 -inf 1"),
    ("threshold", "1 1e+999 1"),
    ("threshold", "1 infinity 1"),
    ("decision_type", "2 1 2"),
    ("decision_type", "2 3 2"),
    ("decision_type", "2 11 2"),
    ("decision_type", "2 12 2"),
    ("decision_type", "2 14 2"),
    ("decision_type", "2 -2 2"),
    ("decision_type", "2 258 2"),
    ("left_child", "-1 1 -2"),
    ("left_child", "-1 0 -2"),
    ("left_child", "-1 3 -2"),
    ("left_child", "-1 -5 -2"),
    ("left_child", "-1 -1 -2"),
    ("left_child", "-1 2147483648 -2"),
    ("right_child", "-2 -4 -3"),
    ("right_child", "0 -4 -3"),
    ("leaf_value", "1 2 3 inf"),
    ("leaf_value", "1 2 3 1e+309"),
    ("leaf_value", "1 2 3 -nan"),
    ("leaf_value", "1 2 3 0x1"),
    ("leaf_value", "1 2 3 1_0"),
    ("leaf_value", "1 2 3 +1"),
    ("leaf_value", "1 2 3 .5"),
    ("leaf_value", "1 2 3 5."),
    ("leaf_value", "1 2 3 05"),
    ("leaf_value", "1 2 3 1e5"),
    ("leaf_value", "1 2 3  4"),
    ("leaf_value", "1 2 3 4 "),
    ("leaf_value", "1 2 3 =4"),
    ("leaf_weight", "1 1 1 inf"),
    ("leaf_count", "6 6 6 0"),
    ("leaf_count", "6 6 6 -6"),
    ("leaf_count", "6 6 6 2147483648"),
    ("leaf_count", "6 6 6 1.5"),
    ("internal_value", "0 nan 0"),
    ("internal_weight", "0 inf 0"),
    ("internal_count", "0 6 6"),
    ("internal_count", "6 2147483648 6"),
]


@pytest.mark.parametrize(("key", "value"), TREE_DAMAGES)
def test_damaged_tree_is_refused(key: str, value: str) -> None:
    damaged = _edited(SMALL, 1, key, lambda _: value)
    with pytest.raises(DamagedModelError, match=rf"tree 1, .*{key}.*do: fit or copy"):
        check_booster_text(damaged, 1)


@pytest.mark.parametrize("change", [lambda v: v[:-2], lambda v: v + " 1", lambda v: ""])
@pytest.mark.parametrize("key", SPLIT_KEYS + LEAF_KEYS)
def test_wrong_length_is_refused(key: str, change: Callable[[str], str]) -> None:
    damaged = _edited(_text([_block(0, [1, -1, -3], [2, -2, -4])]), 0, key, lambda v: "1 1 1 1")
    if key in SPLIT_KEYS:
        damaged = _edited(damaged, 0, key, lambda v: v[:-2])
    damaged = _edited(damaged, 0, key, change)
    with pytest.raises(DamagedModelError, match=f"tree 0, {key}: found [0-9] .* expected [34] "):
        check_booster_text(damaged, 1)


@pytest.mark.parametrize("key", [*SPLIT_KEYS, "leaf_weight"])
def test_stump_with_entries_is_refused(key: str) -> None:
    with pytest.raises(DamagedModelError, match=f"tree 0, {key}: found 1 .* expected 0 "):
        check_booster_text(_edited(STUMP, 0, key, lambda _: "1"), 1)


@pytest.mark.parametrize("key", ["leaf_value", "leaf_count"])
def test_stump_without_its_leaf_is_refused(key: str) -> None:
    with pytest.raises(DamagedModelError, match=f"tree 0, {key}: found 0 .* expected 1 "):
        check_booster_text(_edited(STUMP, 0, key, lambda _: ""), 1)


@pytest.mark.parametrize("key", ["num_leaves", *SPLIT_KEYS, *LEAF_KEYS, "is_linear", "shrinkage"])
@pytest.mark.parametrize("change", ["removed", "twice", "renamed", "foreign key"])
def test_other_keys_are_refused(key: str, change: str) -> None:
    first, second = SMALL.split("Tree=1\n")
    start = second.index(f"{key}=")
    line = second[start : second.index("\n", start) + 1]
    new = {"removed": "", "twice": line * 2, "renamed": "x" + line, "foreign key": line + "x=1\n"}
    damaged = _with_sizes(f"{first}Tree=1\n{second.replace(line, new[change], 1)}")
    with pytest.raises(DamagedModelError, match="tree 1"):
        check_booster_text(damaged, 1)


@pytest.mark.parametrize(
    "ending", ["", "end of trees", "end of trees\n\n", "end of trees\nx", "\n"]
)
def test_other_endings_are_refused(ending: str) -> None:
    with pytest.raises(DamagedModelError, match="at end"):
        check_booster_text(SMALL.replace("end of trees\n", ending), 1)


@pytest.mark.parametrize("character", ["\0", "\r", "\t", "\x7f", "é", "\u0661", "\ud800", "\u2028"])
@pytest.mark.parametrize("place", ["Column_0", "Tree=1", "end of trees"])
def test_special_characters_are_refused(character: str, place: str) -> None:
    damaged = SMALL.replace(place, place + character)
    with pytest.raises(DamagedModelError, match="printable ASCII"):
        check_booster_text(damaged, 1)


def test_cycle_beside_the_root_is_refused() -> None:
    """Every node is a child exactly once here, yet nodes 1 and 2 hang on each other."""
    cycle = _text([_block(0, [-1, 2, 1], [-2, -3, -4])])
    with pytest.raises(DamagedModelError, match="found a cycle"):
        check_booster_text(cycle, 1)


def test_deep_tree_is_refused() -> None:
    for depth in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(DamagedModelError, match=f"at most {MAX_DEPTH}"):
            check_booster_text(_chain(depth), 1)


def _threshold_text(threshold: str, decision: str) -> str:
    text = _edited(SMALL, 0, "threshold", lambda _: f"1 {threshold} 1")
    return _edited(text, 0, "decision_type", lambda _: f"2 {decision} 2")


@pytest.mark.parametrize("decision", ["8", "10"])
def test_infinite_threshold_is_accepted_where_nan_is_missing(decision: str) -> None:
    check_booster_text(_threshold_text("inf", decision), 1)


INFINITE_DAMAGES = [("inf", "2"), ("inf", "6"), ("-inf", "8"), ("1e+999", "8"), ("-1e+309", "10")]


@pytest.mark.parametrize(("threshold", "decision"), INFINITE_DAMAGES)
def test_other_infinite_thresholds_are_refused(threshold: str, decision: str) -> None:
    with pytest.raises(DamagedModelError, match="tree 0, threshold"):
        check_booster_text(_threshold_text(threshold, decision), 1)


@pytest.mark.parametrize(
    "value", ["0", "-0", "1e-320", "1e+308", "123456.5", "0.00012345678901234567"]
)
def test_unusual_finite_numbers_are_accepted(value: str) -> None:
    check_booster_text(_edited(SMALL, 0, "leaf_value", lambda _: f"1 {value} 1 1"), 1)


def test_too_many_trees_are_refused() -> None:
    blocks = [_block(i, [], []) for i in range(MAX_TREES + 1)]
    with pytest.raises(DamagedModelError, match="10001 trees, expected 1 to 10000"):
        check_booster_text(_text(blocks), 1)


def test_too_long_text_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booster_text, "MAX_TEXT_LENGTH", len(SMALL))
    check_booster_text(SMALL, 1)
    with pytest.raises(DamagedModelError, match="length"):
        check_booster_text(SMALL + "\0", 1)


def test_another_number_of_features_is_refused() -> None:
    for n_features in (0, 2):
        with pytest.raises(DamagedModelError, match="max_feature_idx"):
            check_booster_text(SMALL, n_features)


# --- Mutations: what the checker accepts, LightGBM must survive.

# A crash of LightGBM would take pytest with it, so accepted texts are read in another process.
_SURVIVOR = """
import json, sys
# LightGBM does without these, and importing them takes longer than all the texts.
sys.modules.update(dict.fromkeys(("sklearn", "pandas", "matplotlib", "pyarrow", "dask")))
import lightgbm
import numpy as np
values = np.array([np.nan, 0.0, -1.0, 1.0, 1e308, -1e308, np.inf, -np.inf])
for text, n_features in json.load(sys.stdin):
    rows = np.random.default_rng(0).choice(values, size=(20, n_features))
    booster = lightgbm.Booster(model_str=text)
    scores = booster.predict(rows, raw_score=True, num_threads=1)
    parts = booster.predict(rows, pred_contrib=True, num_threads=1)
    assert scores.shape == (20,) and parts.shape == (20, n_features + 1)
    print("survived", flush=True)
"""


def _survive(texts: list[tuple[str, int]]) -> "subprocess.CompletedProcess[str]":
    """Return how a process ended that loads each text and predicts with it."""
    command = [sys.executable, "-c", _SURVIVOR]
    return subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, timeout=280, check=False
    )


def _spot(text: str, rng: Generator) -> int:
    return int(rng.integers(len(text)))


def _flip(text: str, rng: Generator) -> str:
    at = _spot(text, rng)
    return text[:at] + chr(ord(text[at]) ^ (1 << int(rng.integers(7)))) + text[at + 1 :]


def _replace(text: str, rng: Generator) -> str:
    at = _spot(text, rng)
    return text[:at] + str(rng.choice(list("0123456789-+.e =\n"))) + text[at + 1 :]


def _insert(text: str, rng: Generator) -> str:
    at = _spot(text, rng)
    return text[:at] + str(rng.choice(list("0123456789-+.e =\n"))) + text[at:]


def _drop(text: str, rng: Generator) -> str:
    at = _spot(text, rng)
    return text[:at] + text[at + 1 :]


def _truncate(text: str, rng: Generator) -> str:
    """Cut anywhere, or behind one of the marks that structure the text."""
    mark = str(rng.choice(["any", "\n", "=", " ", "Tree=", "\n\n", "-", ".", "end of"]))
    if mark == "any":
        return text[: _spot(text, rng)]
    ends = [i + len(mark) for i in range(len(text)) if text.startswith(mark, i)]
    return text[: int(rng.choice(ends))]


def _digit(text: str, rng: Generator) -> str:
    at = int(rng.choice([i for i, c in enumerate(text) if c.isdigit()]))
    return text[:at] + str(rng.integers(10)) + text[at + 1 :]


def _on_lines(text: str, rng: Generator, change: Callable[[list[str], int, int], None]) -> str:
    lines = text.split("\n")
    one, other = rng.integers(len(lines) - 1, size=2)
    change(lines, int(one), int(other))
    return "\n".join(lines)


def _delete_line(text: str, rng: Generator) -> str:
    return _on_lines(text, rng, lambda lines, one, _: lines.__delitem__(one))


def _repeat_line(text: str, rng: Generator) -> str:
    return _on_lines(text, rng, lambda lines, one, _: lines.insert(one, lines[one]))


def _copy_line(text: str, rng: Generator) -> str:
    return _on_lines(text, rng, lambda lines, one, other: lines.__setitem__(one, lines[other]))


def _swap_lines(text: str, rng: Generator) -> str:
    def swap(lines: list[str], one: int, other: int) -> None:
        lines[one], lines[other] = lines[other], lines[one]

    return _on_lines(text, rng, swap)


def _on_numbers(text: str, rng: Generator, change: Callable[[list[str], int, int], None]) -> str:
    """Change the numbers of one line."""
    lines = text.split("\n")
    at = int(rng.choice([i for i, line in enumerate(lines) if "=" in line]))
    key, _, value = lines[at].partition("=")
    numbers = value.split(" ")
    one, other = rng.integers(len(numbers), size=2)
    change(numbers, int(one), int(other))
    lines[at] = f"{key}={' '.join(numbers)}"
    return "\n".join(lines)


def _hostile_number(text: str, rng: Generator) -> str:
    hostile = ["-1", "0", "1", "2", "8", "-2", "2147483647", "-2147483648", "4294967296", "1e+999"]
    hostile += ["99999999999999999999", "nan", "inf", "-inf", "", "1_0", "+1", "0x1", "1e-320"]
    chosen = str(rng.choice(hostile))
    return _on_numbers(text, rng, lambda numbers, one, _: numbers.__setitem__(one, chosen))


def _swap_numbers(text: str, rng: Generator) -> str:
    def swap(numbers: list[str], one: int, other: int) -> None:
        numbers[one], numbers[other] = numbers[other], numbers[one]

    return _on_numbers(text, rng, swap)


def _delete_number(text: str, rng: Generator) -> str:
    return _on_numbers(text, rng, lambda numbers, one, _: numbers.__delitem__(one))


def _repeat_number(text: str, rng: Generator) -> str:
    return _on_numbers(text, rng, lambda numbers, one, _: numbers.insert(one, numbers[one]))


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _replace,
    _insert,
    _drop,
    _truncate,
    _digit,
    _delete_line,
    _repeat_line,
    _copy_line,
    _swap_lines,
    _hostile_number,
    _swap_numbers,
    _delete_number,
    _repeat_number,
)


def _originals() -> list[tuple[str, int]]:
    """Return small trained texts, so that mutations meet every field often."""
    texts = []
    for n_features, seed in ((3, 1), (1, 2)):
        rows = _rows(60, n_features, holes=True, seed=seed)
        texts.append(
            (canonical_text(_train(rows, _shares(rows, 3), 3).model_to_string()), n_features)
        )
    return [*texts, (SMALL, 1), (STUMP, 1)]


def _mutants(count: int, seed: int) -> list[tuple[str, int]]:
    """Return mutated texts; every second has its sizes repaired, to reach the later checks."""
    rng, originals, found = np.random.default_rng(seed), _originals(), list[tuple[str, int]]()
    while len(found) < count:
        original, n_features = originals[int(rng.integers(len(originals)))]
        mutant = MUTATIONS[len(found) % len(MUTATIONS)](original, rng)
        if len(found) // len(MUTATIONS) % 2:
            mutant = _with_sizes(mutant)
        if mutant != original:
            found.append((mutant, n_features))
    return found


def _is_accepted(text: str, n_features: int) -> bool:
    try:
        check_booster_text(text, n_features)
    except DamagedModelError:
        return False
    return True


def _extremes() -> list[tuple[str, int]]:
    """Return texts at the edge of what is legal."""
    huge = _edited(SMALL, 0, "leaf_value", lambda _: "1e+308 1e+308 -1e+308 1e-320")
    infinite = _edited(SMALL, 0, "threshold", lambda _: "inf inf inf")
    infinite = _edited(infinite, 0, "decision_type", lambda _: "8 10 8")
    kinds = _edited(SMALL, 1, "decision_type", lambda _: "0 4 6")
    counts = _edited(SMALL, 0, "leaf_count", lambda _: "2147483647 1 1 2147483647")
    return [(text, 1) for text in (SMALL, STUMP, _chain(MAX_DEPTH), huge, infinite, kinds, counts)]


def _assert_accepted_texts_survive(mutants: list[tuple[str, int]]) -> None:
    extremes = _extremes()
    assert all(_is_accepted(*text) for text in extremes)
    accepted = [mutant for mutant in mutants if _is_accepted(*mutant)]
    # Otherwise the mutations would test the checker or LightGBM, but not both.
    assert len(mutants) / 20 < len(accepted) < len(mutants) / 2
    texts = extremes + accepted
    ended = _survive(texts)
    survived = ended.stdout.count("survived")
    print(
        f"{len(mutants)} mutants, {len(accepted)} accepted; {survived}/{len(texts)} texts survived"
    )
    killer = texts[survived][0] if survived < len(texts) else ""
    assert ended.returncode == 0, f"{ended.stderr[-2000:]}\nby this text:\n{killer}"
    assert survived == len(texts)


def test_accepted_mutants_survive() -> None:
    _assert_accepted_texts_survive(_mutants(560, seed=20))


@pytest.mark.slow
def test_many_accepted_mutants_survive() -> None:
    _assert_accepted_texts_survive(_mutants(8400, seed=21))


def test_survivor_process_notices_a_bad_text() -> None:
    """The mutation tests are worth nothing if their process ends well whatever it reads."""
    bad = SMALL.replace("feature_infos=[-2.5:1e+05]", "feature_infos=none none")
    ended = _survive([(SMALL, 1), (bad, 1), (SMALL, 1)])
    assert ended.returncode != 0
    assert ended.stdout.count("survived") == 1
