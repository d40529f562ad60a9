"""Settings: what ships is valid, later sources win, and mistakes are named with their origin."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mrot_scale import MROT, MethodConfig, load_config
from mrot_scale.config import (
    ClusterConfig,
    Config,
    StoreConfig,
    ViewConfig,
    method_config,
    paper_settings,
)
from mrot_scale.config_layers import RESERVED_VARIABLES
from mrot_scale.errors import ConfigError, MissingInputError
from mrot_scale.storing.location import Location

CONFIGS = Path(__file__).parent.parent / "configs"
SLURM = "dask_jobqueue:SLURMCluster"


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings in the environment."""
    for name in list(os.environ):
        if name.startswith("MROT_") and name not in RESERVED_VARIABLES:
            monkeypatch.delenv(name)


def written(folder: Path, text: str, name: str = "settings.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def complaint(path: Path | None = None, **sources: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, **sources)
    assert caught.value.exit_code == 78
    return str(caught.value)


def cluster_complaint(**cluster: Any) -> str:
    return complaint(overrides={"cluster": cluster})


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda p: p.name)
def test_every_shipped_file_is_valid(path: Path) -> None:
    load_config(path)


def test_the_files_promised_are_there() -> None:
    names = {path.stem for path in CONFIGS.iterdir()}
    assert names == {"default", "paper", "embeddings", "laptop", "cluster", "nightly"}


def test_the_default_file_writes_out_the_defaults() -> None:
    assert load_config(CONFIGS / "default.yaml") == Config()


def test_the_paper_file_is_the_paper_preset() -> None:
    assert load_config(CONFIGS / "paper.yaml").method == method_config(**paper_settings())


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


def test_settings_that_python_gave_are_shown_short() -> None:
    with pytest.raises(ConfigError, match="got one int beyond all bounds"):
        method_config(alpha=1 << 20_000)


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
    ("written_as", "count"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("16MiB", 16 * 2**20),
        ("64MB", 64_000_000),
        ("64 mb", 64_000_000),
        ("1.5 GiB", 3 * 2**29),
        ("2kB", 2_000),
        ("7B", 7),
        ("1TiB", 2**40),
    ],
)
def test_sizes_are_written_as_people_write_them(written_as: Any, count: int) -> None:
    cluster = ClusterConfig(memory_limit=written_as)
    assert cluster.memory_limit == count
    assert ClusterConfig.model_validate_json(cluster.model_dump_json()) == cluster
    assert cluster.model_dump()["memory_limit"] == count


@pytest.mark.parametrize("size", ["0", "257MiB", "1TiB"])
def test_chunks_that_no_worker_could_hold_are_refused(size: str) -> None:
    with pytest.raises(ConfigError, match="chunk_bytes"):
        load_config(overrides={"store": {"chunk_bytes": size}}, environment={})


@pytest.mark.parametrize("wrong", ["16XB", "-1", 0, -3, "MiB", "", True, "4iB", "1e3", 1.5, "0MB"])
def test_sizes_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        StoreConfig(chunk_bytes=wrong)


def test_a_wrong_size_is_told_how_to_write_one() -> None:
    assert "such as 16MiB or 64MB, got '4 gigs'" in cluster_complaint(memory_limit="4 gigs")


@pytest.mark.parametrize(
    "address",
    [
        "tls://scheduler:8786",
        "tls://10.0.0.1:8786",
        "tcp://127.0.0.1:8786",
        "tcp://127.8.0.1:8786",
        "tcp://localhost:1",
        "tcp://[::1]:8786",
    ],
)
def test_addresses_that_nobody_can_listen_to_are_fine(address: str) -> None:
    config = load_config(overrides={"cluster": {"address": address}})
    assert (config.cluster.kind, config.cluster.address) == ("address", address)


@pytest.mark.parametrize(
    "address", ["tcp://scheduler:8786", "tcp://10.0.0.1:1", "tcp://127.evil.com:1", "tcp://[::]:1"]
)
def test_unencrypted_addresses_elsewhere_must_be_allowed(address: str) -> None:
    told = cluster_complaint(address=address)
    assert "--insecure" in told
    assert "tls://" in told
    load_config(overrides={"cluster": {"address": address, "insecure": True}})


@pytest.mark.parametrize(
    "address",
    [
        "scheduler:8786",
        "http://scheduler:8786",
        "tls://scheduler",
        "tls://",
        "",
        "tcp://127.0.0.1:1@evil:8786",
        "tcp://127.0.0.1:1/../evil:8786",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    assert "must look like tls://host:8786" in cluster_complaint(address=address, kind="address")


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"kind": "address"}, "needs an address"),
        ({"kind": "local", "address": "tls://there:1"}, "but kind is local"),
        ({"kind": SLURM, "address": "tls://there:1"}, f"but kind is {SLURM}"),
        ({"kind": "lokal"}, "kind must be inline, local, address or module:Class"),
        ({"kind": "os:system()"}, "kind must be"),
        ({"kind": "dask_jobqueue.SLURMCluster"}, "kind must be"),
        ({"kind": ":SLURMCluster"}, "kind must be"),
        ({"arguments": {"cores": 1}}, "arguments are for a class"),
        ({"workers": 0}, "greater than or equal to 1"),
        ({"timeout_s": 0}, "greater than 0"),
        ({"kind": "os:system"}, "--allow-class"),
        ({"kind": "dask_jobqueue_evil:Cluster"}, "--allow-class"),
        ({"kind": "evil.dask:Cluster"}, "--allow-class"),
    ],
)
def test_clusters_that_cannot_be_are_refused(cluster: dict[str, Any], message: str) -> None:
    assert message in cluster_complaint(**cluster)


@pytest.mark.parametrize("kind", [SLURM, "dask_cloudprovider.aws:FargateCluster"])
def test_classes_of_known_packages_are_fine(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"cluster: {{kind: '{kind}', arguments: {{cores: 4}}}}")
    config = load_config(path)
    assert config.cluster.is_class
    assert config.cluster.arguments == {"cores": 4}


def test_other_classes_are_allowed_on_demand(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster: {kind: 'ours.clusters:Ours'}")
    assert "settings.yaml: cluster: kind ours.clusters:Ours is outside" in complaint(path)
    config = load_config(path, overrides={"cluster": {"allow_class": True}})
    assert config.cluster.kind == "ours.clusters:Ours"


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


def test_complaints_about_a_cluster_do_not_repeat_its_arguments() -> None:
    told = cluster_complaint(kind="ours:Ours", arguments={"password": "hunter2"})
    assert "hunter2" not in told


def test_the_method_alone_is_what_a_model_keeps() -> None:
    config = load_config(overrides={"repeats": 3, "cluster": {"workers": 2}, "coverage": "all"})
    assert type(config.method) is MethodConfig
    assert config.method == MethodConfig(repeats=3)
    assert MROT(config=config)._config() == MethodConfig(repeats=3)


def test_settings_cannot_be_changed_after_checking() -> None:
    config = Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.cluster.workers = 2  # type: ignore[misc]
    config.cluster.arguments["cores"] = 4
    assert Config().cluster.arguments == {}


def test_reading_settings_loads_no_numerical_library() -> None:
    code = (
        "import sys; from mrot_scale.config_layers import load_config\n"
        "load_config(environment={})\n"
        "import mrot_scale.config_text\n"
        "print(sorted({'numpy', 'sklearn', 'dask', 'fsspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
