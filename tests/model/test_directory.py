"""A model at rest: what was written comes back, and nothing else is ever read as a model."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mrot_scale import MROT
from mrot_scale.errors import (
    DamagedModelError,
    MissingInputError,
    ModelMismatchError,
    OutputError,
)
from mrot_scale.model.persist import model_files, model_of
from tests.tables import normal_rows

GOLDEN = Path(__file__).parent.parent / "golden" / "model-v1"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model"
    views = (
        {"scaling": "robust", "separate": True},
        {"scaling": "standard", "whiten": 2},
        {"scaling": "robust"},
    )
    detector = MROT(repeats=2, anchor_sets=2, batch_rows=32, views=views, hybrid="always")
    detector.fit(normal_rows(80)).save(path)
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def rewrite(path: Path, name: str, content: bytes) -> None:
    """Change a file and the list's digest of it, as only someone at work on it would."""
    (path / name).write_bytes(content)
    manifest = json.loads((path / "MANIFEST.json").read_text())
    manifest["files"][name] = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (path / "MANIFEST.json").write_text(json.dumps(manifest))


def test_no_file_holds_a_pickle(saved: Path) -> None:
    for path in saved.iterdir():
        assert path.suffix in {".npy", ".json", ".txt"}
        if path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        else:
            path.read_text(encoding="ascii")


