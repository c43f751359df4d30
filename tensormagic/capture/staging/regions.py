"""Regions made of traced nodes: the operands they take from outside, their graphs, and the types that their values settle on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.numbers.operands import as_float
from tensormagic.capture.staging.trials.needs_python import NeedsPython, UnlikeDTypesError, UnlikeShapesError
from tensormagic.capture.values.equal_sizes import related
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Dim, Size, Symbol, atom, atoms, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type, python_kind
from tensormagic.ops.effects import failing
from tensormagic.ops.effects.checks import require
from tensormagic.ops.effects.telling import has_effect
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, INPUT, constant, constant_value, parameter
from tensormagic.ops.move import broadcast
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.tape import empty_tape
from tensormagic.ops.scalars import scalar


def around(
    results: Sequence[Node], stand_ins: Sequence[Node], *, runs: bool = True, known: Collection[Node] = ()
) -> list[Node]:
    """Return the nodes that ``results`` need beside ``stand_ins``: computed outside of the region, and passed in.

    If the region may not run, nodes that may raise stay inside (``runs``); but what is printed before it, and all that
    this needs, is printed in any case, and what was ``known`` before has been computed by then.
    """
    own = set(stand_ins)
    order = topological(results, stop=lambda n: n in own)
    inside = set(own)
    for node in order:
        if any(a in inside for a in node.needs):
            inside.add(node)
    if not runs and any(failing.may_fail(n) for n in order if n not in inside):
        before = set(topological([*known, *(n for n in order if n not in inside and has_effect(n))]))
        for node in order:
            if node not in before and (any(a in inside for a in node.needs) or failing.may_fail(node)):
                inside.add(node)
    return _handed_in(results, order, inside, own)


def below(results: Sequence[Node], known: set[Node]) -> list[Node]:
    """Return the nodes among ``known`` and the inputs that ``results`` need: all other nodes are computed inside the region."""
    order = topological(results, stop=lambda n: n in known or (n.op is ITEM and n.args[0] in known))
    inside = {n for n in order if n not in known and n.op is not INPUT and not (n.op is ITEM and n.args[0] in known)}
    return _handed_in(results, order, inside, set())


def effects_before(token: Node) -> set[Node]:
    """Return the printing and checking nodes that the effects token ``token`` depends on: no region does them again."""
    found, seen, pending = set[Node](), set[Node](), [token]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            found |= {node} if has_effect(node) else set()
            pending += [n for n in node.needs if len(n.types) > 1 or n.types == token.types]
    return found


def _handed_in(results: Sequence[Node], order: Sequence[Node], inside: set[Node], own: set[Node]) -> list[Node]:
    used = [a for n in order if n in inside and n not in own for a in n.needs]
    free = [n for n in dict.fromkeys([*used, *results]) if n not in inside and n.op is not CONSTANT]
    bound = {bare_symbol(s) for n in (*own, *free) for s in n.type.shape}
    bounds = [v for n in free if (v := n.params.get("within"))]  # of a loop's index, used in a branch
    needed = dict.fromkeys(a for n in order if n in inside for a in n.symbols) | dict.fromkeys(_symbols_in(bounds))
    return free + [broadcast(constant(False), (atom(a),)) for a in needed if a not in bound]


def _symbols_in(values: Iterable[Any]) -> Iterable[Symbol]:
    """Yield the symbols in the sizes of nested tuples of values."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Dim):
            yield from (a for a in atoms(value) if isinstance(a, Symbol))
        elif isinstance(value, tuple):
            stack += value


def graph_of(results: Sequence[Node], leaves: Sequence[Node]) -> Graph:
    """Return the graph that computes ``results`` from ``leaves``."""
    cut = set(leaves)
    closed = close(results, lambda n: n in cut, parameter, leaves=leaves)
    if closed.before:
        raise NeedsPython(
            "sizes that a branch or a loop reads from outside depend on data in a way that cannot be checked there",
            "Use them outside, or use arrays of known sizes.",
        )
    return closed.graph


def fitting(graph: Graph, operands: Sequence[Node], runs: Node | None, first: int = 0) -> list[Node]:
    """Return the operands of a region, with checks of their data-dependent sizes against those that its graph was made for.

    ``runs`` is the condition under which the graph runs (None for always); its ``first`` parameters take no operand.
    """
    symbols: dict[Any, Size] = {}
    owners: dict[Any, int] = {}
    checked, open_sizes = list(operands), list[tuple[int, Size, Size]]()
    for k, (p, operand) in enumerate(zip(graph.parameters[first:], operands, strict=True)):
        for inner, outer in zip(p.type.shape, operand.type.shape, strict=True):
            symbol = bare_symbol(inner)
            if symbol is not None and symbol not in symbols:
                symbols[symbol], owners[symbol] = outer, k
            else:
                open_sizes.append((k, inner, outer))
    relations = [(k, (substitute(s, symbols), "==", t)) for k, s, t in open_sizes if owners.keys() >= set(atoms(s))]
    for left, relation, right in graph.guards:
        own = {*atoms(left), *atoms(right)}
        if own and owners.keys() >= own:
            k = max(owners[a] for a in own)
            relations.append((k, (substitute(left, symbols), relation, substitute(right, symbols))))
    for k, guard in relations:
        if guard[0] != guard[2] and (nodes_of(guard[0]) or nodes_of(guard[2])):
            checked[k] = related(checked[k], guard, runs)
    return checked


