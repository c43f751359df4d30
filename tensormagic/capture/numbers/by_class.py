"""Operations on numbers whose class is data-dependent: the result for each class, and the choice between them.

A Python float beside ``float32`` is weak and ``np.float64`` is not; Python's integers divide by zero otherwise than
NumPy's. Such a number has a type that holds it in each of its classes (:mod:`tensormagic.capture.numbers.classes`);
an operation with it is computed once, where all classes would compute the same, and else once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.classes import (
    COMBINATIONS,
    Classes,
    as_class,
    as_computed,
    chosen,
    classes_of,
    holds,
    is_number,
    note,
    noted,
    of_one_class,
)
from tensormagic.capture.staging.regions import below as needed
from tensormagic.capture.staging.regions import common_type, fitting_branches, graph_of
from tensormagic.capture.staging.trials.needs_python import UnlikeDTypesError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import Type
from tensormagic.ops.effects import failing
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.form import to_form
from tensormagic.ops.pointwise import ASTYPE, Pointwise, astype
from tensormagic.ops.regions import control
from tensormagic.ops.regions.region import Region
from tensormagic.ops.scalars import scalar

Found = dict[tuple[Type, ...], Node]


def computed(op: Pointwise, nodes: Sequence[Node], compute: Callable[[Pointwise, Sequence[Node]], Node]) -> Node:
    """Return the result of an operation whose operands may be of several classes, computed by ``compute``."""
    below = {n: c for n in nodes if (c := classes_beside(n)) is not None}
    if not below:
        found = compute(op, nodes)
        if noted(found) is None or found not in nodes:
            return found
        below = {
            n: c for n in nodes if (c := noted(n)) is not None
        }  # in a cell: `b // 1`, which is b except for its class
    return joined(lambda given: compute(op, [given.get(n, n) for n in nodes]), below)


def of_function(compute: Callable[[tuple[Any, ...]], Node], nodes: Sequence[Node], wrap: Callable[[Node], Any]) -> Any:
    """Return the result of a function whose operands may be of several classes."""
    below = {n: c for n in nodes if (c := asked_classes(n)) is not None}
    if not below:
        return wrap(compute(tuple(nodes)))
    return wrap(joined(lambda given: compute(tuple(given.get(n, n) for n in nodes)), below))


def recorded(node: Node) -> Node:
    """Record a value computed other than by an operator, if numbers may be of several classes."""
    capture = context.current()
    if (
        capture is None
        or not capture.abstract
        or any(node in done for done in (capture.classes.of, capture.classes.settled, capture.attempts.safe))
    ):
        return node
    known, settled, safe = capture.classes.of, capture.classes.settled, capture.attempts.safe
    inside = topological([node], stop=lambda n: n in known or n in settled or n in safe or isinstance(n.op, Region))
    below = {n: known[n] for n in inside if n in known and n is not node}

    def compute(given: Mapping[Node, Node]) -> Node:
        found = as_computed(node, given) if given else node
        numpys = node.type.form == "scalar" and found.type.form == "python"  # NumPy's functions give NumPy's numbers
        return to_form(found, "scalar") if numpys else found

    return joined(compute, below) if below else node


def classes_beside(node: Node) -> Classes | None:
    """Return the possible classes of an operand, if there are several (for a name that may be unbound, those of its number); else None."""
    return (
        None if context.in_cell() else asked_classes(node)
    )  # in a cell the classes can be computed, or Python takes over


def asked_classes(node: Node) -> Classes | None:
    """Return the possible classes of a function's argument, if there are several, also in the loops of a cell; else None."""
    while node.op is REQUIRE and not noted(node):
        node = node.args[0]
    capture = context.current()
    if capture is None or not context.in_cell():
        return noted(node)
    if not capture.heap.trials:  # values can be computed
        return None
    if noted(node) is None and is_number(node.type):
        found = classes_of(node)
        if found is not None and len(found.types) > 1:
            note(node, found)
    return noted(node)


def joined(compute: Callable[[Mapping[Node, Node]], Node], below: Mapping[Node, Classes]) -> Node:
    """Return the results of ``compute`` for numbers of each possible class, as one value."""
    if prod(len(c.types) for c in below.values()) > COMBINATIONS:
        raise _unlike("an operation has several operands whose types depend on data")
    found = _of_each(compute, below)
    types = list(dict.fromkeys(v.type for v in found.values()))
    if len(types) > 1 and not all(map(is_number, types)):
        raise _unlike("a number is " + _several(below) + ", depending on the data, and with it this is " + _or(types))
    common = types[0]
    for t in types[1:]:
        common = common_type("", common, t)
    value = _as_one(compute, below, found, common)
    if len(types) > 1:
        note(value, chosen({k: v.type for k, v in found.items()}, list(below.values())))
        narrower = [t.dtype for t in types if t.dtype != common.dtype]
        if narrower:
            undecided_dtypes.note(value, narrower[0])
    if len(types) == 1 and value in below:
        return of_one_class(value)
    if (capture := context.current()) is not None:
        capture.classes.settled.add(value)
        if len(types) == 1:
            capture.classes.of.pop(value, None)
    return value


