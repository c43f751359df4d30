"""``print``, log messages, ``id`` and ``copy.deepcopy`` in captured functions: text is printed when the graph runs, in program order.

Messages of ``logging`` and ``warnings`` that hold captured values are left to Python. Changes of how NumPy prints,
and whether it warns, are refused there: they would take effect while the function is captured, and not later.
"""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.hooks import hooks
from tensormagic.capture.staging.calls.deep_copies import copied
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.messages import value_texts as texts
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.stores.outside import callers_container, whole_array
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.unused_values import made_in_cell
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ops.effects.telling import tell


def print_(*values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """Print when the graph runs, as ``print`` does."""
    del flush
    capture = context.current()
    if capture is None or (file is not None and file is not sys.stdout):
        raise NeedsPython("print() to a file, in a captured function", "Print outside the function.")
    if sys.stdout is not capture.output.stdout:
        raise NeedsPython("print() where a captured function has redirected sys.stdout", "Print outside the function.")
    details: list[Node] = []
    told = [texts.part_of(_shown(value), details) for value in values]
    token = tell(node_of(raising.so_far()), told, details, " " if sep is None else sep, "\n" if end is None else end)
    raising.note(raising.recorded(token))


def in_order(*values: Any, **options: Any) -> None:
    """Print in a cell, after computing what the lines before it compute and may fail at."""
    capture = context.current()
    if capture is not None and not capture.abstract and not capture.inputs.standing:
        pending = [n for n in made_in_cell(capture) if not hooks.is_computed(n)]
        capture.order.made.clear()  # what raises here is not computed again by a `finally`
        if pending:
            hooks.compute(pending)
    print(*values, **options)  # noqa: T201 (the user's)


def _write(text: Any) -> int | None:
    """Write a text in order with prints, as ``sys.stdout.write``; return its length, or None if that is not known yet."""
    if not isinstance(text, str | texts.LazyText):
        raise TypeError(f"write() argument must be str, not {type(text).__name__}")
    print_(text, end="")
    return len(text) if type(text) is str else None


def replacement(function: Any) -> Any:
    """Return our replacement for a function that prints, copies deeply, or changes NumPy's settings; else None."""
    for of, own in _INSTEAD:
        if function is of:
            return own
    if getattr(function, "__self__", None) is sys.stdout and getattr(function, "__name__", "") == "write":
        return _write
    return partial(_settings, function) if any(function is f for f in SETTINGS) else None


def keeps_messages(function: Any) -> bool:
    """Return whether a function of ``logging`` or ``warnings`` keeps a message, or reports errors it meets as messages."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name in _MESSAGES and isinstance(owner, logging.Logger | logging.LoggerAdapter):
        return True
    return name in _MESSAGES and any(function is getattr(module, name, None) for module in (logging, warnings))


def with_messages(function: Any, called: Any) -> Any:
    """Return ``called`` in place of ``function``; raise NeedsPython where the message holds captured values."""

    def call(*args: Any, **options: Any) -> Any:
        parts = flatten((args, options))[0]
        parts += [v for warning in parts if isinstance(warning, Warning) for v in flatten(warning.args)[0]]
        if any(isinstance(v, (Tensor, *texts.LATER, texts.Text)) for v in parts):
            raise NeedsPython(
                f"{function.__module__.lstrip('_')}.{function.__name__}() of a value that is captured",
                "Return the value, and tell of it outside the function.",
            )
        return called(*args, **options)

    return call


def _errstate(**options: Any) -> Any:
    """Return ``np.errstate``; refuse functions to be called on floating-point errors, as they are outside of the graph."""
    called = any(isinstance(how, str) and (how == "call" or how == "log") for how in options.values())  # noqa: PLR1714 (a table of ops otherwise)
    if called or options.get("call") is not None:
        raise NeedsPython(
            "np.errstate() in a captured function that has a function called for floating-point errors",
            'Write np.errstate(...="raise"), or ask for these errors outside the function.',
        )
    return np.errstate(**options)


def _settings(function: Any, *_args: Any, **_options: Any) -> NoReturn:
    raise NeedsPython(
        f"np.{function.__name__}() in a captured function, where it would be called while that is captured, and then no more",
        "Call it outside the function.",
    )


_INSTEAD: tuple[tuple[Any, Any], ...] = ((print, print_), (np.errstate, _errstate), (copy.deepcopy, copied))
_MESSAGES = {"debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log", "warn_explicit"}
SETTINGS = (np.set_printoptions, np.printoptions, np.seterr, np.seterrcall, np.setbufsize)


def id_(value: Any) -> int:
    """Return the ``id`` of the notebook's array for a captured one; refuse it where the graph is reused for other arrays."""
    if isinstance(value, Tensor) and not values_are_there():
        refuse("id() of an array or a number that is captured", "Pass a name or a number that identifies it.")
    return id(whole_array(callers_container(value)))


def _shown(value: Any) -> Any:
    """Return an argument of ``print`` as a lazy value, or as a text that may hold lazy values."""
    if isinstance(value, (*texts.LATER, texts.Text)):
        return value
    return texts.formatted((value, "s", "")) if texts.is_put_together(value) else str(value)
