"""``tm.assume``: conditions on values that rewriting may rely on, and that are checked when the values are computed."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.effects.checks import assumed
from tensormagic.ops.fold import ALL, fold
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.scalars.comparison import bitwise_and, greater, greater_equal, less, less_equal, not_equal
from tensormagic.ops.scalars.scalar import isfinite, logical_and

_COMPARISONS = (greater, greater_equal, less, less_equal, not_equal)
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "!=": "!="}
_WAY_OUT = "Compare the value itself with a number, or use np.isfinite: x = tm.assume(x, x > 0)"


def assume(value: Any, *conditions: Any, check: bool = True) -> Any:
    """Return ``value`` with conditions that rewriting may rely on.

    Parameters
    ----------
    value : array_like or Tensor
        The value that they describe. Use the result in its place: ``x = tm.assume(x, x > 0)``.
    *conditions
        Comparisons of ``value`` with numbers (``x > 0``, ``x <= 1``, ``x != 0``), ``np.isfinite(value)``, and several of them by ``&``.
    check
        Whether they are checked when the values are computed. Unchecked conditions that do not hold make results meaningless.

    Returns
    -------
    array_like or Tensor
        ``value``.

    Raises
    ------
    ValueError
        If a condition does not hold when the values are computed.
    TypeError
        If a condition is not such a comparison, or does not mention ``value``.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     x = assume(x, x > 0)
    ...     return np.sqrt(x**2)
    >>> float(f(np.float64(3.0)))
    3.0
    """
    if not conditions:
        raise TypeError(f"tm.assume takes a value and a condition on it. {_WAY_OUT}")
    if not isinstance(value, Tensor):
        if check and not all(np.all(c) for c in conditions):
            raise ValueError(f"the condition given to tm.assume is false for {_shown(value)}")
        return value
    node = node_of(value)
    facts = "; ".join(fact for c in conditions for fact in _facts(node, c))
    message = f"the condition given to tm.assume is false for {_named(node)}: {facts.replace('; ', ' and ')}{_here()}"
    holds = functools.reduce(logical_and, map(_everywhere, conditions)) if check else constant(True)
    capture = context.current()
    if (
        check and capture is not None and capture.abstract and raising.can_defer()
    ):  # checked even if the result is not used
        raising.note(raising.wait(holds, ValueError(message)))
    return wrap(assumed(node, holds, facts, message))


def _everywhere(condition: Any) -> Node:
    one = node_of(condition)
    return fold(ALL, one, tuple(range(one.type.ndim))) if one.type.shape else one


def _named(node: Node) -> str:
    """Return the user's name of an input, or the name of the op of a computed value."""
    source = node.params.get("source")
    return getattr(source, "name", "") or f"the {node.op.name if node.args else 'value'}"


def _here() -> str:
    place = usercode.here()
    return f" ({place})" if place else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _facts(node: Node, condition: Any) -> Iterator[str]:
    """Yield the facts that a condition states about ``node``, as text."""
    if not isinstance(condition, Tensor):
        raise TypeError(f"tm.assume was given {condition!r}, which is not a condition on the value. {_WAY_OUT}")
    pool = [node_of(condition)]
    while pool:
        one = bare(pool.pop())
        if one.op in {logical_and, bitwise_and}:
            pool += one.args
        elif one.op is isfinite and bare(one.args[0]) is bare(node):
            yield "finite"
        else:
            yield _compared(node, one)


def _compared(node: Node, one: Node) -> str:
    """Return a comparison of ``node`` with a number, as text."""
    if one.op in _COMPARISONS:
        sign = one.op.infix
        left, right = map(bare, one.args)
        if right is bare(node):
            left, right, sign = right, left, _TURNED[sign]
        if left is bare(node) and right.op is CONSTANT and not right.type.shape:
            number = float(right["bits"].array())
            if not math.isnan(number):
                return f"{sign} {number:g}" if float(f"{number:g}") == number else f"{sign} {number!r}"
    raise TypeError(f"tm.assume cannot use this condition ({one.op.name}). {_WAY_OUT}")
