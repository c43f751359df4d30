"""Python's ordering of lazy values that are not computed yet: ``sorted``, ``list.sort``, and keys of ``min`` and ``max``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse_python, values_are_there
from tensormagic.capture.names import find
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.classes import Classes
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.choices import chosen
from tensormagic.capture.staging.branches.containers import changeable
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.numbers.compared_parts import before
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.list_elements import Stack
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Form, Type
from tensormagic.ops.form import to_form
from tensormagic.ops.move import concatenate, expand_dims

Key = Callable[[Any], Any]


def sorted_(values: Any, /, *, key: Key | None = None, reverse: Any = False) -> Any:
    """Return what ``sorted`` gives."""
    items = list(values)
    keys = items if key is None else [key(item) for item in items]
    if values_are_there() and all(isinstance(k, Tensor) and not k.ndim for k in keys):
        keys = [k.numpy() for k in keys]
    if len(items) < 2 or values_are_there() or not has_lazy(keys):
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[k] for k in order]
    _refuse_changeable(items, "sorted()")
    order = _order(keys, bool(reverse))
    return _taken(items, order)


def sort(items: list[Any], *, key: Key | None = None, reverse: Any = False) -> None:
    """Sort a list in place, as ``list.sort`` does."""
    items[:] = sorted_(items, key=key, reverse=reverse)


def extreme(plain: Callable[..., Any], values: list[Any], *, key: Key | None = None, smaller: bool) -> Any:
    """Return what ``min`` or ``max`` gives by keys, or part by part: the first item that no other precedes."""
    keys = values if key is None else [key(value) for value in values]
    if not has_lazy(keys) and not any(special_methods.method_of(k, "__lt__") for k in keys):
        return values[plain(range(len(values)), key=keys.__getitem__)]
    if any(True for v in values for _ in changeable(v)):
        if not values_are_there():
            _refuse_changeable(values, plain.__name__ + "()")
        keys = [k.numpy() if isinstance(k, Tensor) else k for k in keys]
        return values[plain(range(len(values)), key=keys.__getitem__)]
    best = keys[0], values[0]
    for one in zip(keys[1:], values[1:], strict=True):
        test = before(one[0], best[0]) if smaller else before(best[0], one[0])
        best = chosen(test, lambda one=one: one, lambda best=best: best)
    return best[1]


def _refuse_changeable(items: Sequence[Any], what: str) -> None:
    """Raise if lists and the like would stand at data-dependent places: a store into one of them would go into a copy."""
    if any(True for item in items for _ in changeable(item)):
        refuse_python(
            f"{what} of lists or dictionaries by what depends on data", "Sort tuples, or numbers with np.argsort."
        )


def _order(keys: list[Any], reverse: bool) -> Node:
    """Return the positions in sorted order; those of equal keys keep their order, also if reversed."""
    columns = _columns(keys, "sorted() by keys")
    for column, *_ in columns:
        _refuse_unordered(column)
    rows = [wrap(column)[::-1] if reverse else wrap(column) for column, *_ in columns]
    order: Any = _numpys(np.lexsort)(rows[::-1])
    return node_of((len(keys) - 1 - order)[::-1] if reverse else order)


def _refuse_unordered(column: Node) -> None:
    """Add a check at run time that there is no nan: where Python leaves it depends on which comparisons are made."""
    if not column.type.inexact:
        return
    error = CaptureError(
        f"sorted() in {usercode.here()} finds a nan, and Python does not define where nan is sorted",
        "Use np.sort, which puts nan last.",
    )
    if not raising.defer(node_of((~_numpys(np.isnan)(wrap(column))).all()), error):
        raise context.uncaught()


def _taken(items: list[Any], order: Node) -> list[Any]:
    """Return the items in a data-dependent order."""
    _, build = flatten(items[0])
    stacks = [
        Stack(_at(column, order), form, len(items), None if c is None else Classes(_at(c.code, order), c.types))
        for column, form, c in _columns(items, "sorted()")
    ]
    return [build(iter([s.elements[k] for s in stacks])) for k in range(len(items))]


def _at(column: Node, order: Node) -> Node:
    return node_of(wrap(column)[wrap(order)])


def _columns(items: Sequence[Any], what: str) -> list[tuple[Node, Form, Classes | None]]:
    """Return an array for each number in an item, its form, and its possible classes if there are several."""
    if any(structure(item) != structure(items[0]) for item in items):
        refuse_python(f"{what} of items that are not only numbers", "Sort numbers, or tuples of numbers.")
    rows = [[_number(v, what) for v in flatten(item)[0]] for item in items]
    columns = list(zip(*rows, strict=True))
    if not columns or any(n.type != column[0].type for column in columns for n in column):
        refuse_python(f"{what} of numbers of several types", "Convert them to one type first: float(v).")
    return [(_stack(c), c[0].type.form, _several(c)) for c in columns]


def _stack(numbers: Sequence[Node]) -> Node:
    return number_classes.settle(concatenate([expand_dims(to_form(n, "array"), (0,)) for n in numbers], 0))


def _several(numbers: Sequence[Node]) -> Classes | None:
    """Return the possible classes of numbers, if there are several, with the array of codes; else None."""
    if not any(map(number_classes.noted, numbers)):
        return None
    found = [number_classes.noted(n) or number_classes.one_class(n.type) for n in numbers]
    return Classes(_stack([c.code for c in found]), frozenset[Type]().union(*(c.types for c in found)))


def _number(value: Any, what: str) -> Node:
    is_number = isinstance(value, Tensor | bool | int | float | complex | np.generic)
    if not is_number or (isinstance(value, Tensor) and value.type.form == "array" and value.ndim):
        name = "ndarray" if isinstance(value, Tensor) else type(value).__name__
        refuse_python(
            f"{what} of {name}s, which depends on data,", "Sort numbers: np.argsort gives an order to index with."
        )
    return node_of(value)


def _numpys(function: Any) -> Callable[..., Any]:
    own = find(function)
    return function if own is None else own
