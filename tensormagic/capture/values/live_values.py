"""Which lazy arrays are still referenced: their values are worth keeping when a graph runs; others are not kept.

So a variable that each run of a cell computes from itself, ``w = w - rate * grad_w``, starts from a value and not from all runs before,
and the large values that it had before are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import get_ident
from typing import Any, Protocol
from weakref import WeakSet, WeakValueDictionary

from tensormagic.capture import context
from tensormagic.capture.python import usercode
from tensormagic.ir import site
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import hint
from tensormagic.ops.opaque import ITEM

LONG = 100  # nodes of one demand, above which it keeps values on the way
NEAR = 64  # nodes of a lazy array that are searched for shared ones
MOST_BYTES = 64 << 20  # of one value that is kept
SEARCH_BYTES = 256 << 20  # of values that are computed before it is looked for those that nobody has any more
_COSTLY = {"opaque", "contract", "region", "fold"}  # kinds of op that are not one pass with what follows
LARGE = 4096  # bytes of a value that is let go; smaller ones cost no more than what says how they are computed


class Holder(Protocol):
    """A lazy array, the array that a loop's list is, or the state of a generator."""

    @property
    def node(self) -> Node: ...


_holders: WeakValueDictionary[tuple[int, int], Holder] = (
    WeakValueDictionary()
)  # by thread and identity: arrays compare by element
_run_before = WeakSet[Node]()
"""Costly operations that a value has been computed through, and whose results were not kept."""


def hold(one: Holder) -> None:
    """Register ``one``, with the thread that made it."""
    _holders[get_ident(), id(one)] = one


def held() -> list[Holder]:
    """Live objects that can be read; other threads may make more meanwhile."""
    return [one for one, _ in _with_nodes()]


def here() -> list[Holder]:
    """Live, readable objects made by this thread."""
    own = get_ident()
    found = [one for reference in _holders.valuerefs() if reference.key[0] == own and (one := reference()) is not None]
    return [one for one in found if _node(one) is not None]


def since(mark: Holder) -> list[Holder]:
    """Live, readable objects made by this thread after ``mark``, the latest first."""
    own, found = get_ident(), list[Holder]()
    for reference in reversed(_holders.valuerefs()):
        if reference.key[0] == own and (one := reference()) is not None:
            if one is mark:
                break
            if _node(one) is not None:
                found.append(one)
    return found


def _node(one: Holder) -> Node | None:
    """The node of ``one``; None for a view whose base has another shape now, or whose shape was refused.

    The latter live on in tracebacks, and a notebook holds the last traceback.
    """
    try:
        return one.node
    except Exception:  # noqa: BLE001 (whatever the view's own way to its part says of the shape)
        return None


def nodes_held() -> set[Node]:
    """What those are that can be read."""
    return {node for _, node in _with_nodes()}


def _with_nodes() -> Iterator[tuple[Holder, Node]]:
    for reference in _holders.valuerefs():
        if (one := reference()) is not None and (node := _node(one)) is not None:
            yield one, node


def on_the_way(wanted: Sequence[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """The nodes of lazy arrays on which ``wanted`` depend and that are worth keeping.

    Between cells these are values bound before the last cell, the last ones on each path. If a cell asks for a number
    while it runs, all of them, and what other lazy values start from: the cell goes on from some of them, and may ask
    again in each iteration of a loop.

    Parameters
    ----------
    wanted
        What is to be computed.
    is_known
        Which nodes have values already.
    """
    nodes = nodes_held().difference(wanted)
    stops = {n for n in nodes if not is_known(n) and _is_small(n)}
    if context.current() is not None:
        below = set(topological(wanted, stop=is_known))
        return [*dict.fromkeys(n for held in stops for n in _shared(held, below, is_known))]
    newest = usercode.newest_run()
    stops = {n for n in stops if _is_older(n, newest)}
    order = topological(wanted, stop=lambda n: n in stops or is_known(n))
    return [n for n in order if n in stops]


def beside(wanted: Sequence[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """Values of lazy arrays worth computing together with ``wanted``.

    These are the other results of an operation of which one is wanted, and the result of a loop, product, factorisation
    or sum that is run for the second time for something else: the first time, a rule may still avoid it.
    """
    costly = [n for n in topological(wanted, stop=is_known) if n.op.kind in _COSTLY and not is_known(n)]
    again = {n for n in costly if n in _run_before} | {n.args[0] for n in wanted if n.op is ITEM}
    _run_before.update(costly)
    if not again:
        return []
    found = (n for n in nodes_held().difference(wanted) if n in again or (n.op is ITEM and n.args[0] in again))
    return sorted((n for n in found if not is_known(n) and _is_small(n)), key=lambda n: n.serial)


def _shared(held: Node, below: set[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """What is worth keeping of a live lazy array: itself, or the nearest nodes that it shares with what is wanted.

    A slice of an array that was stored into is followed through the stored value, not through the array.
    """
    if held in below or (held.op is ITEM and held.args[0] in below):  # a draw gives the next state, too
        return [held]
    found: dict[Node, None] = {}
    seen, pending = {held}, [held]
    for node in pending:
        for n in node.needs if len(seen) < NEAR else ():
            if n in seen or is_known(n):
                continue
            seen.add(n)
            if n not in below:
                pending.append(n)
            elif _is_small(n):
                found[n] = None
    return [*found]


def _is_small(node: Node) -> bool:
    size = hint(node.type.size) if node.args and len(node.types) == 1 else None
    return size is not None and size * node.type.dtype.itemsize <= MOST_BYTES


def _is_older(node: Node, newest: int) -> bool:
    """Whether a node was built outside the newest run of a cell; within a cell, intermediate values stay fused."""
    return not newest or any(s.run != newest for s in site.of(node))


def let_go(values: Mapping[Node, Any], wanted: Iterable[Node]) -> list[Node]:
    """The nodes with large values that no lazy array needs, counting those from which uncomputed ones are computed.

    A gradient that goes back through them computes them again.

    Parameters
    ----------
    values
        The values that are kept.
    wanted
        What is about to be computed.
    """
    ends = [*wanted, *nodes_held()]
    needed = set(topological(ends, stop=values.__contains__))
    return [n for n, v in list(values.items()) if n not in needed and n.args and is_large(v)]


def is_large(value: Any) -> bool:
    """Whether a value takes more memory than how it is computed."""
    return getattr(value, "nbytes", 0) >= LARGE