def test_saving_twice_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    MROT.load(saved).save(tmp_path / "again")
    for path in saved.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_every_file_is_guarded_against_a_flipped_bit(copy: Path) -> None:
    for path in sorted(copy.iterdir()):
        original = path.read_bytes()
        for position in {0, len(original) // 2, len(original) - 1}:
            flipped = bytearray(original)
            flipped[position] ^= 1
            path.write_bytes(bytes(flipped))
            with pytest.raises((DamagedModelError, ModelMismatchError)):
                MROT.load(copy)
        path.write_bytes(original)
    MROT.load(copy)


def test_every_file_is_guarded_against_truncation_and_loss(copy: Path) -> None:
    for path in sorted(copy.iterdir()):
        original = path.read_bytes()
        path.write_bytes(original[: len(original) // 2])
        with pytest.raises(DamagedModelError):
            MROT.load(copy)
        path.unlink()
        with pytest.raises(DamagedModelError):
            MROT.load(copy)
        path.write_bytes(original)


def _put_pickle(path: Path) -> None:
    rewrite(path, "fill.npy", _object_array())


def _object_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def _array(values: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(values))
    return buffer.getvalue()


FORGERIES: dict[str, Callable[[Path], object]] = {
    "object array": _put_pickle,
    "no array": lambda p: rewrite(p, "fill.npy", b"not an array"),
    "wrong length": lambda p: rewrite(p, "fill.npy", _array([1.0])),
    "wrong type": lambda p: rewrite(p, "fill.npy", _array([1, 2, 3])),
    "not finite": lambda p: rewrite(p, "fill.npy", _array([np.nan, 0.0, 0.0])),
    "zero scale": lambda p: rewrite(p, "view0.scale.npy", _array([0.0, 1.0, 1.0])),
    "anchors of other shape": lambda p: rewrite(p, "view0.anchor-v.npy", _array([[1.0]])),
    "map that falls": lambda p: rewrite(
        p, "last.model.rarity.npy", _array(np.load(p / "last.model.rarity.npy")[::-1])
    ),
    "columns beyond the table": lambda p: rewrite(
        p,
        "model.json",
        (p / "model.json").read_bytes().replace(b'"columns": null', b'"columns": [7]', 1),
    ),
    "no training scores": lambda p: rewrite(
        p, "training-scores.model.npy", _array(np.zeros(0, dtype=np.float32))
    ),
    "shape beyond the file": lambda p: rewrite(
        p, "fill.npy", _array(np.zeros(3)).replace(b"(3,)", b"(9999999999,)")
    ),
    "negative tail": lambda p: rewrite(p, "last.model.tail-scale.npy", _array([-1.0])),
    "no tail": lambda p: rewrite(p, "last.model.tail-scale.npy", _array(np.zeros(0))),
    "two tails": lambda p: rewrite(p, "last.model.tail-scale.npy", _array([1.0, 1.0])),
    "an archive for an array": lambda p: rewrite(p, "fill.npy", b"PK\x03\x04" + bytes(99)),
    "a header that is a program": lambda p: rewrite(
        p, "fill.npy", _array(np.zeros(3)).replace(b"(3,)", b"(" * 4)
    ),
    "a header of long ago": lambda p: rewrite(
        p, "fill.npy", _array(np.zeros(3)).replace(b"(3,)", b"(3L)")
    ),
    "rows of endless width": lambda p: rewrite(
        p,
        "view0.components.npy",
        _array(np.zeros((0, 0))).replace(b"(0, 0), }" + b" " * 9, b"(0, 999999999), }"),
    ),
    "more than an array": lambda p: rewrite(p, "fill.npy", _array(np.zeros(3)) + b"\0"),
    "truths that are neither": lambda p: rewrite(
        p, "view0.squash.npy", (p / "view0.squash.npy").read_bytes()[:-1] + b"\2"
    ),
    "a projection of another width": lambda p: rewrite(
        p, "view1.components.npy", _array(np.load(p / "view1.components.npy")[:-1])
    ),
    "a projection nobody asked for": lambda p: rewrite(
        p, "view2.components.npy", _array(np.ones((3, 3)))
    ),
    "less than no entropy": lambda p: rewrite(
        p, "view2.anchor-eps.npy", _array(np.load(p / "view2.anchor-eps.npy") - 1)
    ),
    "slack below nothing": lambda p: rewrite(
        p, "view2.anchor-slack.npy", _array(np.load(p / "view2.anchor-slack.npy") - 1)
    ),
    "slack of too few sets": lambda p: rewrite(
        p, "view2.anchor-slack.npy", _array(np.load(p / "view2.anchor-slack.npy")[1:])
    ),
    "a share beyond all rows": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'n": 0.01', b'n": 7.01')
    ),
    "a share that is text": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'n": 0.01', b'n": "x"')
    ),
    "a method that is none": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'd": "model"', b'd": "mode"')
    ),
    "trees cut short": lambda p: rewrite(
        p,
        "booster.txt",
        (p / "booster.txt").read_bytes()[: (p / "booster.txt").stat().st_size // 2],
    ),
    "trees of another model": lambda p: rewrite(
        p, "booster.txt", (p / "booster.txt").read_bytes().replace(b"_idx=5", b"_idx=9")
    ),
    "trees without efforts in place of those with": lambda p: rewrite(
        p, "booster.txt", (p / "plain-booster.txt").read_bytes()
    ),
    "trees with efforts to explain by": lambda p: rewrite(
        p, "plain-booster.txt", (p / "booster.txt").read_bytes()
    ),
    "anchors that see columns beyond the view": lambda p: rewrite(
        p, "view0.anchor-columns.npy", _array(np.load(p / "view0.anchor-columns.npy") + 2)
    ),
    "anchors that see other sets' columns": lambda p: rewrite(
        p, "view0.anchor-columns.npy", _array(np.load(p / "view0.anchor-columns.npy")[1:])
    ),
    "floors of other sets": lambda p: rewrite(p, "view0.floor.npy", _array([1.0, 1.0])),
    "floors of no height": lambda p: rewrite(
        p, "view0.floor.npy", _array(0 * np.load(p / "view0.floor.npy"))
    ),
    "map of a set that falls": lambda p: rewrite(
        p, "view0.set1.knots.npy", _array(np.load(p / "view0.set1.knots.npy")[::-1])
    ),
    "no trees": lambda p: rewrite(p, "booster.txt", b""),
    "not text": lambda p: rewrite(p, "booster.txt", b"\xff\xfe"),
    "unknown setting": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'"alpha"', b'"alpina"')
    ),
    "unknown score model": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'l": "hybrid"', b'l": "oracle"')
    ),
    "no scoring method": lambda p: rewrite(
        p, "model.json", (p / "model.json").read_bytes().replace(b'"method": ', b'"mtehod": ')
    ),
    "names that are none": lambda p: rewrite(
        p,
        "model.json",
        (p / "model.json").read_bytes().replace(b'_names": null', b'_names": "abc"'),
    ),
    "json of another kind": lambda p: rewrite(p, "model.json", b"[]"),
    "json that is none": lambda p: rewrite(p, "model.json", b"{"),
    "deep json": lambda p: rewrite(p, "model.json", b"[" * 100_000),
    "extra file": lambda p: (p / "notes.txt").write_text("hello"),
    "name outside": lambda p: _list_as(p, "../fill.npy"),
    "odd name": lambda p: _list_as(p, "fill.pkl"),
    "symbolic link": lambda p: _link(p, "fill.npy"),
    "foreign manifest": lambda p: (p / "MANIFEST.json").write_text('{"a": 1}'),
    "manifest no json": lambda p: (p / "MANIFEST.json").write_text("MANIFEST"),
    "manifest too large": lambda p: (p / "MANIFEST.json").write_text(" " * 2**21),
}


