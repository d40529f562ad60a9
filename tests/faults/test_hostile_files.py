"""Files that somebody made on purpose: every loader ends in a documented error, soon and small.

Half of the mutants agree with a list of files that was written anew for them, so that what stands
behind the digests is met as well. Whatever a loader accepts must also score, without ending the
process: LightGBM reads what the check of its text lets through.
"""

import hashlib
import io
import json
import re
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from numcodecs import CRC32C, Zstd  # type: ignore[import-untyped]
from numpy.random import Generator

import mrot_scale
from mrot_scale.config.layers import load_config
from mrot_scale.config.scoring import Method
from mrot_scale.config.text import show_config
from mrot_scale.describe import describe
from mrot_scale.digests import digest
from mrot_scale.errors import MrotError
from mrot_scale.model.columns import load_schema
from mrot_scale.model.hybrid import Explaining
from mrot_scale.model.persist import load_model
from mrot_scale.reading.sources import open_source
from mrot_scale.storing.location import Location
from mrot_scale.storing.manifest import Entry, Manifest
from mrot_scale.storing.store import FeatureStore
from mrot_scale.verifying.everything import verify
from mrot_scale.verifying.findings import Verified
from tests.jobs.made import TINY
from tests.model.test_booster_text import MUTATIONS, _with_sizes
from tests.running.jobs import make_table
from tests.servers import PROJECT, mrot, run

SEED = 20_261_116
CODES = {65, 66, 74, 78}
LONGEST_S = 2.0
"""A load's limit, where the machine is not slow: see `longest_s`."""

LARGEST_CONTENT = 2**28
"""Bytes that the largest of the hostile tables holds, uncompressed."""

LONGEST_TEXT = 2_000
LARGEST_RISE = 200 * 2**20
DEEP = "[" * 10_000
Change = Callable[[bytes, Generator], bytes]

CONFIG: dict[str, Any] = TINY | {"store": {"chunk_bytes": 8_000}, "scoring": {"percentile": True}}


# Mutations of bytes


def _spot(content: bytes | bytearray, rng: Generator) -> int:
    return int(rng.integers(max(len(content), 1)))


def flip_a_bit(content: bytes, rng: Generator) -> bytes:
    found = bytearray(content or b"\0")
    found[_spot(found, rng)] ^= 1 << int(rng.integers(8))
    return bytes(found)


def insert_bytes(content: bytes, rng: Generator) -> bytes:
    at = _spot(content, rng)
    return content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]


def delete_bytes(content: bytes, rng: Generator) -> bytes:
    at = _spot(content, rng)
    return content[:at] + content[at + int(rng.integers(1, 9)) :]


def cut_short(content: bytes, rng: Generator) -> bytes:
    return content[: _spot(content, rng)]


def repeat_a_part(content: bytes, rng: Generator) -> bytes:
    one, other = sorted((_spot(content, rng), _spot(content, rng)))
    return content[:other] + content[one:]


def put_noise(content: bytes, rng: Generator) -> bytes:
    return rng.bytes(int(rng.integers(0, 300)))


BYTES: tuple[Change, ...] = (
    flip_a_bit,
    insert_bytes,
    delete_bytes,
    cut_short,
    repeat_a_part,
    put_noise,
)


# Mutations of JSON

HOSTILE_JSON = (
    *("null", "true", "false", "0", "-1", "1e308", "1e999", "NaN", "Infinity", "-Infinity"),
    *("1" * 5_000, "-0.0", "4294967296", "9223372036854775808", "1000000000000", "0.5"),
    *(
        '""',
        '"x"',
        '"../../etc/passwd"',
        '"\\u0000"',
        '"\\ud800"',
        '"__class__"',
        '"' + "y" * 9_999,
    ),
    *("[]", "{}", "[[]]", "[null]", '{"a": {}}', "[1000000000000, 1000000]", "[1e12, 1e6]"),
    *(DEEP, DEEP + "]" * 10_000, '{"a":' * 10_000, "[" * 900 + "]" * 900, "[" * 960 + "]" * 960),
    *('"|O"', '"object"', '"string"', '"float16"', '"<U10"', '{"name": "numcodecs.pickle"}'),
    '[{"name": "numcodecs.evil", "configuration": {}}]',
)
_VALUE = re.compile(r'(?<=[:\[,])\s*(?:"(?:[^"\\]|\\.)*"|[-\w.]+|\[[^\[\]]*\])')
_PAIR = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[-\w.]+|\[[^\[\]]*\])')


