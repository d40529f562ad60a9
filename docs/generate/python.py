"""The public names of the package, for autodoc to describe."""

import inspect
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import mrot_scale

_MODULES = ("mrot_scale.plots",)
"""Public modules, described by the names in them; left out where they are missing."""


def python_names() -> list[str]:
    """Return every public name, the package's own first."""
    found = [f"mrot_scale.{name}" for name in mrot_scale.__all__ if name != "__version__"]
    found = [name for name in found if name not in _MODULES]
    for module in filter(find_spec, _MODULES):
        found += [f"{module}.{name}" for name in _public(module)]
    return found


def _public(module: str) -> list[str]:
    loaded = import_module(module)
    named = getattr(loaded, "__all__", None)
    if named is not None:
        return sorted(named)
    own = inspect.getmembers(loaded, inspect.isfunction)
    return [n for n, f in own if f.__module__ == module and not n.startswith("_")]


def python_reference() -> str:
    """Return a section for each kind of name; autodoc fills in signatures and docstrings."""
    names = python_names()
    classes = [n for n in names if inspect.isclass(_loaded(n))]
    plots = [n for n in names if n.startswith("mrot_scale.plots")]
    functions = [n for n in names if n not in classes and n not in plots]
    parts = ["## Functions\n", *map(_function, functions), "## Classes\n", *map(_class, classes)]
    if plots:
        parts += ["## Plots\n", *map(_function, plots)]
    return "\n".join(parts)


def _loaded(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def _function(name: str) -> str:
    return f"```{{eval-rst}}\n.. autofunction:: {name}\n```\n"


def _class(name: str) -> str:
    """Return one class; scikit-learn's metadata methods (set_*_request) are no business of ours."""
    kind = _loaded(name)
    if hasattr(kind, "model_fields"):
        return f"```{{eval-rst}}\n.. autoclass:: {name}\n```\n\n[Its settings](configuration.md).\n"
    foreign = ", ".join(n for n in dir(kind) if n.startswith("set_") and n.endswith("_request"))
    without = f"\n   :exclude-members: {foreign}" if foreign else ""
    return f"```{{eval-rst}}\n.. autoclass:: {name}\n   :members:{without}\n```\n"