def fitting_branches(ways: Sequence[Graph], operands: Sequence[Node], predicate: Node) -> list[Node]:
    """Return the operands of a ``cond``, with checks of their sizes for the branch that is taken."""
    return fitting(ways[1], fitting(ways[0], operands, predicate), scalar.logical_not(predicate))


def of_type(node: Node, t: Type) -> Node:
    """Return ``node`` converted to the type ``t``."""
    if t.form == "tape":
        return node
    if t.dtype.kind == "f":
        node = as_float(node, "is or may become a float, depending on the data, where Python goes on")
    cast = broadcast(astype(node, t.dtype), t.shape)
    return cast if t.shape else to_form(cast, t.form)


def settled(start: Node, t: Type, ran: Node, what: str) -> Node:
    """Return the start value of a carry of type ``t``; raise at run time if the loop has not ``ran`` and ``t`` cannot hold the number."""
    found = of_type(start, t)
    own = start.type.dtype
    if t.shape or t.form == "tape" or np.can_cast(own, t.dtype, "safe"):
        return found
    value = constant_value(start)
    if value is None:
        kept = scalar.logical_or(scalar.equal(astype(found, own), start), scalar.not_equal(start, start))
    elif _holds(t.dtype, value):
        return found
    else:
        kept = constant(False)
    why = f"a {own} that does not fit {t.dtype}, and an iteration, of which there may be none, makes it {t.dtype}"
    said = f"{what} begins as {why}. Begin with one"
    return require(found, scalar.logical_or(ran, kept), said, "promotion")


def _holds(dtype: np.dtype[Any], value: np.ndarray[Any, Any]) -> bool:
    """Return whether a dtype can hold a number exactly."""
    if value.dtype.kind == "c" and dtype.kind != "c":
        return not value.imag.any() and _holds(dtype, value.real)
    if dtype.kind == "c" and value.dtype.kind != "c":
        dtype = dtype.type(0).real.dtype
    with np.errstate(all="ignore"):
        back = value.astype(dtype).astype(value.dtype)
    return np.array_equal(back, value, equal_nan=value.dtype.kind in "fc")


def may_be(dtype: np.dtype[Any], node: Node) -> bool:
    """Return whether ``node`` is a constant number that a dtype can hold exactly."""
    value = constant_value(node)
    return value is not None and _holds(dtype, value)


def beside(node: Node, other: Type) -> Type:
    """Return the type of a value that is merged with one of type ``other``: a constant Python number takes the dtype of NumPy's."""
    own = node.type
    value = constant_value(node) if own.form == "python" != other.form and not other.shape else None
    if value is None:
        return own
    dtype = np.result_type(other.dtype, python_kind(own)())
    return Type(dtype, (), "python") if _holds(dtype, value) else own


def zeros_of(t: Type) -> Node:
    """Return zeros of a type, as a placeholder for a value that nobody reads."""
    return empty_tape(t) if t.form == "tape" else of_type(constant(t.dtype.type(0)), t)


def common_type(what: str, left: Type, right: Type) -> Type:
    """Return the type that holds a value of either type; raise UnlikeShapesError if their shapes differ."""
    if len(left.shape) != len(right.shape) or not all(map(same, left.shape, right.shape)):
        raise UnlikeShapesError(f"{what} shapes {show(left.shape)} and {show(right.shape)}")
    form = left.form if left.form == right.form else "scalar"
    return Type(np.result_type(left.dtype, right.dtype), left.shape, form)


def one_type(what: str, left: Type, right: Type, *, promotes: bool = False) -> Type:
    """Return the type of a value that has one of two types, where data decide which.

    Python's numbers promote; other dtypes only if ``promotes``.
    """
    if not promotes and "python" not in {left.form, right.form} and left.dtype != right.dtype:
        raise UnlikeDTypesError(
            f"{what} dtypes {left.dtype} and {right.dtype}, and which one depends on data", "Convert one with astype."
        )
    if left.shape != right.shape and any(nodes_of(s) for s in (*left.shape, *right.shape)):
        raise NeedsPython(
            f"{what} shapes {show(left.shape)} and {show(right.shape)}, which depend on data",
            "Let both have one shape: fill an array of the largest size.",
        )
    try:
        return common_type(what, left, right)
    except UnlikeShapesError as error:
        error.hint = "Which one it is depends on data: let both have one shape."
        raise


def grown_type(label: str, carry: str, start: Type, before: Type, after: Type) -> Type:
    """Return the type of a carry that starts as ``start`` and that an iteration turned from ``before`` into ``after``.

    A Python number takes the type that the iteration gives it; arrays and NumPy's numbers keep theirs.
    """
    if len(before.shape) != len(after.shape) or not all(map(same, before.shape, after.shape)):
        raise UnlikeShapesError(
            f"{label}: {carry} begins with shape {show(before.shape)} and becomes {show(after.shape)}"
        )
    if start.form == "python":
        if after.form == before.form == "python":
            return Type(np.result_type(before.dtype, after.dtype), (), "python")
        return Type(np.result_type(after.dtype, python_kind(start)()), (), "scalar")
    if after.dtype != before.dtype and not (
        after.form == "python" and np.result_type(before.dtype, after.dtype) == before.dtype
    ):
        raise UnlikeDTypesError(
            f"{label}: {carry} begins as {before} and becomes {after}", "Begin with the type that it becomes."
        )
    if before.form == "array" != after.form and not before.shape:  # an operation of arrays without axes gives a number
        return Type(before.dtype, (), "scalar")
    return before