def _replace_match(text: str, pattern: re.Pattern[str], new: str, rng: Generator) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return new
    chosen = found[int(rng.integers(len(found)))]
    return text[: chosen.start()] + new.replace("\0", chosen.group()) + text[chosen.end() :]


def put_hostile_value(content: bytes, rng: Generator) -> bytes:
    value = HOSTILE_JSON[int(rng.integers(len(HOSTILE_JSON)))]
    return _replace_match(content.decode(), _VALUE, f" {value}", rng).encode()


def remove_a_key(content: bytes, rng: Generator) -> bytes:
    return _replace_match(content.decode(), _PAIR, '"gone": 0', rng).encode()


def repeat_a_key(content: bytes, rng: Generator) -> bytes:
    return _replace_match(content.decode(), _PAIR, "\0, \0", rng).encode()


def wrap_all(content: bytes, rng: Generator) -> bytes:
    depth = int(rng.choice([1, 50, 10_000]))
    return b"[" * depth + content + b"]" * depth


JSON: tuple[Change, ...] = (put_hostile_value,) * 4 + (remove_a_key, repeat_a_key, wrap_all)


# Mutations of arrays and of trees


def _saved(values: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, **options)
    return buffer.getvalue()


HOSTILE_ARRAYS: dict[str, Callable[[], bytes]] = {
    "objects": lambda: _saved(np.array([{"a": 1}], dtype=object), allow_pickle=True),
    "strings": lambda: _saved(np.array(["a", "b"])),
    "a record": lambda: _saved(np.zeros(3, dtype=[("a", "f8")])),
    "a number": lambda: _saved(np.float64(1)),
    "nothing": lambda: _saved(np.zeros(0)),
    "NaN": lambda: _saved(np.full(4, np.nan)),
    "infinity": lambda: _saved(np.full(4, np.inf)),
    "huge numbers": lambda: _saved(np.full(4, 1e308)),
    "tiny numbers": lambda: _saved(np.full(4, 5e-324)),
    "zeros": lambda: _saved(np.zeros(4)),
    "columns first": lambda: _saved(np.asfortranarray(np.zeros((4, 3)))),
    "the other byte order": lambda: _saved(np.zeros(4, dtype=">f8")),
    "an archive": lambda: b"PK\x03\x04" + bytes(100),
    "a pickle": lambda: b"\x80\x04\x95\x00",
    "a newer version": lambda: _saved(np.zeros(4)).replace(b"NUMPY\x01", b"NUMPY\x03"),
}
_HEADERS = (
    (rb"\(\d+,", b"(1000000000000,"),
    (rb"\(\d+,", b"(-4,"),
    (rb"\(\d+,", b"(18446744073709551617,"),
    (rb"\([\d, ]+\)", b"(1000000000000, 1000000)"),
    (rb"\([\d, ]+\)", b"(0, 999999999999999999)"),
    (rb"\([\d, ]+\)", b"()"),
    (rb"\([\d, ]+\)", b"(" * 2_000),
    (rb"\([\d, ]+\)", b"(4L,)"),
    (rb"'<?\|?[a-z]\d'", b"'|O'"),
    (rb"'<?\|?[a-z]\d'", b"'<U9'"),
    (rb"'<?\|?[a-z]\d'", b"'|V99999999'"),
    (rb"False", b"True"),
    (rb"\{'descr'", b"{'evil': __import__('os'), 'descr'"),
)


def put_hostile_array(content: bytes, rng: Generator) -> bytes:
    made = list(HOSTILE_ARRAYS.values())
    return made[int(rng.integers(len(made)))]()


def change_the_header(content: bytes, rng: Generator) -> bytes:
    old, new = _HEADERS[int(rng.integers(len(_HEADERS)))]
    return re.sub(old, lambda _: new, content, count=1)


