"""Small operations on known values, which NumPy computes at once, without closing a graph."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tensormagic import residence
from tensormagic.backend.numpy_tier import reference
from tensormagic.capture.errors import repeated_warnings
from tensormagic.ir.graph import check
from tensormagic.ir.node import Node
from tensormagic.ir.size import Atom, Size, Symbol, evaluate, nodes_of
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.leaf import INPUT, SIZE
from tensormagic.session import kept
from tensormagic.transform.values import Parts, parted

FEW, SMALL = (
    32,
    10_000,
)  # nodes that NumPy computes one by one, and their elements: above these, compiled code is worthwhile
_PLAIN = {"pointwise", "fold", "move", "contract"}
_INDICES = {POSITION, REQUIRE, SIZE}  # ops through which data-dependent indices pass


def by_numpy(node: Node) -> Any:
    """Return the value of one small operation on known values, or None if it is more than that, or NumPy warns or raises."""
    try:
        todo = _few(node)
        if not todo:
            return None
        there = {a: leaf_value(a) for n in todo for a in n.needs if a not in todo}
        if (values := kept.values.table()).absorbed and parted([node], list(there), Parts, values):
            return None
        table = dict(there)

        def known(a: Atom) -> int:
            return int(a.hint if isinstance(a, Symbol) else table[a])  # type: ignore[arg-type]

        def size(s: Size) -> int:
            return s if isinstance(s, int) else evaluate(s, known)

        with np.errstate(all="raise", under="ignore"):
            for n in todo:
                for guard in n.op.guards(n) if n.sized_by else ():
                    check(guard, known)
                table[n] = n.op.evaluate(n, [table[a] for a in n.args], size)
    except Exception:  # noqa: BLE001 (what raises or warns does so where lines are known)
        return None
    value = table[node]
    values.inherit(node, there)
    repeated_warnings.follow([node], there)
    return reference.owned([value], list(there.values()))[0] if isinstance(value, np.ndarray) else value


def reads_device(node: Node) -> bool:
    """Return whether a value is computed from values that belong on the device, or from more than a few."""
    tables = kept.values.near()
    pending, seen = [node], {node}
    while pending:
        part = pending.pop()
        known = [table[part] for table in tables if part in table]
        if any(map(residence.stays, known)):
            return True
        fresh = [] if known else [n for n in part.needs if n not in seen]
        seen.update(fresh)
        pending += fresh
        if len(seen) > 4 * FEW:
            return True
    return False


def _few(node: Node) -> list[Node] | None:
    """Return the uncomputed nodes that ``node`` needs, in order, or None if there is more than one small operation among them.

    Moves and stores do not count, nor does anything between integers and booleans: no rule makes these more accurate.
    """
    found: set[Node] = set()
    there = kept.values.here()
    pending = [node]
    operations = elements = 0
    while pending:
        n = pending.pop()
        if n in found or not n.needs or n in there:
            continue
        kind: str = n.op.kind
        moves = kind == "move" or (kind == "update" and n.op.picks)
        if not moves and kind not in _PLAIN and n.op not in _INDICES:
            return None
        found.add(n)
        operations += not moves and any(a.type.inexact for a in (n, *n.args))
        elements += math.prod([kept.number(s) for s in n.type.shape])
        if len(found) > FEW or operations > 1 or elements > SMALL:
            return None
        pending += n.needs
    return sorted(found, key=_age)


_age = operator.attrgetter("serial")  # nodes are made after those they need


def read_from(node: Node) -> list[Node]:
    """Return uncomputed small arrays of which ``node`` reads a part: each is computed once, instead of for each part.

    A data-dependent size comes first. For a number computed from parts, only arrays count that no rule makes more
    accurate together with it: integers, and results of library calls. A comparison uses the array's values as they
    are.
    """
    found: dict[Node, None] = {}
    asked = {node, *(node.args if node.op.kind == "pointwise" and node.type.dtype == bool else ())}
    there = kept.values.here()
    pending, iterations = [node], 0
    while pending and iterations < FEW:
        part, iterations = pending.pop(), iterations + 1
        whole = part
        while whole.op.kind == "move" and len(whole.args) == 1 and whole not in there:
            pending += whole.sized_by
            whole = whole.args[0]
        if whole in there or len(whole.types) > 1:
            continue
        if _elements(whole) == 1:
            pending += whole.needs
        elif whole is not part and (part in asked or _stays(whole)) and not any(map(_is_large, whole.args)):
            found.update(dict.fromkeys(_missing(part, whole)))
    return list(found)


def _missing(part: Node, whole: Node) -> list[Node]:
    """Return what must be computed before a part of an array: the array's size and, if it is small, the array."""
    there = kept.values.here()
    unknown = [a for s in whole.type.shape for a in nodes_of(s) if a not in there]
    return unknown or [whole] * (bool(whole.args) and _elements(part) < _elements(whole) <= SMALL)


def _elements(node: Node) -> float:
    """Return the number of elements; infinite if it depends on uncomputed data."""
    try:
        return math.prod([kept.number(s) for s in node.type.shape])
    except (KeyError, TypeError):
        return math.inf


def _is_large(node: Node) -> bool:
    return len(node.types) == 1 and SMALL < _elements(node) < math.inf


def _stays(node: Node) -> bool:
    return node.op.kind == "opaque" or not node.type.inexact


def leaf_value(node: Node) -> Any:
    """Return the value of a node that is computed, or has no operands."""
    known = kept.values.here().get(node)
    if known is not None:
        return residence.hosted(known, node) if type(known) is residence.Resident else known
    return residence.hosted(kept.held(node), node) if node.op is INPUT else node.op.evaluate(node, (), kept.number)
