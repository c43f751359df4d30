"""The target of a plan: the processor with libraries, loops that compute everything, or a GPU. Facts about nodes depend on it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

Purpose = Literal["", "alone", "device"]
PURPOSES: tuple[Purpose, ...] = ("", "alone", "device")

P = ParamSpec("P")
R = TypeVar("R")

_purpose: ContextVar[Purpose] = ContextVar("purpose", default="")


def purpose() -> Purpose:
    """Return the target that plans are being made for."""
    return _purpose.get()


def is_alone() -> bool:
    """Return whether plans compute everything in loops that they can."""
    return _purpose.get() == "alone"


@contextmanager
def without_library() -> Generator[None]:
    """Make plans that call a library only for nodes with no other implementation."""
    token = _purpose.set("alone")
    try:
        yield
    finally:
        _purpose.reset(token)


def for_device(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that makes or runs plans for a GPU, with the planner's facts about nodes for that device."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> R:
        if _purpose.get():
            return function(*args, **options)
        token = _purpose.set("device")
        try:
            return function(*args, **options)
        finally:
            _purpose.reset(token)

    return run
