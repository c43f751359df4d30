"""The class of a number where it is data-dependent: 0, which is Python's, or the ``np.float64`` that a loop found.

A region has one type for both. With such a number goes a code in the graph, which says of which class Python's would
be; in a cell it is computed where the loop ends, and the number has that class from there on. Functions, which have
no values, go on with a number of the common type, and return one of its actual class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from math import prod
from typing import Any
from weakref import WeakSet

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers.undecided_dtypes import may_be_integer
from tensormagic.ir.errors import CaptureError, TensorError
from tensormagic.ir.node import Node, make, replaced, topological
from tensormagic.ir.type import Type
from tensormagic.ops.effects.checks import REQUIRE, require
from tensormagic.ops.fold import ANY, fold
from tensormagic.ops.form import own_form, to_form
from tensormagic.ops.leaf import Source, constant, constant_value, input_node
from tensormagic.ops.op import as_form
from tensormagic.ops.pointwise import ASTYPE, Pointwise, astype
from tensormagic.ops.regions.region import Region
from tensormagic.ops.scalars import scalar

COMBINATIONS = 16  # possible classes of the numbers that another is computed from, together


@dataclass(frozen=True)
class Classes:
    """Represents the possible classes of a number, and a node with the class's code, its place in ``Numbers.types``."""

    code: Node
    types: frozenset[Type]


def is_number(t: Type) -> bool:
    """Return whether a type is that of a number, Python's or NumPy's."""
    return not t.shape and t.form in {"python", "scalar"}


def followed() -> bool:
    """Return whether classes of numbers are tracked: whether there is a capture."""
    return context.current() is not None


def are_needed() -> bool:
    """Return whether code needs the class of a number once it is known; a function has one type for its result."""
    capture = context.current()
    return capture is not None and not (capture.abstract or capture.inputs.standing)


def note(node: Node, classes: Classes) -> None:
    """Record the classes that a number may have."""
    capture = context.current()
    if capture is not None:
        capture.classes.of[node] = classes


def noted(node: Node) -> Classes | None:
    """Return the possible classes of a number, if its class is data-dependent; else None."""
    capture = context.current()
    return None if capture is None else capture.classes.of.get(node)


def nodes() -> set[Node]:
    """Return the numbers of data-dependent class so far, and their codes: no branch computes them again."""
    capture = context.current()
    known: Mapping[Node, Classes] = {} if capture is None else capture.classes.of
    return {*known, *(c.code for c in known.values())}


def classes_of(node: Node) -> Classes | None:
    """Return the possible classes of a number; None if they do not follow from those of its operands."""
    capture = context.current()
    known: Mapping[Node, Classes] = {} if capture is None else capture.classes.of
    if node in known:
        return known[node]
    settled = WeakSet[Node]() if capture is None else capture.classes.settled
    if node in settled:
        return one_class(node.type)
    inside = topological([node], stop=lambda n: n in known or n in settled or isinstance(n.op, Region)) if known else []
    below = [n for n in inside if n in known]
    if not below:
        return one_class(node.type)
    if prod(len(known[n].types) for n in below) > COMBINATIONS:
        return None
    found: dict[tuple[Type, ...], Type] = {}
    written = _as_written(inside)
    fixed = {n: n for n in inside if n in settled}  # of one class, whatever they are computed from
    for types in product(*(sorted(known[n].types, key=str) for n in below)):
        given = fixed | {
            n: input_node(Source("a number of another class"), t) for n, t in zip(below, types, strict=True)
        }
        t = _type_with(node, given, written)
        if t is None:
            return None
        found[types] = t
    return chosen(found, [known[n] for n in below])


def may_be_array(node: Node) -> bool:
    """Return whether a number may be a rank-0 array for some data: in-place operations change that for all references."""
    capture = context.current()
    if capture is None or all(t.form != "array" for t in capture.classes.types) or not is_number(node.type):
        return False
    classes = classes_of(node)
    return classes is None or any(t.form == "array" for t in classes.types)


def from_among(node: Node, classes: Classes | None) -> Node:
    """Return a number taken from an array of several, with the class that it had."""
    if classes is None:
        return node
    if (t := class_of(classes.code)) is not None:
        return as_class(node, t)
    found = node if noted(node) is None else by_itself(node, classes)
    note(found, classes)
    return found


