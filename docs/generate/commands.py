"""Every command with its arguments and options, from the command line itself."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer

from docs.generate.tables import table
from mrot_scale.cli import app

_PROGRAM = "mrot-scale"
_BOUNDS = (("min", "at least"), ("max", "at most"))
_KINDS: dict[Any, str] = {
    int: "whole number",
    float: "number",
    **dict.fromkeys(("integer", "integer range"), "whole number"),
    **dict.fromkeys(("float", "float range"), "number"),
}


def command_line() -> str:
    """Return a section for each command."""
    root: Any = typer.main.get_command(app)
    before = [p for p in root.params if not p.hidden]
    parts = ["## Before any command\n", _options(before)]
    for words, command in commands(root):
        parts += [f"\n## `{_PROGRAM} {' '.join(words)}`\n", *_section(words, command)]
    return "\n".join(parts) + "\n"


def commands(
    group: Any = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give every command with the words that call it, in the order of `--help`."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if getattr(command, "hidden", False):
            continue
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def _section(words: tuple[str, ...], command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([_PROGRAM, *words, *(_argument_name(p) for p in arguments)])
    yield f"{_help_text(command)}\n"
    yield f"```text\n{usage}{' [OPTIONS]' if options else ''}\n```\n"
    if arguments:
        yield table(
            ("argument", "what it is"),
            [(f"`{_argument_name(p)}`", p.help or "") for p in arguments],
        )
        yield ""
    if options:
        yield _options(options)
    if command.epilog:
        yield f"\n{command.epilog.replace('Example: ', 'Example: `', 1)}`\n"


def _help_text(command: Any) -> str:
    return " ".join((command.help or "").split())


def _argument_name(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    return name if param.required else f"[{name}]"


def _options(params: list[Any]) -> str:
    return table(
        ("option", "value", "default", "what it does"),
        [
            (
                ", ".join(f"`{name}`" for name in param.opts),
                _value_text(param),
                _default_text(param),
                (param.help or "Show it and end.")
                + (" May be repeated." if param.multiple else ""),
            )
            for param in params
        ],
    )


def _value_text(param: Any) -> str:
    if param.is_flag:
        return ""
    if choices := _choices(param):
        return " or ".join(f"`{choice}`" for choice in choices)
    if param.metavar:
        return f"`{param.metavar}`"
    bounds = [f"{words} {_bound(param, name)}" for name, words in _BOUNDS if _has(param, name)]
    return ", ".join([_KINDS.get(_kind(param), "text"), *bounds])


# Where typer keeps what a parameter takes depends on its version: on the parameter, or on a type
# as click has it.


def _kind(param: Any) -> Any:
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    return getattr(getattr(param, "type", None), "name", None) if kind is None else kind


def _bound(param: Any, name: str) -> Any:
    return getattr(param, name, getattr(getattr(param, "type", None), name, None))


def _has(param: Any, name: str) -> bool:
    return _bound(param, name) is not None


def _choices(param: Any) -> list[str]:
    if get_origin(_kind(param)) is Literal:
        return [str(value) for value in get_args(_kind(param))]
    return [str(c) for c in getattr(getattr(param, "type", None), "choices", [])]


def _default_text(param: Any) -> str:
    return "" if param.is_flag or param.default in (None, ()) else f"`{param.default}`"
