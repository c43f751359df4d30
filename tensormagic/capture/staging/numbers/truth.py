"""Conditions: truth values that are known or in the graph, and iteration by Python if no region can hold the loop."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.limits import Ahead
from tensormagic.capture.numbers.alternatives import OneOf
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.numbers.optional import Perhaps, truth_of
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.loops.ranges import len_
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.size import hint, nodes_of
from tensormagic.ops.form import to_form
from tensormagic.ops.pointwise import astype


def truth(value: Any) -> bool | Node:
    """Return a value as a condition: a bool if it is known, or a node."""
    if isinstance(value, GrownList):
        value = value.filled
    if isinstance(value, OneOf):
        return truth(value.mapped(asked))
    if isinstance(value, Perhaps):
        return truth_of(value, truth)
    if not isinstance(value, Tensor):
        own = special_methods.method_of(value, "__bool__")
        if own is None and special_methods.method_of(value, "__len__") is not None:
            return truth(len_(value))
        return bool(value) if own is None else truth(special_methods.converted_result(own, bool))
    known = static_value(value.node)
    if known is not None:
        return bool(known)
    if value.ndim:
        if any(hint(s) == 0 and not nodes_of(s) for s in value.type.shape):
            return bool(np.empty(0))  # NumPy's own error, or its answer before NumPy 2.2
        value = _one_element(value)
    return to_form(astype(to_form(value.node, "scalar"), bool), "python")


def _one_element(value: Tensor) -> Tensor:
    """Return the number in an array of one element."""
    if any(nodes_of(s) for s in value.type.shape):
        refuse("the truth value of an array whose size depends on data", "Write a.any(), a.all(), or a[0].")
    if any(s != 1 for s in value.type.shape):
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
    return value.reshape(())


def asked(value: Any) -> Any:
    """Return the truth of a value as a bool or a lazy bool."""
    found = truth(value)
    return found if isinstance(found, bool) else wrap(found)


def computed(condition: bool | Node) -> bool:
    """Return a condition's value, in a cell with values."""
    if isinstance(condition, bool):
        return condition
    found = bool(wrap(condition).numpy())
    capture, frame = context.current(), usercode.user_frame()
    if capture is not None and frame is not None and not capture.heap.trials:
        capture.effort.chosen.setdefault(usercode.span(frame), [0, 0])[found] += 1
    return found


def decided(value: Any) -> bool | Node:
    """Return a value as a condition; computed in iterations that Python runs, if they should not all go into the graph."""
    condition, capture = truth(value), context.current()
    return computed(condition) if capture is not None and capture.effort.driven and values_are_there() else condition


class Driving:
    """Represents a loop whose iterations Python runs: see :func:`decided`.

    Parameters
    ----------
    lazy
        How many iterations, of this loop and of those that it runs in, leave their conditions in the graph.
    count, early
        How many iterations the loop has, where that is known, and whether it may be left early.
    """

    def __init__(self, lazy: int, count: int | None = None, *, early: bool = False) -> None:
        self.lazy = lazy
        self.decides = False
        self.capture = context.current()
        self._ahead = Ahead(count, early=early, around=None if self.capture is None else self.capture.effort.ahead)

    def __enter__(self) -> Self:
        if self.capture is not None:
            self.capture.effort.driving += 1
            self.capture.effort.ahead = self._ahead
        return self

    def __exit__(self, *_: object) -> None:
        if self.capture is not None:
            self.capture.effort.driving -= 1
            self.capture.effort.ahead = self._ahead.around
            self.capture.effort.driven -= self.decides
            self.capture.effort.iterations *= self.capture.effort.driving > 0

    def begin(self) -> None:
        """Begin an iteration."""
        if self.capture is not None and not self.decides:
            self.capture.effort.iterations += 1
            self.decides = self.capture.effort.iterations > self.lazy
            self.capture.effort.driven += self.decides
        if self.capture is not None:
            self._ahead.begin(self.capture)


def unstaged(error: Exception) -> None:
    """Record why Python runs what might have been a region."""
    capture, frame = context.current(), usercode.user_frame()
    if capture is not None and frame is not None and not capture.heap.trials:
        capture.effort.unstaged[usercode.span(frame)] = _said(error) or type(error).__name__


def _said(error: Exception) -> str:
    lazy = any(isinstance(a, Tensor) for a in error.args)  # the error of an iteration on trial
    return "" if lazy else getattr(error, "message", str(error))
