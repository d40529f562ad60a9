"""The schedulers' files hold what the schedulers' own parsers, the shell and the program accept."""

import ast
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kubernetes_validate
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from mrot_scale import errors

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "pipelines" / "schedulers"
PROGRAM = Path(sys.executable).parent / "mrot-scale"
UNITS = ("mrot-nightly.service", "mrot-nightly.timer", "mrot-alert@.service")
DAY = "2026-11-14"
N_ROWS = 2_000
TRY_AGAIN = {75, 77}
FAIL = {
    found.exit_code for found in vars(errors).values() if hasattr(found, "exit_code")
} - TRY_AGAIN


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, **{"timeout": 200, **options}
    )


def needed(tool: str) -> str:
    """Return where a tool is; CI installs all of them."""
    found = shutil.which(tool, path=f"{os.environ['PATH']}:/usr/bin:/usr/sbin")
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


def text_of(name: str) -> str:
    return (FOLDER / name).read_text()


# What each file says


def test_every_file_is_looked_at_here() -> None:
    there = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    others = {"crontab", "kubernetes-cronjob.yaml", "slurm.sh", "Containerfile", "README.md"}
    assert there == {*UNITS, *others, "airflow_dag.py", "dagster_assets.py"}


def unit_settings(name: str) -> dict[str, str]:
    """Return the settings of a unit as systemd joins its lines."""
    text = re.sub(r"^[#;].*\n", "", text_of(name), flags=re.MULTILINE)
    pairs = re.findall(r"^(\w+)=(.*)$", re.sub(r"\\\n\s*", "", text), re.MULTILINE)
    return dict(pairs)


def cron_job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text_of("kubernetes-cronjob.yaml"))
    return found


def pod() -> dict[str, Any]:
    found: dict[str, Any] = cron_job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return found


def service_script() -> str:
    shell, option, script = shlex.split(unit_settings("mrot-nightly.service")["ExecStart"])
    assert (shell, option) == ("/bin/sh", "-c")
    return script.replace("$$", "$").replace("%%", "%")


def cron_script() -> str:
    lines = [line for line in text_of("crontab").splitlines() if re.match(r"[\d*]", line)]
    assert len(lines) == 1
    return lines[0].split(None, 5)[5].replace(r"\%", "%")


def pod_script() -> str:
    (container,) = pod()["containers"]
    assert container["command"] == ["/bin/sh", "-c"]
    (script,) = container["args"]
    return str(script)


def python_texts(name: str) -> Iterator[str]:
    """Yield the strings of a script, and its lists of strings as the commands they are."""
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.List):
            yield " ".join(str(getattr(item, "value", "VALUE")) for item in node.elts)


def commands(name: str) -> list[tuple[str, set[str]]]:
    """Return subcommand and options of each mrot-scale command line in a file."""
    if name.endswith(".py"):
        text = "\n".join(python_texts(name))
    elif name.endswith(".yaml"):
        text = pod_script()
    else:
        text = re.sub(r"\\\n\s*", "", text_of(name))
    text = re.sub(r"\$+\([^()]*\)", "VALUE", text)  # $(date -u ...) has options of its own
    lines = re.findall(r"\bmrot-scale (nightly|backfill) ([^\n|&>`]*)", text)
    return [
        (command, set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", rest))) for command, rest in lines
    ]


@pytest.mark.parametrize(
    "name",
    [
        "mrot-nightly.service",
        "crontab",
        "airflow_dag.py",
        "dagster_assets.py",
        "kubernetes-cronjob.yaml",
        "slurm.sh",
        "README.md",
    ],
)
def test_commands_use_options_that_exist(name: str) -> None:
    found = commands(name)
    assert any({"--date", "-c"} <= options for _, options in found)
    for command, options in found:
        shown = run(PROGRAM, command, "--help", env={**os.environ, "COLUMNS": "200"})
        assert shown.returncode == 0, shown.stderr
        assert options <= set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.stdout))


# systemd


def test_units_are_what_systemd_accepts() -> None:
    analyze = needed("systemd-analyze")
    done = run(analyze, "verify", "--man=no", *(FOLDER / unit for unit in UNITS[:2]))
    assert done.returncode == 0, done.stderr
    assert "mrot-" not in done.stderr
    alert = unit_settings("mrot-nightly.service")["OnFailure"].replace("%n", "mrot-nightly.service")
    done = run(analyze, "verify", "--man=no", FOLDER / alert)
    assert done.returncode == 0, done.stderr
    assert "mrot-" not in done.stderr