def _of_each(compute: Callable[[Mapping[Node, Node]], Node], below: Mapping[Node, Classes]) -> Found:
    """Return the result for each class; an error for only some classes becomes a data-dependent check."""
    found: Found = {}
    failed: list[Exception] = []
    for types in product(*(sorted(c.types, key=str) for c in below.values())):
        try:
            found[types] = compute({n: as_class(n, t) for n, t in zip(below, types, strict=True)})
        except (TypeError, ValueError) as error:  # a NumPy boolean has no sign
            failed.append(error)
    if failed and not found:
        raise failed[0]
    if failed:
        raise _unlike(
            f"a number is {_several(below)}, depending on the data, of which one is an error here: {failed[0]}"
        )
    return found


def _as_one(
    compute: Callable[[Mapping[Node, Node]], Node], below: Mapping[Node, Classes], found: Found, common: Type
) -> Node:
    """Return the value in the type that holds it in each class."""
    ways = list(dict.fromkeys(found.values()))
    fails = any(failing.may_fail(n) for n in _own(ways, [a for n in below for a in (n, *_given(found, below, n))]))
    if not fails:
        plain = compute({})
        if plain.type.dtype == common.dtype and all(_loops(w, below) == _loops(plain, below) for w in ways):
            return plain if plain.type.shape else to_form(plain, common.form)
    value = None
    for types, way in found.items():
        fitting = way if way.type.shape else to_form(astype(way, common.dtype), common.form)
        if value is None or value is fitting:
            value = fitting
            continue
        condition = holds(types, list(below.values()))
        if fails:
            value = _one_of(condition, fitting, value, below)
        else:
            value = scalar.where(condition, fitting, value)
            value = value if value.type.shape else to_form(value, common.form)
    assert value is not None  # noqa: S101 (there is a class at least)
    return value


def _given(found: Found, below: Mapping[Node, Classes], node: Node) -> list[Node]:
    k = list(below).index(node)
    return [as_class(node, types[k]) for types in found]


def _own(ways: Sequence[Node], operands: Sequence[Node]) -> list[Node]:
    """Return the nodes that the results compute beside their operands."""
    there = set(topological(operands))
    capture = context.current()
    safe = set() if capture is None else capture.attempts.safe
    return [n for n in topological(ways, stop=lambda n: n in there or n in safe) if n not in there and n not in safe]


def _one_of(condition: Node, first: Node, second: Node, below: Mapping[Node, Classes]) -> Node:
    """Return one of two values, of which only the chosen one is computed, since the other may be an error."""
    known = {*below, *(c.code for c in below.values())}
    capture = context.current()
    if capture is not None:
        known |= {n for n in topological([first, second]) if n in capture.attempts.safe}
    free = list(dict.fromkeys(n for side in (first, second) for n in needed([side], known)))
    graphs = [graph_of([side], free) for side in (first, second)]
    return control.cond(condition, graphs[0], graphs[1], fitting_branches(graphs, free, condition))[0]


def _loops(node: Node, below: Mapping[Node, Classes]) -> list[tuple[str, list[str]]]:
    """Return the operations of a value, with the dtypes that these compute in."""
    capture = context.current()
    safe = set() if capture is None else capture.attempts.safe
    inside = topological([node], stop=lambda n: n in below or n in safe)
    own = [n for n in inside if n not in below and n not in safe and isinstance(n.op, Pointwise) and n.op is not ASTYPE]
    return [(n.op.name, [a.type.dtype.str for a in n.args]) for n in own]


def _several(below: Mapping[Node, Classes]) -> str:
    return _or(sorted(next(iter(below.values())).types, key=str))


def _or(types: Sequence[Type]) -> str:
    told = [f"Python's {t.dtype}" if t.form == "python" else str(t) for t in types]
    return " or ".join(dict.fromkeys(told))


def _unlike(what: str) -> Exception:
    return UnlikeDTypesError(what, "Convert it to one type: np.float64(…), float(…).")


hooks.by_class = recorded
