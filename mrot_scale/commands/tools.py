"""`inspect`, `digest`, `verify`, `doctor` and `config`."""

from pathlib import Path
from typing import Annotated

import typer

from mrot_scale.commands.options import ConfigFile, JustShow, OutputForm, Settings, set_overrides
from mrot_scale.commands.printing import print_json
from mrot_scale.errors import ConfigError, OutputError

config_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Show, describe or begin a settings file."
)


def inspect(
    path: Annotated[str, typer.Argument(help="Store, model, scores or run folder.")],
    output: OutputForm = "text",
) -> None:
    """Show what a store, model, output or run folder is."""
    from mrot_scale.describe import describe
    from mrot_scale.description_text import description_text

    found = describe(path)
    if output == "json":
        print_json(found.to_json())
    else:
        typer.echo(description_text(found))


def digest(
    path: Annotated[str, typer.Argument(help="Store, model or scores.")],
    output: OutputForm = "text",
) -> None:
    """Print one sha256 over decoded content, to compare two runs by."""
    from mrot_scale.digests import digest as digest_of

    found = digest_of(path)
    if output == "json":
        print_json({"path": path, "sha256": found})
    else:
        typer.echo(found)


def verify(
    path: Annotated[str, typer.Argument(help="Store, model, scores or run folder.")],
    output: OutputForm = "text",
) -> None:
    """Read everything again and name each file that is not what was written."""
    from mrot_scale.verifying.everything import verify as verified

    found = verified(path)
    if output == "json":
        print_json(found.to_json())
    else:
        typer.echo(found.text())
    found.check()


def doctor(
    storage: Annotated[
        list[str] | None, typer.Option(help="Folder to try reading and writing in.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Scheduler to try; a small local one when omitted.")
    ] = None,
    output: OutputForm = "text",
) -> None:
    """Check versions, threads, libgomp, storage, file locking and the scheduler."""
    from mrot_scale.doctor import checks, doctor_text

    found = checks(storage or (), scheduler)
    if output == "json":
        print_json([check.to_json() for check in found])
    else:
        typer.echo(doctor_text(found))
    failed = [check.name for check in found if check.status == "fail"]
    if failed:
        raise ConfigError(f"Not fit to run: {', '.join(failed)}.")


@config_app.command("show", epilog="Example: mrot-scale config show -c configs/laptop.yaml")
def show(config: ConfigFile = None, set: Settings = None, output: OutputForm = "text") -> None:
    """Print the settings a command would use: file, environment (MROT_*), then flags."""
    from mrot_scale.config.layers import load_config
    from mrot_scale.config.text import show_config

    found = load_config(config, overrides=set_overrides(set))
    if output == "json":
        print_json(found.model_dump(mode="json"))
    else:
        typer.echo(show_config(found), nl=False)


@config_app.command("schema", epilog="Example: mrot-scale config schema > settings.schema.json")
def schema(output: OutputForm = "text") -> None:
    """Print the JSON schema of settings files, which is JSON in any form."""
    from mrot_scale.config.text import schema_text

    typer.echo(schema_text())


@config_app.command("init", epilog="Example: mrot-scale config init settings.yaml")
def init(
    path: Annotated[Path | None, typer.Argument(help="New file; printed when omitted.")] = None,
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Write a settings file with every default and what it means."""
    from mrot_scale.config.job import Config
    from mrot_scale.config.text import initial_text

    if path is not None and not dry_run:
        _write_new(path, initial_text())
    if output == "json":
        print_json({"path": path, "settings": Config().model_dump(mode="json")})
    elif path is None or dry_run:
        typer.echo(initial_text(), nl=False)


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError(f"{path} exists already. Choose another path or remove it.") from None
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror}.") from None
