"""Compiles generated Python text into functions, with lines that tracebacks can find."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from typing import Any


class Binding:
    """Gives a plan's function for known sizes; compiled on first use."""

    def __init__(self, text: str, filename: str, space: dict[str, Any]) -> None:
        self._text = text, filename
        self._space = space
        self._bind: Any = None

    def __call__(self, sizes: Mapping[Any, int]) -> Callable[..., list[Any]] | None:
        if self._bind is None:
            self._bind = executed(*self._text, dict(self._space))["bind"]
        return self._bind(sizes)


def executed(source: str, filename: str, space: dict[str, Any]) -> dict[str, Any]:
    """Return the names that a text of ours leaves."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), space)  # noqa: S102 (our own text)
    return space
