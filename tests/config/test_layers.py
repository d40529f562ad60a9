"""Settings come from a file, the environment and flags: later ones win, and mistakes are named."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mrot_scale.config.job import Config
from mrot_scale.config.layers import RESERVED_VARIABLES, load_config
from mrot_scale.config.method import MethodConfig, method_config
from mrot_scale.config.views import ViewConfig
from mrot_scale.errors import MissingInputError
from mrot_scale.storing.location import Location
from tests.config.given import CONFIGS, SLURM, complaint, written


def test_toml_is_read_too(tmp_path: Path) -> None:
    text = 'alpha = 0.1\n[[views]]\nscaling = "none"\n[cluster]\nworkers = 3\n'
    config = load_config(written(tmp_path, text, "settings.toml"))
    assert config.alpha == 0.1
    assert [view.scaling for view in config.views] == ["none"]
    assert config.cluster.workers == 3


@pytest.mark.parametrize("text", ["# nothing\n", "cluster:\n  # kind: local\nstore:\n"])
def test_what_a_file_leaves_out_keeps_its_default(text: str, tmp_path: Path) -> None:
    assert load_config(written(tmp_path, text)) == load_config() == Config()


def test_files_in_object_stores_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Location, "read", lambda _: b"seed = 7")
    assert load_config("s3://bucket/settings.toml").seed == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alhpa: 0.1", "alhpa is not a setting. Did you mean alpha?"),
        ("views: [{scalling: none}]", "Did you mean scaling?"),
        ("cluster: {worker: 2}", "cluster.worker is not a setting. Did you mean workers?"),
        ("scoring: {methods: model}", "scoring.methods is not a setting. Did you mean method?"),
        ("workers: 2", "workers is not a setting. Did you mean cluster.workers?"),
        ("alpha: 2", "alpha: Input should be less than 0.5"),
        ("scoring: {top_columns: 11}", "scoring.top_columns: Input should be less than or equal"),
        ("cluster: 3", "cluster: Input should be a valid dictionary"),
        ("[1, 2]", "must hold settings"),
        ("1: 2", "must hold settings"),
        ("alpha: [", "cannot be read"),
        ("run: {folder: 2024-99-99}", "cannot be read"),
        ("k: 3\nradius: 1.0", "both"),
        ("alpha: !!python/object/apply:os.system ['true']", "cannot be read"),
    ],
)
def test_mistakes_are_named_with_the_file(text: str, message: str, tmp_path: Path) -> None:
    told = complaint(written(tmp_path, text))
    assert message in told
    assert "settings.yaml" in told


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in pairwise("abcdefghijk")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{BOMB}label_rows: *k", "aliases"),
        ("views: &a [*a]", "aliases"),
        ("label_rows: !!int ''", "cannot be read"),
        ("coverage: !!bool perhaps", "cannot be read"),
        ("coverage: !!timestamp soon", "cannot be read"),
        (f"views: {'[' * 10_000}", "nested too deeply"),
        ("- " * 5_000, "nested too deeply"),
        (f"label_rows: 0x{'f' * 5_000}", "a number beyond all bounds"),
        (f"cluster: {{arguments: {{a: [0x{'f' * 99}]}}}}", "a number beyond all bounds"),
        (f"label_rows: {'x' * 10_000}", "label_rows: Input should be a valid integer"),
        (f"alpha: {list(range(5_000))}", "alpha: Input should be a valid number"),
        (f"# {'x' * 70_000}", "larger than any settings file"),
    ],
    ids=range(12),
)
def test_hostile_files_are_refused_at_once_in_a_short_line(
    text: str, message: str, tmp_path: Path
) -> None:
    told = complaint(written(tmp_path, text))
    assert message in told
    assert len(told) < 1_000
    assert "\n" not in told


@pytest.mark.parametrize(
    "text",
    [f"views = {'[' * 10_000}", f"a{'.a' * 20_000} = 1", f"label_rows = 0x{'f' * 5_000}"],
    ids=["deep", "dotted", "digits"],
)
def test_hostile_toml_is_refused_at_once(text: str, tmp_path: Path) -> None:
    assert "cannot be read" in complaint(written(tmp_path, text, "settings.toml"))


@pytest.mark.parametrize("text", ["[" * 10_000, "[&a 1, *a]", "[!!int '']"], ids=range(3))
def test_hostile_variables_are_refused(text: str) -> None:
    assert complaint(environment={"MROT_VIEWS": text}).startswith("MROT_VIEWS cannot be read")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"absent\.yaml"):
        load_config(tmp_path / "absent.yaml")


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    text = "seed: 1\nfolds: 3\nrepeats: 2\ncluster: {workers: 1, timeout_s: 5}\n"
    config = load_config(
        written(tmp_path, text),
        environment={"MROT_SEED": "2", "MROT_FOLDS": "4", "MROT_CLUSTER__WORKERS": "2"},
        overrides={"seed": 3, "cluster": {"workers": 3, "memory_limit": "1GiB"}},
    )
    assert (config.seed, config.folds, config.repeats) == (3, 4, 2)
    assert (config.cluster.workers, config.cluster.timeout_s) == (3, 5)
    assert config.cluster.memory_limit == 2**30


def test_flags_that_are_none_were_not_given() -> None:
    overrides = {"seed": None, "store": None, "cluster": {"workers": None}}
    config = load_config(environment={"MROT_CLUSTER__WORKERS": "2"}, overrides=overrides)
    assert config == Config(cluster={"workers": 2})


def test_a_zone_replaces_the_zone_of_an_earlier_source(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "k: 3"), overrides={"radius": 2.0})
    assert (config.k, config.radius) == (None, 2.0)
    assert load_config(written(tmp_path, "k: 3"), environment={"MROT_ALPHA": ".1"}).k is None


@pytest.mark.parametrize(
    ("name", "text", "setting", "value"),
    [
        ("MROT_EPS", "1e-3", "eps", 0.001),
        ("MROT_BATCH_ROWS", "null", "batch_rows", None),
        ("MROT_CEILING", "12.5", "ceiling", 12.5),
        ("MROT_CEILING", "zone", "ceiling", "zone"),
        ("MROT_VIEWS", '[{"scaling": "none"}]', "views", (ViewConfig(scaling="none"),)),
        ("MROT_VIEWS", "[{scaling: robust}]", "views", (ViewConfig(),)),
        ("MROT_COVERAGE", "all", "coverage", "all"),
        ("MROT_STORE__CHUNK_BYTES", "64MB", "store.chunk_bytes", 64_000_000),
        ("MROT_SCORING__FLAG", "no", "scoring.flag", False),
        ("MROT_CLUSTER__KIND", "inline", "cluster.kind", "inline"),
        ("MROT_CLUSTER__ADDRESS", "tls://there:8786", "cluster.kind", "address"),
        ("MROT_RUN__FOLDER", "2024", "run.folder", "2024"),
        ("MROT_RUN__FOLDER", "[a]", "run.folder", "[a]"),
        ("MROT_SEED", " ", "seed", 0),
    ],
)
def test_the_environment_names_any_setting(name: str, text: str, setting: str, value: Any) -> None:
    found: Any = load_config(environment={name: text})
    for part in setting.split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "MROT_ALHPA",
            "1",
            "MROT_ALHPA in the environment is not a setting. Did you mean MROT_ALP",
        ),
        ("MROT_CLUSTER__WORKER", "1", "Did you mean MROT_CLUSTER__WORKERS?"),
        ("MROT_seed", "1", "Did you mean MROT_SEED?"),
        ("MROT_CLUSTER", "{}", "MROT_CLUSTER in the environment is not a setting"),
        ("MROT_ALPHA", "2", "MROT_ALPHA: alpha: Input should be less than 0.5, got 2"),
        ("MROT_STORE__VOCABULARY", "many", "MROT_STORE__VOCABULARY: store.vocabulary: Input"),
        ("MROT_VIEWS", "[{", "MROT_VIEWS cannot be read"),
    ],
)
def test_mistakes_are_named_with_the_variable(name: str, text: str, message: str) -> None:
    assert message in complaint(environment={name: text})


def test_other_variables_are_left_alone() -> None:
    others = dict.fromkeys((*RESERVED_VARIABLES, "PATH", "MROTX", "ALPHA", "mrot_alpha"), "x")
    assert load_config(environment=others) == Config()


def test_the_process_environment_counts_for_load_config_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = MethodConfig(), Config()
    monkeypatch.setenv("MROT_SEED", "5")
    monkeypatch.setenv("MROT_CLUSTER__WORKERS", "2")
    assert load_config() == Config(seed=5, cluster={"workers": 2})
    assert (MethodConfig(), Config()) == before
    assert method_config() == before[0]


def test_mistakes_are_named_with_the_flag(tmp_path: Path) -> None:
    path = written(tmp_path, "store: {vocabulary: 7}")
    overrides = {"store": {"vocabulary": 0}}
    told = complaint(path, overrides=overrides)
    assert told.startswith("--vocabulary: store.vocabulary: Input should be greater")
    told = complaint(overrides={"cluster": {"time_out_s": 3}})
    assert "cluster.time_out_s is not a setting. Did you mean timeout_s?" in told


def test_a_contradiction_names_both_its_sources(tmp_path: Path) -> None:
    path = written(tmp_path, "k: 100\nseed: 1")
    told = complaint(path, environment={"MROT_BATCH_ROWS": "64", "MROT_FOLDS": "3"})
    assert told.startswith(f"{path}, MROT_BATCH_ROWS: k must be at most 62")


def test_a_block_that_is_none_is_told_even_where_flags_set_it(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster: 3")
    assert "settings.yaml" in complaint(path, overrides={"cluster": {"workers": 2}})


@pytest.mark.parametrize(
    ("name", "text"),
    [("KIND", SLURM), ("KIND", ":"), ("ARGUMENTS", "{}"), ("ALLOW_CLASS", "true")],
)
def test_the_environment_brings_no_code(name: str, text: str) -> None:
    told = complaint(environment={f"MROT_CLUSTER__{name}": text})
    assert told.startswith(f"MROT_CLUSTER__{name}: ")
    assert "configuration file" in told


def test_another_kind_of_cluster_leaves_the_old_one_behind(tmp_path: Path) -> None:
    path = written(
        tmp_path, f"cluster: {{kind: '{SLURM}', arguments: {{cores: 4}}, workers: 8, timeout_s: 9}}"
    )
    config = load_config(path, environment={"MROT_CLUSTER__ADDRESS": "tls://there:8786"})
    assert config.cluster.kind == "address"
    assert config.cluster.arguments == {}
    assert (config.cluster.workers, config.cluster.timeout_s) == (8, 9)
    local = load_config(CONFIGS / "cluster.yaml", overrides={"cluster": {"kind": "local"}})
    assert local.cluster.address is None
    same = load_config(path, overrides={"cluster": {"kind": SLURM}})
    assert same.cluster.arguments == {"cores": 4}


def test_reading_settings_loads_no_numerical_library() -> None:
    code = (
        "import sys; from mrot_scale.config.layers import load_config\n"
        "load_config(environment={})\n"
        "import mrot_scale.config.text\n"
        "print(sorted({'numpy', 'sklearn', 'dask', 'fsspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
