"""`certificates`."""

import shlex
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from mrot_scale.commands.options import JustShow, OutputForm
from mrot_scale.commands.printing import print_json

if TYPE_CHECKING:
    from mrot_scale.certificates import Certificates

_PORT = 8786
"""Where Dask's schedulers listen unless told otherwise."""

_DASHBOARD = "127.0.0.1"
"""Dask's dashboards ask nobody for a certificate: only this machine is to reach them."""


def certificates(
    folder: Annotated[Path, typer.Argument(help="New folder for the certificates.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Name or IP address of a machine, the scheduler's first; this one when omitted.",
            metavar="NAME_OR_IP",
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="Days until the certificates expire.")
    ] = 365,
    dry_run: JustShow = False,
    output: OutputForm = "text",
) -> None:
    """Make the certificates of an encrypted Dask cluster, and show how to use them."""
    from mrot_scale.certificates import make_certificates

    hosts = host or [socket.gethostname()]
    plan = {"folder": folder, "hosts": hosts, "days": days}
    if dry_run and output == "json":
        print_json(plan)
    elif dry_run:
        typer.echo(f"would make certificates for {', '.join(hosts)}, for {days} days, in {folder}")
    else:
        made = make_certificates(folder, hosts, days=days)
        if output == "json":
            print_json(plan | _facts(made))
        else:
            typer.echo(_instructions(made))


def _facts(made: "Certificates") -> dict[str, Any]:
    address = _address(made)
    return {
        "until": f"{made.until:%Y-%m-%d}",
        "ca_key": made.ca_key,
        "scheduler_command": _scheduler_command(made),
        "worker_command": _worker_command(made, address),
        "settings": {"cluster": {"address": address, **_files(made)}},
    }


def _instructions(made: "Certificates") -> str:
    address = _address(made)
    settings = {"address": address, **_files(made)}
    return f"""\
Certificates for scheduler, workers and driver in {made.folder}, valid until {made.until:%Y-%m-%d}:
  {made.ca_file.name:<13} whose certificates are trusted
  {made.cert.name:<13} the certificate that all of them show
  {made.key.name:<13} its key. Secret: whoever has it can run code on the workers
  {made.ca_key.name:<13} makes more certificates. Secret, and nothing below needs it: move it away

Copy the first three to {made.folder} on every machine. Where the scheduler runs:
  {_scheduler_command(made)}
Where workers run, one for each core:
  {_worker_command(made, address)}
In the settings of mrot-scale (-c FILE):
{_indented(yaml.safe_dump({"cluster": settings}, sort_keys=False))}"""


def _address(made: "Certificates") -> str:
    host = made.hosts[0]
    return f"tls://[{host}]:{_PORT}" if ":" in host else f"tls://{host}:{_PORT}"


def _files(made: "Certificates") -> dict[str, str]:
    return {
        "tls_ca_file": str(made.ca_file),
        "tls_cert": str(made.cert),
        "tls_key": str(made.key),
    }


def _scheduler_command(made: "Certificates") -> str:
    return shlex.join(
        [
            *("dask", "scheduler", "--protocol", "tls", "--port", str(_PORT)),
            *("--dashboard-address", f"{_DASHBOARD}:8787", *_options(made)),
        ]
    )


def _worker_command(made: "Certificates", address: str) -> str:
    return shlex.join(
        [
            *("dask", "worker", address, "--nworkers", "-1", "--nthreads", "1"),
            *("--dashboard-address", f"{_DASHBOARD}:0", *_options(made)),
        ]
    )


def _options(made: "Certificates") -> list[str]:
    options = {f"--{name.replace('_', '-')}": path for name, path in _files(made).items()}
    return [word for pair in options.items() for word in pair]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
