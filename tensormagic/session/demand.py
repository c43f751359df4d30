"""Demand: the graph of requested nodes is closed, run by one program on the tier that is ready, and its values are kept.

Knows no notebook.
"""

from __future__ import annotations

import time
from collections.abc import MutableMapping, Sequence
from contextlib import nullcontext
from functools import cache as cached
from functools import partial
from typing import Any

import numpy as np

from tensormagic import residence
from tensormagic.backend.cuda.device import in_use
from tensormagic.capture import context, limits
from tensormagic.capture.errors import errstate, floating, repeated_warnings
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values import live_values
from tensormagic.config import config
from tensormagic.forms import Forms, find
from tensormagic.ir import site
from tensormagic.ir.closing import Closed
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import check
from tensormagic.ir.node import Node
from tensormagic.ir.size import Atom, Size, Symbol, nodes_of
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.leaf import CONSTANT, INPUT
from tensormagic.session import kept, small
from tensormagic.session.closing import absorbed_in, close_over
from tensormagic.session.programs import executable, lock
from tensormagic.transform.rewriting import own_rules
from tensormagic.transform.values import absorbed, parted


def value_of(leaf: Node) -> Any:
    """Return the value of a graph's leaf on the host."""
    return residence.hosted(_held(leaf), leaf)


def place(node: Node) -> None:
    """Compute ``node`` and also put its value on the device."""
    have([node])
    there = kept.values.here()
    held = residence.kept(node, there[node], there)
    if isinstance(held, residence.Resident):
        held.device()
        held.stays = True


def shape_of(leaf: Node) -> tuple[int, ...]:
    """Return the shape of a leaf's value, wherever that is stored."""
    return np.shape(_held(leaf))


def stays(leaf: Node) -> bool:
    """Return whether a leaf's value belongs on the device."""
    return residence.stays(_held(leaf))


def _held(leaf: Node) -> Any:
    """Return a leaf's value where it is stored, recomputed if it was dropped."""
    found = kept.held(leaf)
    if found is None:
        have([leaf])
        found = kept.values.here()[leaf]
    return found


def compute(nodes: Sequence[Node], names: Sequence[str] = ()) -> list[Any]:
    """Return the values of ``nodes`` on the host, computed in one run; ``names`` are the user's names, for messages."""
    have(nodes)
    found = [*map(kept.values.here().__getitem__, nodes)]
    if in_use:
        called = [*names, *("" for _ in nodes[len(names) :])]
        return [residence.hosted(v, n, name) for v, n, name in zip(found, nodes, called, strict=True)]
    return found


def have(nodes: Sequence[Node]) -> None:
    """Compute ``nodes`` in one run; each is computed once and kept as long as its node lives."""
    limits.asked(context.current())
    if kept.coming:
        kept.wait_for(nodes)
    with errstate.later():
        _have(nodes)


def _have(nodes: Sequence[Node]) -> None:
    with lock:
        kept.let_go(nodes)
        there = kept.values.here()
        pending = []
        for node in dict.fromkeys(nodes):
            if node in there:
                repeated_warnings.again(node)
                continue
            if node.op is INPUT or node.op is CONSTANT:
                there[node] = kept.freeze(_held(node) if node.op is INPUT else small.leaf_value(node))
            else:
                pending.append(node)
        if len(pending) == 1 and (found := _at_once(pending[0])) is not None:
            there[pending.pop()] = kept.freeze(found)
        if pending:
            for node, result in zip(pending, _run(pending, there), strict=True):
                there[node] = kept.freeze(result)


