"""``print`` and ``id`` in a captured function: it prints when the graph runs, once, in the order of the program."""

from __future__ import annotations

import sys
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.operands import node_of
from tensormagic.capture.refusal import refuse, values_are_there
from tensormagic.capture.staging import raising
from tensormagic.capture.staging import told as texts
from tensormagic.capture.staging.needs_python import NeedsPython
from tensormagic.capture.staging.world import CHECKS
from tensormagic.capture.stores.outside import whole_array
from tensormagic.capture.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ops.effects.telling import tell


def print_(*values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """``print``."""
    del flush
    capture = context.current()
    if capture is None or (file is not None and file is not sys.stdout):
        raise NeedsPython("print() to a file, in a captured function", "Print outside the function.")
    if sys.stdout is not capture.stdout:
        raise NeedsPython("print() where a captured function has redirected sys.stdout", "Print outside the function.")
    details: list[Node] = []
    told = [texts.part_of(_shown(value), details) for value in values]
    token = tell(
        node_of(capture.checks[CHECKS]), told, details, " " if sep is None else sep, "\n" if end is None else end
    )
    raising.note(wrap(context.record(token)))


def id_(value: Any) -> int:
    """``id``: of the notebook's array for what is captured of it; a kept graph knows of no array of a call."""
    if isinstance(value, Tensor) and not values_are_there():
        refuse("id() of an array or a number that is captured", "Pass a name or a number that identifies it.")
    return id(whole_array(value))


def _shown(value: Any) -> Any:
    """An argument of ``print``: a lazy value, or a text that may hold lazy values."""
    if isinstance(value, (*texts.LATER, texts.Text)):
        return value
    if texts.holds_lazy(value):
        return texts.formatted((value, "", ""))
    return str(value)
