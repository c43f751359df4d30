"""The gradient of a lazy value, ``y.grad(w)``, and which node its argument denotes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensormagic.capture.inputs.snapshots import Snapshot, same_bits, unread
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.python import usercode
from tensormagic.capture.stores.outside import Undecided
from tensormagic.capture.stores.overlap import through_memory
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values import live_values
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, owned, wrap
from tensormagic.functions.gradients.gradient_nodes import gradient_nodes
from tensormagic.ir import site
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import INPUT
from tensormagic.ops.named import NAMED, is_bare


def not_alone(value: Any, name: str = "the value", result: Node | None = None) -> str:
    """Return a note that another equal value exists, because the expression occurs twice, or an empty text.

    The other one may have no name: then ``result`` contains the same expression once more.

    Raises
    ------
    DifferentiationError
        For a value made of constants alone.
    """
    if not isinstance(value, Tensor) or not value.type.inexact or (node := value.node).op in {INPUT, NAMED}:
        return ""
    if is_bare(node):
        raise DifferentiationError(
            f"{name} is computed from constants alone: it cannot be distinguished from equal constants",
            "Make it a lazy value first, tm.tensor(np.asarray(w)), and compute with that.",
        )
    named = any(other.node is node for other in live_values.held() if other is not value and not _shares(other, value))
    if not named and (result is None or not _is_said_again(node, result)):
        return ""
    return (
        f"{name} and another lazy value are the same expression, so the gradient counts both. To tell them apart, "
        "write a function and differentiate that: tm.grad(lambda w: ...)(w)"
    )


def _is_said_again(node: Node, result: Node) -> bool:
    """Return whether a user of ``node`` in ``result`` repeats its expression in the text, and ``node`` was also built elsewhere."""
    places = site.of(node)
    if len(places) < 2:
        return False
    users = [s for n in topological([result]) if node in n.args for s in site.of(n)]
    return any(any(s in user for s in places) and any(s not in user for s in places) for user in users)


def _shares(other: Any, value: Tensor) -> bool:
    return not isinstance(other, Tensor) or _memory(other) is _memory(value)


def _memory(value: Tensor) -> Buffer:
    """Return the memory of a lazy value, as its cell had it."""
    buffer = value.place.buffer
    return buffer.before if isinstance(buffer, Undecided) else buffer


def input_of(result: Node, wrt: Any) -> Node:
    """Return the node that a gradient is with respect to: a lazy value's, or the input of that name, or that array's or number's."""
    number = not isinstance(wrt, Tensor) and isinstance(wrt, int | float | complex | np.number)
    if not number and not isinstance(wrt, str | np.ndarray):
        if told := not_alone(wrt, result=result):
            warnings.warn(told, UserWarning, stacklevel=4)
        numbers_taken.warn_of_taken_numbers(result, node_of(wrt), "what it is differentiated by")
        return node_of(wrt)
    nodes = topological([result])
    sources = {n: n["source"] for n in nodes if n.op is INPUT}
    if isinstance(wrt, str):
        variable = usercode.user_names(usercode.user_frame()).get(wrt)
        if isinstance(variable, Tensor) and (node := variable.node) in nodes:  # as `--grad` takes the name
            return node
        found = [n for n, source in sources.items() if source.name == wrt]
    elif not isinstance(wrt, np.ndarray):
        found = _inputs_of(wrt, sources)
    else:
        found = [n for n, source in sources.items() if isinstance(source, Snapshot) and source.is_of(wrt)]
        leaf = unread(wrt)
        if (
            not found and through_memory(result, leaf) is not result
        ):  # the result depends on a part of the leaf, or on all of it
            return leaf
    what = repr(wrt) if isinstance(wrt, str) or number else "the array"
    if len(found) != 1:
        names = ", ".join(sorted({source.name for source in sources.values()})) or "no variable that was there before"
        many = f"several inputs have this {'value' if number else 'name'}" if found else f"it depends on {names}"
        raise DifferentiationError(f"{what} is not an input of this value: {many}", _INPUT if sources else _NO_INPUT)
    numbers_taken.warn_of_taken_numbers(result, found[0], what)
    return found[0]


_INPUT = "Name an input, as in y.grad('x'); an array must be the one that the cell read, and unchanged since."
_NO_INPUT = "Assign it in an earlier cell than the one that computes with it; or take the gradient of a function: tm.grad(f)(x)."


def way_to(value: Tensor, name: str = "y") -> str:
    """Return how to ask for the gradient of a value by one of its inputs: ``loss.grad("w")``."""
    inputs = (n["source"].name for n in topological([value.node]) if n.op is INPUT and n.type.inexact)
    return f'{name}.grad("{next((n for n in inputs if n.isidentifier()), "w")}")'


def _inputs_of(number: Any, sources: Mapping[Node, Any]) -> list[Node]:
    """Return the inputs read from this number; of several, those under a name it has in the user's code."""
    array, held = np.asarray(number), [(n, s) for n, s in sources.items() if isinstance(s, Snapshot)]
    same = [(n, s) for n, s in held if not isinstance(s.value, np.ndarray) and same_bits(np.asarray(s.value), array)]
    names = {name for name, value in usercode.user_names(usercode.user_frame()).items() if value is number}
    named = [n for n, s in same if s.name in names]
    return named or [n for n, _ in same]


def tensor_grad(self: Tensor, wrt: Any = None) -> Any:
    """Return the gradient of this lazy number with respect to what it was computed from.

    Parameters
    ----------
    wrt : Tensor, ndarray, str, or a tuple of these
        A lazy value, an array that was read (the same object), or the name of a variable of the notebook.

    Returns
    -------
    Tensor or tuple of Tensor
        Of the shape and dtype of ``wrt``, in units of this value by those of ``wrt``; lazy. A tuple for a tuple.

    Raises
    ------
    DifferentiationError
        Where this is no real number, for what it was not computed from, and where an operation on the way has no derivative.

    Examples
    --------
    >>> import tensormagic as tm
    >>> x = tm.tensor([1.0, 2.0])
    >>> print((x**3).sum().grad(x))
    [ 3. 12.]
    """
    if wrt is None:
        raise DifferentiationError("a gradient is with respect to something", f"Name it, as in {way_to(self)}.")
    several = isinstance(wrt, tuple | list)
    nodes = [input_of(self.node, v) for v in (wrt if several else (wrt,))]
    with self.leveled():
        found = [owned(wrap(n), numbers=True) for n in gradient_nodes(self.node, nodes)]
    return tuple(found) if several else found[0]


class Asked:
    """``y.grad``: a method whose repr explains how to call it, as in other libraries this attribute holds the gradient."""

    def __init__(self, value: Any = None) -> None:
        self._value = value
        self.__doc__ = tensor_grad.__doc__

    def __get__(self, value: Tensor, _owner: type | None = None) -> Asked:
        return Asked(value)

    def __call__(self, wrt: Any = None, **named: Any) -> Any:
        if named:
            raise DifferentiationError(
                "a gradient is with respect to something", f'Name it in quotes: y.grad("{next(iter(named))}").'
            )
        return tensor_grad(self._value, wrt)

    def __repr__(self) -> str:
        return (
            "<a method: y.grad(w) is the gradient of y with respect to w; %%tensor --grad w makes the variable grad_w>"
        )