def of_classes(node: Node, classes: Classes) -> Node:
    """Return the same number, with these possible classes."""
    found = by_itself(node, classes)
    note(found, classes)
    return found


def of_classes_of(known: Node, node: Node) -> Node:
    """Return a number with the possible classes of another one."""
    classes = noted(known)
    return node if node is known or classes is None else of_classes(node, classes)


def one_class(t: Type) -> Classes:
    """Return the classes of a number that can only have one."""
    return Classes(constant(number(t)), frozenset({t}))


def number(t: Type) -> int:
    """Return the code of a class."""
    capture = context.current()
    types = [] if capture is None else capture.classes.types
    if t not in types:
        types.append(t)
    return types.index(t)


def types() -> list[Type]:
    """Return the classes, each at the place of its code."""
    capture = context.current()
    return [] if capture is None else capture.classes.types


def class_of(code: Node | None) -> Type | None:
    """Return the class for a code, if that is known; else None."""
    capture = context.current()
    value = None if code is None else constant_value(code)
    return None if capture is None or value is None else capture.classes.types[int(value)]


def _as_written(inside: list[Node]) -> dict[Node, Node]:
    """Return the original operands of numbers that have been cast to a wider dtype here."""
    casts = {n: n.args[0] for n in inside if n.op is ASTYPE and np.can_cast(n.args[0].type.dtype, n.type.dtype)}
    return casts | {n: constant(int(n["bits"].array())) for n in inside if may_be_integer(n)}


def _type_with(node: Node, given: Mapping[Node, Node], written: Mapping[Node, Node]) -> Type | None:
    """Return the type of a node with some operands replaced; None if it depends on whether the code has written casts."""
    try:
        types = {as_computed(node, {**given, **w}).type for w in ({}, written)}
    except (TensorError, TypeError, ValueError):  # an operation that does not support such numbers
        return None
    return types.pop() if len(types) == 1 else None


def as_class(node: Node, t: Type) -> Node:
    """Return a number of the common type, as one of a class that it may have."""
    return to_form(astype(to_form(node, "scalar"), t.dtype), t.form)  # it fits


def settle(node: Node) -> Node:
    """Record that a value has one class, whatever it is computed from; return it."""
    capture = context.current()
    if capture is not None:
        capture.classes.settled.add(node)
    return node


def of_one_class(node: Node) -> Node:
    """Return the same number, known to be of the class of its type, as after a conversion."""
    return settle(own_form(node) if noted(node) is not None else node)


def as_computed(node: Node, given: Mapping[Node, Node]) -> Node:
    """Return a node with operands replaced, recomputed as the code would: Python numbers promote weakly."""
    memo = dict(given)
    for n in topological([node], stop=memo.__contains__):
        if n not in memo:
            args = [memo.get(a, a) for a in n.args]
            changed = any(a is not b for a, b in zip(args, n.args, strict=True))
            memo[n] = n.op(*args) if changed and isinstance(n.op, Pointwise) and not n.params else replaced(n, memo)
    return memo[node]


def by_itself(node: Node, classes: Classes) -> Node:
    """Return the same number, as a distinct node for these classes alone."""
    first = scalar.equal(classes.code, constant(number(min(classes.types, key=number))))
    return to_form(make(scalar.where, [first, *(to_form(node, "scalar"),) * 2]), node.type.form)


def is_of(classes: Classes, types: Sequence[Type]) -> Node:
    """Return a node for whether a number has one of these classes."""
    conditions = [scalar.equal(classes.code, constant(number(t))) for t in types]
    return reduce(scalar.logical_or, conditions, constant(False))


def holds(types: tuple[Type, ...], below: Sequence[Classes]) -> Node:
    """Return a node for whether numbers have these classes."""
    conditions = [scalar.equal(c.code, constant(number(t))) for c, t in zip(below, types, strict=True)]
    return reduce(scalar.logical_and, conditions, constant(True))