def change_a_number(content: bytes, rng: Generator) -> bytes:
    values = np.load(io.BytesIO(content), allow_pickle=False)
    if not values.size:
        return _saved(np.zeros(3))
    hostile = [0.0, -1.0, np.nan, np.inf, 1e308, -1e308, 5e-324, 2.0**31]
    with np.errstate(all="ignore"):
        chosen = np.array(rng.choice(hostile if values.dtype.kind == "f" else [0, 1, -1, 100]))
        np.put(values, [int(rng.integers(values.size))], chosen)
    return _saved(values)


def change_the_shape(content: bytes, rng: Generator) -> bytes:
    values = np.load(io.BytesIO(content), allow_pickle=False)
    changes: list[Callable[[], Any]] = [
        lambda: values[:-1],
        lambda: values[:0],
        lambda: values[None],
        lambda: values.reshape(-1),
        lambda: values.T,
        lambda: np.concatenate([values, values]) if values.ndim else values,
        lambda: values[..., :1],
    ]
    return _saved(np.ascontiguousarray(changes[int(rng.integers(len(changes)))]()))


ARRAYS: tuple[Change, ...] = (
    put_hostile_array,
    change_the_header,
    change_the_header,
    change_a_number,
    change_a_number,
    change_the_shape,
)


def change_the_trees(content: bytes, rng: Generator) -> bytes:
    mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
    mutant = mutation(content.decode(), rng)
    return (_with_sizes(mutant) if rng.integers(4) else mutant).encode(errors="surrogatepass")


# Small files that become large


@cache
def _frame(n_bytes: int) -> bytes:
    return bytes(Zstd(1).encode(np.zeros(n_bytes, dtype=np.uint8)))


def put_a_large_chunk(content: bytes, rng: Generator) -> bytes:
    """Make a chunk that decodes to more than memory is given, with a good checksum."""
    sizes = ([2**28], [8_000, 2**28], [8_000] + [2**22] * 64, [0, 8_000], [8_000])
    frames = [_frame(n) for n in sizes[int(rng.integers(len(sizes)))]]
    return bytes(CRC32C(location="end").encode(b"".join(frames)))


def put_many_rows(content: bytes, rng: Generator) -> bytes:
    return _many_rows()


@cache
def _many_rows() -> bytes:
    buffer = io.BytesIO()
    column = pa.array(np.zeros(2**22, dtype=np.int64))
    with pq.ParquetWriter(buffer, pa.schema([("score", pa.int64())])) as writer:
        for _ in range(8):
            writer.write_table(pa.table({"score": column}))
    return buffer.getvalue()


def changes_for(name: str) -> tuple[Change, ...]:
    """Return what may be done to a file: always to its bytes, and to what they mean."""
    kinds: dict[str, tuple[Change, ...]] = {
        ".json": JSON,
        ".npy": ARRAYS,
        ".txt": (change_the_trees,) * 6,
        ".parquet": (put_many_rows,),
        "": (put_a_large_chunk,),
    }
    return BYTES + kinds.get(Path(name).suffix, ())


# What is loaded