def _list_as(path: Path, name: str) -> None:
    manifest = json.loads((path / "MANIFEST.json").read_text())
    manifest["files"][name] = manifest["files"].pop("fill.npy")
    (path / "MANIFEST.json").write_text(json.dumps(manifest))


def _link(path: Path, name: str) -> None:
    elsewhere = path.parent / "elsewhere"
    (path / name).rename(elsewhere)
    (path / name).symlink_to(elsewhere)


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_models_are_refused(forge: Callable[[Path], object], copy: Path) -> None:
    forge(copy)
    with pytest.raises(DamagedModelError):
        MROT.load(copy)


def test_what_does_not_fit_is_told_in_one_line_with_the_place(copy: Path) -> None:
    text = (copy / "model.json").read_text()
    rewrite(copy, "model.json", text.replace('"alpha": 0.04', '"alpha": "\\n\\n"').encode())
    with pytest.raises(DamagedModelError, match=f"^{copy}: ") as refused:
        MROT.load(copy)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_a_model_of_another_format_is_refused_by_its_number(copy: Path) -> None:
    text = (copy / "MANIFEST.json").read_text()
    (copy / "MANIFEST.json").write_text(text.replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(ModelMismatchError, match="model format 2"):
        MROT.load(copy)


def test_what_is_no_model_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="No model"):
        MROT.load(tmp_path / "nowhere")
    with pytest.raises(DamagedModelError, match="not a model directory"):
        MROT.load(tmp_path)


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    fitted = MROT(repeats=2, anchor_sets=2, batch_rows=32).fit(normal_rows(80))
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(OutputError, match="Cannot write"):
        fitted.save(blocker / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_models_of_before_average_over_all_sets() -> None:
    rows = normal_rows(80, 3)
    fitted = MROT(average="mean", anchor_sets=5, batch_rows=16, anchor_rows=16).fit(rows).model_
    files = model_files(fitted)
    header = json.loads(files.content["model.json"])
    del header["config"]["average"]
    changed = files.content | {"model.json": json.dumps(header).encode()}
    before, _ = model_of(type(files).of(changed))
    assert before.config.average == "mean"
    scores = before.score(rows, "effort")
    np.testing.assert_array_equal(scores, fitted.score(rows, "effort"))
    header["config"]["average"] = "middle"
    changed["model.json"] = json.dumps(header).encode()
    other, _ = model_of(type(files).of(changed))
    assert (other.score(rows, "effort") != scores).any()


def test_the_golden_model_still_loads_and_scores_the_same() -> None:
    """Models written by earlier releases stay readable within a major version."""
    expected = json.loads((GOLDEN.parent / "scores-v1.json").read_text())
    loaded = MROT.load(GOLDEN)
    # Its settings know no anchor_sets: what it has is in its arrays.
    assert [len(view.anchors) for view in loaded.model_.views] == [2, 2]
    assert loaded.model_.config.average == "mean"
    rows = np.array(expected["rows"])
    for method in ("model", "effort"):
        np.testing.assert_allclose(loaded.anomaly_score(rows, method), expected[method], atol=1e-6)