def test_the_timer_fires_once_a_day() -> None:
    calendar = unit_settings("mrot-nightly.timer")["OnCalendar"]
    done = run(needed("systemd-analyze"), "calendar", "--iterations=3", calendar)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"(?:elapse|Iter\. #\d|Iteration #\d):.* 01:30:00 UTC", done.stdout)) == 3


def test_the_service_is_well_shut_in() -> None:
    done = run(
        needed("systemd-analyze"),
        "security",
        "--offline=true",
        "--no-pager",
        "--threshold=25",
        FOLDER / "mrot-nightly.service",
    )
    assert done.returncode == 0, done.stdout[-500:]


def test_the_service_tries_again_where_that_can_help() -> None:
    settings = unit_settings("mrot-nightly.service")
    never = {int(code) for code in settings["RestartPreventExitStatus"].split()}
    assert never >= FAIL
    assert not never & TRY_AGAIN
    assert settings["Restart"] == "on-failure"


# cron


def test_crontab_is_what_cron_accepts(tmp_path: Path) -> None:
    crontab = needed("crontab")
    if "dry run" not in run(crontab, "-h").stderr:
        pytest.skip("this crontab cannot just check a file, as Debian's can")
    done = run(crontab, "-n", FOLDER / "crontab")
    assert done.returncode == 0, done.stderr
    (tmp_path / "wrong").write_text(text_of("crontab").replace("30 1 * * *", "30 25 * * *"))
    assert run(crontab, "-n", tmp_path / "wrong").returncode != 0


# Kubernetes


