"""Which lazy arrays are still referenced: their values are kept when a graph runs; others are not.

So a variable that each run of a cell computes from itself, ``w = w - rate * grad_w``, starts from a value and not
from all runs before, and the large values that it had before are freed.
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

LONG = 100  # nodes of one request, above which it keeps intermediate values
NEAR = 64  # nodes of a lazy array that are searched for shared ones
MOST_BYTES = 64 << 20  # bytes of one value that is kept, at most
SEARCH_BYTES = 256 << 20  # bytes of values computed before unreferenced ones are looked for
_COSTLY = {"opaque", "contract", "region", "fold"}  # kinds of op that are not fused with what follows
LARGE = 4096  # bytes of a value that is freed; smaller ones cost no more than the nodes that compute them


class Holder(Protocol):
    """A lazy array, the array of a loop's list, or the state of a generator."""

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
    """Return the live objects that can be read; other threads may make more meanwhile."""
    return [one for one, _ in _with_nodes()]


def here() -> list[Holder]:
    """Return the live, readable objects made by this thread."""
    own = get_ident()
    found = [one for reference in _holders.valuerefs() if reference.key[0] == own and (one := reference()) is not None]
    return [one for one in found if _node(one) is not None]


def since(mark: Holder) -> list[Holder]:
    """Return the live, readable objects made by this thread after ``mark``, the latest first."""
    own, found = get_ident(), list[Holder]()
    for reference in reversed(_holders.valuerefs()):
        if reference.key[0] == own and (one := reference()) is not None:
            if one is mark:
                break
            if _node(one) is not None:
                found.append(one)
    return found


def _node(one: Holder) -> Node | None:
    """Return the node of ``one``; None for a view whose base has another shape now, or whose shape was refused.

    The latter live on in tracebacks, and a notebook holds the last traceback.
    """
    try:
        return one.node
    except Exception:  # noqa: BLE001 (whatever the view's own way to its part says of the shape)
        return None


def nodes_held() -> set[Node]:
    """Return the nodes of all live objects that can be read."""
    return {node for _, node in _with_nodes()}


def _with_nodes() -> Iterator[tuple[Holder, Node]]:
    for reference in _holders.valuerefs():
        if (one := reference()) is not None and (node := _node(one)) is not None:
            yield one, node


def worth_keeping(wanted: Sequence[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes of lazy arrays on which ``wanted`` depend and that are worth keeping.

    Between cells these are values bound before the last cell, the last ones on each path. If a cell needs a number
    while it runs, all of them, and what other lazy values start from: the cell goes on from some of them, and may
    need more numbers in each iteration of a loop.

    Parameters
    ----------
    wanted
        The nodes to be computed.
    is_known
        Whether a node has a value already.
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


def worth_computing_together(wanted: Sequence[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """Return the lazy arrays' nodes worth computing together with ``wanted``.

    These are the other results of an operation of which one is wanted, and the result of a loop, product,
    factorisation or sum that is run for the second time for something else: the first time, a rule may still avoid
    it.
    """
    costly = [n for n in topological(wanted, stop=is_known) if n.op.kind in _COSTLY and not is_known(n)]
    again = {n for n in costly if n in _run_before} | {n.args[0] for n in wanted if n.op is ITEM}
    _run_before.update(costly)
    if not again:
        return []
    found = (n for n in nodes_held().difference(wanted) if n in again or (n.op is ITEM and n.args[0] in again))
    return sorted((n for n in found if not is_known(n) and _is_small(n)), key=lambda n: n.serial)


def _shared(held: Node, below: set[Node], is_known: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes worth keeping for a live lazy array: its own, or the nearest ones that it shares with what is wanted.

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
    """Return whether a node was built outside the newest run of a cell; within a cell, intermediate values stay fused."""
    return not newest or any(s.run != newest for s in site.of(node))


def unneeded_large_values(values: Mapping[Node, Any], wanted: Iterable[Node]) -> list[Node]:
    """Return the nodes whose large values can be freed: no lazy array, and no uncomputed node that one depends on, needs them.

    A gradient that goes back through them computes them again.

    Parameters
    ----------
    values
        The values that are kept.
    wanted
        The nodes about to be computed.
    """
    ends = [*wanted, *nodes_held()]
    needed = set(topological(ends, stop=values.__contains__))
    return [n for n, v in list(values.items()) if n not in needed and n.args and is_large(v)]


def is_large(value: Any) -> bool:
    """Return whether a value takes more memory than the nodes that compute it."""
    return getattr(value, "nbytes", 0) >= LARGE