def of_array(array: Node, several: Sequence[Classes]) -> Node:
    """Return an array of numbers as NumPy makes it; if its dtype would differ, Python takes over when the graph runs.

    Parameters
    ----------
    array
        The numbers, in the type that holds them all.
    several
        Their classes, for each of them or for several together.
    """
    unsure = [c for c in several if len(c.types) > 1]
    dtypes = {t.dtype for c in unsure for t in c.types}
    sure = {t.dtype for c in several if len(c.types) == 1 for t in c.types}
    found = settle(astype(array, np.result_type(*dtypes, *sure)))
    enough, capture = _enough(dtypes, sure, found.type.dtype), context.current()
    if capture is not None and capture.inputs.standing:
        return found  # a derivative is a float
    if set() in enough or all({d} in enough for d in dtypes):
        return found
    ways = [reduce(scalar.logical_and, [_has_dtype(d, unsure) for d in met], constant(True)) for met in enough]
    other = " or ".join(sorted({str(np.result_type(d, *sure)) for d in dtypes} - {str(found.type.dtype)}))
    text = (
        f"an array of numbers whose classes depend on data may be {found.type.dtype} or {other}, and is not "
        f"{found.type.dtype} for these: make them one class, 0.0 for 0 or float(v)"
    )
    return settle(require(found, reduce(scalar.logical_or, ways, constant(False)), text, "dtype"))


def _enough(dtypes: set[np.dtype[Any]], sure: set[np.dtype[Any]], wanted: np.dtype[Any]) -> list[set[np.dtype[Any]]]:
    """Return the smallest sets of dtypes that, together with the sure ones, give the array the wanted dtype."""
    enough: list[set[np.dtype[Any]]] = []
    for count in range(len(dtypes) + 1):
        for met in map(set, combinations(dtypes, count)):
            one = bool(met or sure) and np.result_type(*met, *sure) == wanted
            if one and not any(known <= met for known in enough):
                enough.append(met)
    return enough


def of_any_dtype(array: Node) -> Node:
    """Return an array without the check of its dtype, for functions that convert integers to floats, where it does not matter."""
    return array.args[0] if array.op is REQUIRE and array["error"] == "dtype" else array


def _has_dtype(dtype: np.dtype[Any], several: Sequence[Classes]) -> Node:
    """Return a node for whether one of several numbers has a dtype."""
    found = [
        is_of(c, [t for t in c.types if t.dtype == dtype]) for c in several if any(t.dtype == dtype for t in c.types)
    ]
    return reduce(scalar.logical_or, [fold(ANY, c, (0,)) if c.type.shape else c for c in found], constant(False))


def chosen(found: Mapping[tuple[Type, ...], Type], below: Sequence[Classes]) -> Classes:
    """Return the classes of a result, given its class for each combination of operand classes."""
    types = frozenset(found.values())
    if len(types) == 1:
        return one_class(*types)
    code = constant(-1)
    for given, t in found.items():
        code = scalar.where(holds(given, below), constant(number(t)), code)
    return Classes(code, types)


def computed(several: Sequence[Classes | None], beside: Sequence[Node] = ()) -> list[list[Type]]:
    """Return the class of each of several numbers, computed together with ``beside``."""
    coded = [c.code for c in several if c is not None]
    values = iter(hooks.compute([*coded, *beside]) if coded or beside else ())
    known = types()
    return [[] if c is None else [known[int(code)] for code in np.ravel(next(values))] for c in several]


def decide(numbers: Mapping[Node, Classes], beside: list[Node]) -> dict[Node, Node]:
    """Return numbers with their actual classes, computed together with ``beside``."""
    capture = context.current()
    types = [] if capture is None else capture.classes.types
    codes = hooks.compute([*(c.code for c in numbers.values()), *numbers, *beside])
    decided = {n: types[int(code)] for n, code in zip(numbers, codes, strict=False)}
    return {n: context.record(to_form(astype(n, t.dtype), t.form)) for n, t in decided.items()}


def of_class(value: Any, t: Type) -> Any:
    """Return a computed number of the common type in the class that it actually has."""
    array = np.asarray(value)
    if t.dtype.kind in "iu" and array.dtype.kind == "f" and abs(array) >= 2.0 ** (np.finfo(array.dtype).nmant + 1):
        raise CaptureError(
            f"a whole number beyond 2**{np.finfo(array.dtype).nmant + 1}, an integer or a float depending on data, is not captured",
            "Make it a float on both sides of the branch: float(n).",
        )
    return as_form(array.astype(t.dtype), t.form)