@pytest.mark.parametrize("version", ["1.31", kubernetes_validate.latest_version()])
def test_the_manifest_is_what_kubernetes_accepts(version: str) -> None:
    kubernetes_validate.validate(cron_job(), version, strict=True)
    wrong = cron_job()
    wrong["spec"]["jobTemplate"]["spec"]["backofLimit"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_pods_are_tried_again_where_that_can_help() -> None:
    job = cron_job()["spec"]["jobTemplate"]["spec"]
    (rule,) = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    codes = rule["onExitCodes"]
    assert (rule["action"], codes["operator"]) == ("FailJob", "In")
    assert set(codes["values"]) >= FAIL
    assert not set(codes["values"]) & TRY_AGAIN
    # What the server asks for and no schema says.
    assert codes["values"] == sorted(set(codes["values"]))
    assert codes["containerName"] in {container["name"] for container in pod()["containers"]}
    assert pod()["restartPolicy"] == "Never"


def test_a_job_is_over_before_yesterday_is_another_day() -> None:
    spec = cron_job()["spec"]
    minute, hour, *days = spec["schedule"].split()
    assert days == ["*"] * 3
    begins = int(hour) * 3600 + int(minute) * 60
    lasts = spec["startingDeadlineSeconds"] + spec["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    assert begins + lasts < 24 * 3600


# The image


def instructions() -> list[dict[str, Any]]:
    with (FOLDER / "Containerfile").open("rb") as file:
        found: list[dict[str, Any]] = DockerfileParser(fileobj=file).structure
    return [one for one in found if one["instruction"] != "COMMENT"]


def test_the_containerfile_builds_from_what_is_here() -> None:
    found = instructions()
    known = {"FROM", "ARG", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {one["instruction"] for one in found} == known
    copied = [
        part for one in found if one["instruction"] == "COPY" for part in one["value"].split()
    ]
    assert all((ROOT / part).exists() for part in copied), copied
    (entry,) = [one["value"] for one in found if one["instruction"] == "ENTRYPOINT"]
    assert json.loads(entry) == [PROGRAM.name]


def test_image_and_pod_run_as_the_same_user() -> None:
    (user,) = [one["value"] for one in instructions() if one["instruction"] == "USER"]
    context = pod()["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


# The scripts


def test_the_slurm_script_is_sound() -> None:
    done = run("bash", "-n", FOLDER / "slurm.sh")
    assert done.returncode == 0, done.stderr
    done = run(needed("shellcheck"), FOLDER / "slurm.sh")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", [service_script, cron_script, pod_script])
def test_shell_commands_are_sound(script: Any) -> None:
    done = run(needed("shellcheck"), "--shell=sh", "-", input=script())
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_assets.py"])
def test_orchestrators_try_again_where_that_can_help(name: str) -> None:
    (codes,) = re.findall(r"^TRY_AGAIN = ({[\d, ]+})", text_of(name), re.MULTILINE)
    assert ast.literal_eval(codes) >= TRY_AGAIN
    assert not ast.literal_eval(codes) & FAIL


def test_the_readme_names_every_file() -> None:
    there = {path.name for path in FOLDER.iterdir()} - {"README.md", "__pycache__"}
    assert all(f"`{name}`" in text_of("README.md") for name in there)


# On a small lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of days: one in the past, yesterday, and today for tests that run at midnight."""
    folder = tmp_path_factory.mktemp("lake")
    now = datetime.now(UTC)
    days = [DAY, *(str((now - timedelta(days=ago)).date()) for ago in (1, 0))]
    for seed, day in enumerate(days):
        rng = np.random.default_rng(seed)
        table = pa.table({"x": rng.normal(size=N_ROWS), "y": rng.normal(size=N_ROWS)})
        (folder / f"date={day}").mkdir(exist_ok=True)
        pq.write_table(table, folder / f"date={day}" / "part-0.parquet")
    return folder


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "nightly.yaml"
    path.write_text("label_rows: 1000\ncluster: {kind: inline}\n")
    return path


def job_environment(lake: Path, scores: Path, config: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
        "LAKE": str(lake),
        "SCORES": str(scores),
        "NIGHTLY_CONFIG": str(config),
        **more,
    }


def check_published(scores: Path, day: str) -> None:
    found = ds.dataset(scores / "scores" / f"date={day}").to_table()
    assert found.num_rows == N_ROWS
    values = found["score"].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()


@pytest.fixture(scope="module")
def scored(lake: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the Slurm script, under a plain shell, has put the scores of yesterday."""
    scores = tmp_path_factory.mktemp("scores") / "readings"
    done = run("bash", FOLDER / "slurm.sh", env=job_environment(lake, scores, config))
    assert done.returncode == 0, done.stderr
    return scores


def test_the_slurm_script_publishes(scored: Path) -> None:
    (day,) = [path.name for path in (scored / "scores").glob("date=*")]
    check_published(scored, day.removeprefix("date="))


@pytest.mark.parametrize("script", [service_script, pod_script])
def test_shell_commands_find_it_done(script: Any, scored: Path, lake: Path, config: Path) -> None:
    done = run("/bin/sh", "-c", script(), env=job_environment(lake, scored, config))
    assert done.returncode == 0, done.stderr
    assert "already done" in done.stdout


def test_cron_sends_mail_only_if_something_is_wrong(
    scored: Path, lake: Path, config: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    well, wrong = (
        run("/bin/sh", "-c", cron_script(), env=job_environment(lake, scored, c, LOG=str(log)))
        for c in (config, tmp_path / "nowhere.yaml")
    )
    assert (well.stdout, well.stderr) == ("", "")
    assert "already done" in log.read_text()
    assert "error[66]" in wrong.stdout


@pytest.mark.slow
def test_the_slurm_script_passes_on_that_time_is_over(
    lake: Path, config: Path, tmp_path: Path
) -> None:
    command = ["bash", str(FOLDER / "slurm.sh"), DAY]
    environment = job_environment(lake, tmp_path / "out", config)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr is not None
        job.stderr.readline()  # it is at work
        job.send_signal(signal.SIGTERM)
        assert "The same command again goes on." in job.stderr.read()
    assert job.returncode == 143
    assert not (tmp_path / "out" / "scores" / f"date={DAY}").exists()
    assert run(*command, env=environment).returncode == 0
    check_published(tmp_path / "out", DAY)


# In the orchestrators themselves


def new_venv(folder: Path, *packages: str) -> Path:
    """Return the programs of a new environment: orchestrators want other versions than we do."""
    run(sys.executable, "-m", "venv", folder).check_returncode()
    done = run(folder / "bin" / "pip", "install", "--quiet", *packages, timeout=1_000)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Airflow's programs, and where they find the DAG."""
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "dags").mkdir()
    shutil.copy(FOLDER / "airflow_dag.py", folder / "dags")
    settings = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    programs = new_venv(folder / "venv", "apache-airflow>=3")
    done = run(programs / "airflow", "db", "migrate", env={**os.environ, **settings})
    assert done.returncode == 0, done.stderr
    return programs, settings


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_airflow_publishes_then_skips_and_gives_up_where_it_should(
    airflow: tuple[Path, dict[str, str]], lake: Path, config: Path, tmp_path: Path
) -> None:
    programs, settings = airflow

    def night(config: Path) -> subprocess.CompletedProcess[str]:
        environment = job_environment(lake, tmp_path / "out", config, **settings)
        return run(programs / "airflow", "dags", "test", "mrot_nightly", DAY, env=environment)

    done = night(config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "new_state=success" in done.stdout
    check_published(tmp_path / "out", DAY)
    assert "new_state=skipped" in night(config).stdout
    wrong = night(tmp_path / "nowhere.yaml")  # would wait for ten minutes if it were to try again
    assert wrong.returncode != 0
    assert "mrot-scale ended with 66" in wrong.stdout
    assert "new_state=failed" in wrong.stdout


OPERATOR = """
import sys
from airflow_dag import NightlyOperator
for code in map(int, sys.argv[1:]):
    task = NightlyOperator(task_id=f"ends_with_{code}", bash_command=f"exit {code}")
    try:
        task.execute({})
        print(code, "done")
    except Exception as error:
        print(code, type(error).__name__)
"""


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_airflow_tells_exit_codes_apart(airflow: tuple[Path, dict[str, str]]) -> None:
    programs, settings = airflow
    environment = {**os.environ, **settings, "PYTHONPATH": settings["AIRFLOW__CORE__DAGS_FOLDER"]}
    codes = [0, 99, *sorted(TRY_AGAIN), *sorted(FAIL)]
    done = run(programs / "python", "-c", OPERATOR, *map(str, codes), env=environment)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(\d+) (\w+)$", done.stdout, re.MULTILINE))
    expected = {0: "done", 99: "AirflowSkipException"}
    expected |= dict.fromkeys(TRY_AGAIN, "AirflowException")
    expected |= dict.fromkeys(FAIL, "AirflowFailException")
    assert {int(code): name for code, name in found.items()} == expected


MATERIALIZE = """
import json, sys
from dagster import materialize
from dagster_assets import defs, nightly_scores
assert defs.get_repository_def().get_schedule_def("mrot_nightly_schedule")
done = materialize([nightly_scores], partition_key=sys.argv[1], raise_on_error=False)
events = done.get_asset_materialization_events()
found = [{k: v.value for k, v in e.materialization.metadata.items()} for e in events]
kinds = [e.event_type_value for e in done.all_events]
print(json.dumps({"success": done.success, "found": found, "kinds": kinds}))
"""


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_dagster_publishes_and_gives_up_where_it_should(
    lake: Path, config: Path, tmp_path: Path
) -> None:
    python = new_venv(tmp_path / "venv", "dagster") / "python"

    def night(config: Path) -> dict[str, Any]:
        more = {"PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = job_environment(lake, tmp_path / "out", config, **more)
        done = run(python, "-c", MATERIALIZE, DAY, env=environment)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    published = night(config)
    assert published["success"]
    check_published(tmp_path / "out", DAY)
    (metadata,) = published["found"]
    assert (metadata["status"], metadata["n_rows"]) == ("done", N_ROWS)
    assert 0 <= metadata["flagged_share"] < 0.2
    assert Path(metadata["report"]).exists()
    assert night(config)["found"][0]["status"] == "skipped"
    wrong = night(tmp_path / "nowhere.yaml")
    assert not wrong["success"]
    assert "STEP_UP_FOR_RETRY" not in wrong["kinds"]


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_the_containerfile_installs_a_program_that_runs(tmp_path: Path) -> None:
    """What its pip commands do, in a new environment in place of an image."""
    programs = new_venv(tmp_path / "venv", "pip")
    (tmp_path / "source").mkdir()
    for one in instructions():
        if one["instruction"] == "COPY":
            *sources, _ = one["value"].split()
            run("cp", "-r", *sources, tmp_path / "source", cwd=ROOT).check_returncode()
    scripts = [one["value"] for one in instructions() if one["instruction"] == "RUN"]
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "EXTRAS": "s3",
    }
    for script in (re.sub(r"--mount=\S+", "", text) for text in scripts):
        if "apt-get" not in script:
            script = script.replace("/wheels", str(tmp_path / "wheels"))
            where = tmp_path / "source"
            done = run("/bin/sh", "-c", script, env=environment, cwd=where, timeout=1_000)
            assert done.returncode == 0, done.stderr
    shown = run(programs / "mrot-scale", "--version", env=environment)
    assert shown.stdout.startswith("mrot-scale ")
    assert run(programs / "python", "-c", "import s3fs", env=environment).returncode == 0