@dataclass
class Hostile:
    """A folder that is damaged file by file, and how it is read."""

    folder: Path
    loads: tuple[Callable[[Path], object], ...]
    originals: dict[str, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.originals = {
            str(p.relative_to(self.folder)): p.read_bytes()
            for p in sorted(self.folder.rglob("*"))
            if p.is_file()
        }

    def mutants(self, rng: Generator) -> Iterator[tuple[str, str]]:
        """Put one mutant after another in place; yield how it was made."""
        names = list(self.originals)
        texts = [n for n in names if Path(n).suffix in (".json", ".txt", "")]
        while True:
            some = texts if rng.integers(2) else names
            name = some[int(rng.integers(len(some)))]
            changes = changes_for(name)
            change = changes[int(rng.integers(len(changes)))]
            content = change(self.originals[name], rng)
            relisted = bool(rng.integers(2)) and "MANIFEST" not in name
            with self.replaced(name, content, relisted):
                yield name, f"{change.__name__}{', listed anew' if relisted else ''}"

    @contextmanager
    def replaced(self, name: str, content: bytes, relisted: bool) -> Iterator[None]:
        list_names = [n for n in self.originals if n.endswith("MANIFEST.json")] if relisted else []
        (self.folder / name).write_bytes(content)
        for list_name in list_names:
            self._list_anew(list_name, name, content)
        try:
            yield
        finally:
            for changed in (name, *list_names):
                (self.folder / changed).write_bytes(self.originals[changed])

    def _list_anew(self, list_name: str, name: str, content: bytes) -> None:
        found = json.loads(self.originals[list_name])
        files = {n: Entry(e["bytes"], e["sha256"]) for n, e in found["files"].items()}
        files[name] = Entry.of(content)
        written = Manifest(found["format"], found["format_version"], files, found.get("facts", {}))
        (self.folder / list_name).write_bytes(written.to_bytes())


def load_and_score(folder: Path) -> None:
    """Load a model and score with it: what is accepted must also be safe to use."""
    model, _ = load_model(Location(folder))
    rows = np.random.default_rng(0).normal(size=(4, model.n_features))
    methods: tuple[Method, ...] = ("model", "effort")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # threads know nothing of the line above
        for method in methods:
            assert model.score(rows, method).shape == (4,)
            model.threshold(method, 0.01)
        if isinstance(model.score_model, Explaining):
            assert model.score_model.contributions(rows).shape == rows.shape


def load_columns(folder: Path) -> None:
    load_schema(Location(folder))


def open_and_read(folder: Path) -> None:
    store = FeatureStore.open(Location(folder))
    for chunk in range(min(len(store.chunks), 3)):
        store.read_chunk(chunk)
        store.read_ids(chunk)


def read_foreign(folder: Path) -> None:
    """Read the first rows of an array that somebody else wrote."""
    stream = open_source(folder)
    next(iter(stream.read(stream.schema.names)), None)


def load_and_show(path: Path) -> None:
    show_config(load_config(path, environment={}))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything that is loaded."""
    base = tmp_path_factory.mktemp("hostile")
    table = make_table(base / "table.parquet")
    mrot_scale.ingest(table, base / "store", id="reading", config=CONFIG)
    mrot_scale.fit(base / "store", base / "model", CONFIG)
    places = base / "model", base / "store", base / "scores"
    mrot_scale.score(*places, CONFIG, parquet=base / "parquet")
    rows = np.random.default_rng(0).normal(size=(20, 3))
    zarr.create_array(base / "zarr3", data=rows, chunks=(6, 3))
    zarr.create_array(base / "zarr2", data=rows, chunks=(6, 3), zarr_format=2)
    return base


@pytest.fixture
def targets(made: Path, tmp_path: Path) -> dict[str, Hostile]:
    """Copies of them, each with what reads it."""
    loads: dict[str, tuple[Callable[[Path], object], ...]] = {
        "model": (load_and_score, load_columns, verify),
        "store": (open_and_read, verify),
        "scores": (digest, describe, verify),
        "parquet": (digest, describe, verify),
        "scores.run": (verify,),
        "zarr3": (read_foreign,),
        "zarr2": (read_foreign,),
    }
    for name in loads:
        shutil.copytree(made / name, tmp_path / name)
    return {name: Hostile(tmp_path / name, found) for name, found in loads.items()}


# Settings

HOSTILE_YAML = {
    "a bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{n}: &{n} [{','.join(f'*{p}' for _ in range(9))}]\n" for p, n in pairwise("abcdefghi")
    )
    + "views: *i\n",
    "a bomb as a setting": "label_rows: [&a [1,1,1,1,1,1,1,1], *a, *a, *a]\n",
    "a circle": "views: &a [*a]\n",
    "an object": "views: !!python/object/apply:os.system ['true']\n",
    "a module": "a: !!python/module:os\n",
    "a tuple": "views: !!python/tuple [1]\n",
    "an integer that is none": "label_rows: !!int abc\n",
    "an empty integer": "label_rows: !!int ''\n",
    "an empty decimal": "alpha: !!float ''\n",
    "a truth that is none": "coverage: !!bool perhaps\n",
    "a moment that is none": "coverage: !!timestamp soon\n",
    "an impossible date": "coverage: 2024-99-99\n",
    "bytes": "coverage: !!binary 'a'\n",
    "a set": "!!set {a, b}\n",
    "a list of pairs": "cluster: !!omap [a: 1]\n",
    "a key that is a list": "? [a]\n: 1\n",
    "a key that is nothing": "~: 1\n",
    "a key twice": "alpha: 0.1\nalpha: 0.2\n",
    "digits": f"label_rows: {'9' * 5_000}\n",
    "hex digits": f"label_rows: 0x{'f' * 5_000}\n",
    "sixties": f"label_rows: {'1:' * 20_000}1\n",
    "infinity": "alpha: .inf\n",
    "no number": "alpha: .nan\n",
    "deep": f"views: {DEEP}\n",
    "deep dashes": "- " * 5_000 + "\n",
    "deep indents": "".join(f"{' ' * n}a:\n" for n in range(300)),
    "two documents": "a: 1\n---\nb: 2\n",
    "control characters": "alpha: \x00\x1b[2J\n",
    "a large file": "# " + "x" * 10**6 + "\n",
    "a long name": f"{'x' * 20_000}: 1\n",
    "a way out": "run: {folder: '../../../../etc/passwd'}\n",
    "a class": "cluster: {kind: 'os:system', arguments: {command: 'true'}}\n",
    "odd arguments": "cluster: {kind: 'dask:x', arguments: {a: !!set {x}, b: 2024-01-01}}\n",
    "blocks that are none": "store: 3\ncluster: []\nscoring: x\nrun: [1]\n",
}
HOSTILE_TOML = {
    "deep": f"views = {DEEP}\n",
    "dots": f"a{'.a' * 20_000} = 1\n",
    "a deep table": f"[a{'.a' * 20_000}]\n",
    "digits": f"label_rows = {'9' * 5_000}\n",
    "hex digits": f"label_rows = 0x{'f' * 5_000}\n",
    "infinity": "alpha = inf\n",
    "no number": "alpha = nan\n",
    "a key twice": "alpha = 0.1\nalpha = 0.2\n",
    "a moment": "label_rows = 1979-05-27T07:32:00Z\n",
    "inline tables": f"a = {'{b=' * 5_000}\n",
    "no text": "\udcff",
    "a list of views": "[[views]]\nscaling = 'none'\n[[views.columns]]\nx = 1\n",
}
_SETTING = re.compile(r"(?<=[:=])[ ]*[^\n#]+")
HOSTILE_SETTINGS = (
    *("", "[]", "{}", "-1", "0", "1e400", ".nan", "nan", "inf", "null", "true", "1" * 4_500),
    *("'x'", '"\\ud800"', "[1, 2]", "{a: 1}", "!!int x", "!!timestamp x", "&a [*a]", "*a", "|"),
    *("0x" + "f" * 4_400, "[" * 90 + "]" * 90, DEEP, "2024-13-45", "!!python/name:os.system", "%"),
)


def put_hostile_setting(content: bytes, rng: Generator) -> bytes:
    value = HOSTILE_SETTINGS[int(rng.integers(len(HOSTILE_SETTINGS)))]
    return _replace_match(content.decode(), _SETTING, f" {value}", rng).encode()


def hostile_settings(folder: Path, rng: Generator) -> Iterator[tuple[str, Path]]:
    """Write one hostile settings file after another; yield how it was made, and where."""
    for suffix, texts in ((".yaml", HOSTILE_YAML), (".toml", HOSTILE_TOML)):
        for what, text in texts.items():
            path = folder / f"hostile{suffix}"
            path.write_bytes(text.encode(errors="surrogateescape"))
            yield what, path
    originals = [p.read_bytes() for p in sorted((PROJECT / "configs").glob("*.yaml"))]
    originals += [re.sub(rb"(?m)^(\w+): (\w+)$", rb'\1 = "\2"', text) for text in originals]
    changes = (*BYTES, *(put_hostile_setting,) * 6)
    while True:
        change = changes[int(rng.integers(len(changes)))]
        number = int(rng.integers(len(originals)))
        path = folder / f"mutant{'.toml' if number >= len(originals) // 2 else '.yaml'}"
        path.write_bytes(change(originals[number], rng))
        yield change.__name__, path


@cache
def longest_s() -> float:
    """Return the limit of one load: a digest hashes all of a table, at the machine's pace."""
    piece, total, begun = bytes(2**20), hashlib.sha256(), time.process_time()
    for _ in range(LARGEST_CONTENT // len(piece)):
        total.update(piece)
    return max(LONGEST_S, 4 * (time.process_time() - begun))


@dataclass
class Trial:
    """Lets loaders meet hostile files, and keeps what came of it."""

    codes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    baseline: int = field(default_factory=lambda: psutil.Process().memory_info().rss)
    largest: int = 0

    def meet(self, load: Callable[[Path], object], path: Path, *, of: str) -> None:
        """Load something hostile: it works, or it is refused in a documented way."""
        came, seconds = self._timed(load, path, of)
        if seconds >= longest_s():  # the machine may have been busy with others
            seconds = self._timed(load, path, of)[1]
        self.codes[came] += 1
        self.slowest = max(self.slowest, seconds)
        assert seconds < longest_s(), f"{of}: took {seconds:.1f} s, twice"
        self.largest = max(self.largest, psutil.Process().memory_info().rss)
        assert self.largest - self.baseline < LARGEST_RISE, f"{of}: memory"

    def _timed(self, load: Callable[[Path], object], path: Path, of: str) -> tuple[str, float]:
        """Return what came of it, and the seconds it took: of a clock or of CPU, whichever is less.

        On a busy machine the clock counts other programs; on several cores CPU counts each.
        """
        begun, begun_cpu = time.perf_counter(), time.process_time()
        try:
            came = "verified" if isinstance(load(path), Verified) else "accepted"
        except MrotError as error:
            if error.exit_code not in CODES or "\n" in str(error) or len(str(error)) > LONGEST_TEXT:
                raise AssertionError(f"{of}: error[{error.exit_code}]: {error!s:.500}") from error
            came = f"error[{error.exit_code}]"
        except Exception as error:
            raise AssertionError(f"{of}: {type(error).__name__}: {error!s:.500}") from error
        return came, min(time.perf_counter() - begun, time.process_time() - begun_cpu)

    def told(self) -> str:
        rise = (self.largest - self.baseline) / 2**20
        counts = ", ".join(f"{n} {what}" for what, n in sorted(self.codes.items()))
        return f"loads: {counts}; slowest {self.slowest:.2f} s, memory +{rise:.0f} MiB"


SHARES = (
    *("model", "store", "settings", "model", "scores", "model", "parquet"),
    *("settings", "model", "store", "scores.run", "zarr3", "settings", "zarr2"),
)


def meet_mutants(targets: dict[str, Hostile], folder: Path, count: int, seed: int) -> None:
    """Let every loader meet its share of hostile files, all in this process."""
    rng = np.random.default_rng(seed)
    _frame(2**28), _many_rows()
    for target in targets.values():  # so that what every load needs is in memory already
        for load in target.loads:
            load(target.folder)
    trial, made = Trial(), {name: target.mutants(rng) for name, target in targets.items()}
    settings = hostile_settings(folder, rng)
    for number in range(count):
        kind = SHARES[number % len(SHARES)]
        if kind == "settings":
            how, path = next(settings)
            loads: tuple[Callable[[Path], object], ...] = (load_and_show,)
        else:
            name, how = next(made[kind])
            path, loads, how = targets[kind].folder, targets[kind].loads, f"{name}, {how}"
        for load in loads:
            trial.meet(
                load, path, of=f"seed {seed}, number {number}, {kind}, {how}, {load.__name__}"
            )
    print(f"{count} hostile files (seed {seed}): {trial.told()}")


def test_hostile_files_are_refused_without_harm(
    targets: dict[str, Hostile], tmp_path: Path
) -> None:
    meet_mutants(targets, tmp_path, 500, SEED)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_ten_thousand_hostile_files_are_refused_without_harm(
    targets: dict[str, Hostile], tmp_path: Path
) -> None:
    meet_mutants(targets, tmp_path, 10_000, SEED + 1)


# Folders that are no folders of files


def link_a_file(folder: Path) -> None:
    chosen = max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.name)
    chosen.unlink()
    chosen.symlink_to("/etc/passwd")


def link_to_nothing(folder: Path) -> None:
    link_a_file(folder)
    chosen = next(p for p in folder.rglob("*") if p.is_symlink())
    chosen.unlink()
    chosen.symlink_to("nowhere")


def put_a_folder(folder: Path) -> None:
    for chosen in [p for p in folder.rglob("*") if p.is_file()]:
        chosen.unlink()
        chosen.mkdir()


def list_what_is_outside(folder: Path) -> None:
    for path in folder.glob("*MANIFEST.json"):
        found = json.loads(path.read_text())
        found["files"] |= {name: Entry.of(b"").__dict__ for name in ("../x", "/etc/passwd", "a//b")}
        path.write_text(json.dumps(found))


def link_the_list(folder: Path) -> None:
    for path in folder.glob("*.json"):
        path.rename(folder.parent / f"{folder.name}-{path.name}")
        path.symlink_to(folder.parent / f"{folder.name}-{path.name}")


@pytest.mark.parametrize(
    "change",
    [
        link_a_file,
        link_to_nothing,
        put_a_folder,
        list_what_is_outside,
        link_the_list,
    ],
)
def test_links_folders_and_ways_out_are_refused(
    targets: dict[str, Hostile], change: Callable[[Path], None]
) -> None:
    trial = Trial()
    for kind, target in targets.items():
        change(target.folder)
        for load in target.loads:
            trial.meet(load, target.folder, of=f"{kind}, {change.__name__}, {load.__name__}")
    assert not any(Path(target.folder.parent / "x").exists() for target in targets.values())


# The command


COMMAND_OF: dict[str, tuple[str, ...]] = {
    "model": ("inspect",),
    "store": ("digest",),
    "scores": ("digest",),
    "parquet": ("digest",),
    "zarr3": ("ingest",),
    "settings": ("config", "show", "-c"),
}


def is_refused(load: Callable[[Path], object], path: Path) -> bool:
    try:
        load(path)
    except MrotError:
        return True
    return False


def meet_the_command(targets: dict[str, Hostile], folder: Path, count: int, seed: int) -> None:
    """Give what loaders refuse to the command, as users run it."""
    rng = np.random.default_rng(seed)
    made = {name: targets[name].mutants(rng) for name in COMMAND_OF if name in targets}
    settings, codes = hostile_settings(folder, rng), Counter[int]()
    kinds = cycle(COMMAND_OF)
    while codes.total() < count:
        kind = next(kinds)
        how, path = next(settings) if kind == "settings" else (next(made[kind]), folder / kind)
        load = load_and_show if kind == "settings" else targets[kind].loads[0]
        if not is_refused(load_model_alone if kind == "model" else load, path):
            continue
        out = [str(folder / "out")] if kind == "zarr3" else []
        ended = run(mrot(*COMMAND_OF[kind], str(path), *out))
        told = [line for line in ended.stderr.splitlines() if "mrot-scale: error[" in line]
        of = f"seed {seed}, {kind}, {how}: {ended.stderr}"
        assert ended.returncode in CODES, of
        assert "Traceback" not in ended.stderr, of
        assert told == ended.stderr.splitlines()[-1:], of
        assert told[0].startswith(f"mrot-scale: error[{ended.returncode}]: "), of
        codes[ended.returncode] += 1
    print(f"{count} hostile files given to the command (seed {seed}): exit codes {dict(codes)}")


def load_model_alone(folder: Path) -> None:
    load_model(Location(folder))


@pytest.mark.slow
def test_the_command_refuses_hostile_files_in_one_line(
    targets: dict[str, Hostile], tmp_path: Path
) -> None:
    meet_the_command(targets, tmp_path, 10, SEED + 2)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_the_command_refuses_two_hundred_hostile_files_in_one_line(
    targets: dict[str, Hostile], tmp_path: Path
) -> None:
    meet_the_command(targets, tmp_path, 200, SEED + 3)
