"""Options that several commands share, and what they say to the configuration."""

from typing import Annotated, Any, Literal

import typer
import yaml

from mrot_scale.errors import ConfigError

Output = Literal["text", "json"]

ConfigFile = Annotated[
    str | None, typer.Option("-c", "--config", help="Settings as YAML or TOML.", metavar="FILE")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, as label_rows=5000 or store.chunk_bytes=64MiB."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Local processes, or workers to wait for.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="inline, local, a scheduler's tls:// or tcp:// address, or module:Class."),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow tcp:// schedulers beyond this machine.")
]
AllowClass = Annotated[
    bool, typer.Option("--allow-class", help="Allow cluster classes of any package.")
]
RunFolder = Annotated[
    str | None, typer.Option("--run-folder", help="Where the run keeps journal and stages.")
]
NewRun = Annotated[
    bool, typer.Option("--new-run", help="Start over where an earlier run is unfinished.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan: tasks, bytes, memory, time. Run nothing.")
]
JustShow = Annotated[bool, typer.Option("--dry-run", help="Show what would be done. Do nothing.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress.")]
OutputForm = Annotated[Output, typer.Option("--output", help="How the result is printed.")]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column that names each row once.", metavar="COLUMN")
]
Keep = Annotated[
    str | None,
    typer.Option(help="Columns to carry along, separated by commas.", metavar="COLUMNS"),
]


def column_list(text: str | None) -> list[str] | None:
    """Return the column names of a comma-separated list."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"No column is named in {text!r}.")
    return names


def cluster_overrides(
    cluster: str | None, workers: int | None, insecure: bool, allow_class: bool
) -> dict[str, Any]:
    """Return what the cluster flags say; a flag not given says nothing."""
    found: dict[str, Any] = {"workers": workers}
    if cluster is not None:
        found |= {"address": cluster} if "://" in cluster else {"kind": cluster}
    if insecure:
        found["insecure"] = True
    if allow_class:
        found["allow_class"] = True
    return found


def set_overrides(pairs: list[str] | None) -> dict[str, Any]:
    """Return `--set name=value` pairs as nested settings."""
    found: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set takes name=value, got {pair!r}.")
        *blocks, last = name.split(".")
        place = found
        for block in blocks:
            place = place.setdefault(block, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--set {block} is given both a value and settings below it.")
        try:
            place[last] = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):  # impossible dates are ValueErrors
            raise ConfigError(f"--set {name}: {text!r} is not a value.") from None
    return found


def merged(*layers: dict[str, Any]) -> dict[str, Any]:
    """Return nested settings put together, later ones winning."""
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, dict) and isinstance(found.get(name), dict):
                found[name] = merged(found[name], value)
            elif value is not None:
                found[name] = value
    return found
