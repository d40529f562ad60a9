"""Stop-watches around functions of the package, put on by name and taken off again."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from inspect import getattr_static
from typing import Any
from unittest.mock import patch


@dataclass
class _Open:
    label: str
    start: float
    whole: bool
    within: float = 0.0
    """Seconds that other timers inside this one have counted."""


@dataclass
class Timers:
    """Seconds by label; what one timer counts, those around it do not.

    One thing at a time: threads may take turns (a pool that is waited for), not run side by side.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    clock: Callable[[], float] = time.perf_counter
    _open: list[_Open] = field(default_factory=list)

    @contextmanager
    def timing(self, label: str, *, whole: bool = False) -> Iterator[None]:
        """Count what happens inside; `whole` counts also what has timers of its own."""
        if self._open and self._open[-1].whole:
            yield
            return
        self._open.append(_Open(label, self.clock(), whole))
        try:
            yield
        finally:
            done = self._open.pop()
            took = self.clock() - done.start
            self.seconds[label] = self.seconds.get(label, 0.0) + took - done.within
            if self._open:
                self._open[-1].within += took

    def iterated(self, items: Any, label: str) -> Iterator[Any]:
        """Yield what an iterator has, counting what it takes to come by it."""
        iterator = iter(items)
        nothing = object()
        while True:
            with self.timing(label):
                item = next(iterator, nothing)
            if item is nothing:
                return
            yield item


@dataclass(frozen=True)
class Timed:
    """A function to time: `package.module:function` or `package.module:Class.method`."""

    place: str
    label: str
    whole: bool = False
    iterates: bool = False
    """Whether the work is done as its result is iterated over."""


@contextmanager
def timed(timers: Timers, functions: Sequence[Timed]) -> Iterator[None]:
    """Time functions, for as long as the context lasts."""
    with ExitStack() as stack:
        for function in functions:
            owner, name = _owner(function.place)
            stack.enter_context(patch.object(owner, name, _wrapped(timers, function, owner, name)))
        yield


def _owner(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    *outer, name = path.split(".")
    owner = import_module(module)
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def _wrapped(timers: Timers, function: Timed, owner: Any, name: str) -> Any:
    found = getattr_static(owner, name)
    if isinstance(found, classmethod):
        return classmethod(_around(timers, function, found.__func__))
    return _around(timers, function, found)


def _around(timers: Timers, function: Timed, inner: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(inner)
    def outer(*arguments: Any, **options: Any) -> Any:
        if function.iterates:
            return timers.iterated(inner(*arguments, **options), function.label)
        with timers.timing(function.label, whole=function.whole):
            return inner(*arguments, **options)

    return outer