def _run(pending: list[Node], there: MutableMapping[Node, Any]) -> list[Any]:
    """Return the values of ``pending``, computed by one program; nodes on the way that are worth keeping are added to ``pending``."""
    again = all(any(n in table for table in kept.values.every()) for n in pending)  # at another level
    pending += live_values.worth_computing_together(pending, kept.is_near if in_use else there.__contains__)
    closed, values, sizes = _by_form(pending) or bound(pending)
    if len(closed.mapping) > live_values.LONG and (passed := live_values.worth_keeping(pending, there.__contains__)):
        pending += passed
        closed, values, sizes = bound(pending)
    if config.device == "cpu" and not config.own_devices and any(map(residence.stays, values)):
        # computations on values of the device run on the device, unless a block sets another one
        with config.using(device="gpu", transfers=residence.policy(values)):
            _have(pending)
            found = [kept.values.here()[n] for n in pending]
        kept.values.adopt(pending)
        return found
    program = executable(closed.graph)
    begun = time.thread_time()
    with (
        floating.naming_lines(lens := cached(lambda: site.Lens(closed.mapping))),
        repeated_warnings.kept_for(pending, closed.leaves),
        silently() if again else nullcontext(),
    ):
        if program.device != "cpu" and not floating.raises() and program.is_for_device(sizes, values):
            names = [residence.name_of(leaf) for leaf in closed.leaves]
            given = [residence.kept(leaf, v, there) for leaf, v in zip(closed.leaves, values, strict=True)]
            results = program.resident(given, names, lambda node: lens().of(node))
        else:
            values = [residence.hosted(v, leaf) for leaf, v in zip(closed.leaves, values, strict=True)]
            results = (program.by_numpy if floating.raises() else program.here)(sizes, *values)
    limits.ran(context.current(), time.thread_time() - begun)
    kept.reasons.update((node, program.why) for node in pending if program.device == "auto")
    own, table = absorbed(closed, program.rewritten), kept.values.table()
    for node in pending:
        table.inherit(node, closed.leaves, own)
    return results


def _at_once(node: Node) -> Any:
    """Return the value of a small operation on known values, or on elements of small arrays, or None if a graph must be closed."""
    if (
        config.tier == "numba"
        or config.device != "cpu"
        or own_rules(config.math)
        or (in_use and small.reads_device(node))
    ):
        return None
    for _ in range(small.FEW):
        found = small.by_numpy(node)
        if found is not None or not (first := small.read_from(node)):
            return found
        compute(first)
    return None


def number_of(size: Size) -> int:
    """Return the number of a size: seen at capture, or computed."""
    if nodes_of(size):
        compute(nodes_of(size))
    return kept.number(size)


def bound(nodes: Sequence[Node]) -> tuple[Closed, list[Any], dict[Any, int]]:
    """Return the graph of ``nodes``, the values of its parameters, and the sizes; it is cut at known values."""
    closed = close_over(nodes)
    values = [_held(leaf) for leaf in closed.leaves]
    for guard in closed.before:
        check(guard, _extent)
    try:
        return closed, values, closed.graph.bind([np.shape(v) for v in values])
    except GuardError:  # a value of half the size of an input does not determine the input's size
        closed = close_over(nodes, use_values=False)
        values = [_held(leaf) for leaf in closed.leaves]
        return closed, values, closed.graph.bind([np.shape(v) for v in values])


_forms = Forms()


def _by_form(nodes: Sequence[Node]) -> tuple[Closed, list[Any], dict[Any, int]] | None:
    """Return :func:`bound`'s result for a value that an iteration run by Python asks for, if its graph has a known form, or None."""
    if len(nodes) > 1 or not context.is_driven() or config.device != "cpu" or in_use:
        return None
    table = kept.values.table()
    found = find(nodes[0], table.there, _held, kept.number)
    if found is None or any(n in table.absorbed for n in found.values):
        return None
    known = _forms.close(found)
    if known is None:
        return None
    closed = known.closed(found)
    if parted(nodes, closed.leaves, partial(absorbed_in, closed), table):
        return None
    values = [found.values[leaf] for leaf in closed.leaves]
    try:
        return closed, values, closed.graph.bind([np.shape(v) for v in values])
    except GuardError:
        return None


def _extent(a: Atom) -> int:
    """Return the number of a symbol at capture, or of a node."""
    return int(a.hint if isinstance(a, Symbol) else compute([a])[0])  # type: ignore[arg-type]


def _as_built(node: Node) -> None:
    """Compute a node as soon as code has built it, unless it depends on a region's arguments, which have no values.

    Operands built earlier were computed then; an operand that is built again raises its errors again.
    """
    there = kept.values.here()
    before = there.pop(node, None) if node.op is not INPUT and node.op is not CONSTANT else None
    try:
        have(context.built_before(node, there.__contains__))
        _have([node])
    except GuardError:
        return
    finally:
        if before is not None:
            there[node] = before


context.at_once.append(_as_built)
hooks.is_on_device = kept.is_away
hooks.compute = compute
hooks.is_computed = kept.is_computed
