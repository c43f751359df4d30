"""What a derivative reads of the values before it: the cut between a graph and the cotangents that are pulled through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tensormagic.ir.node import Node, as_size, substitute, topological
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.size import substitute as substitute_size

_CHEAP = {
    *("add", "subtract", "multiply", "negative", "square", "absolute", "positive", "where", "astype"),
    *(
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_not",
    ),
    *("maximum", "minimum", "sign", "real", "imag", "conj"),
}
_DEPTH = 4
"""How many cheap ops are computed again, at most, to save a value less."""


def residuals(outputs: Sequence[Node], linear: Iterable[Node], given: Iterable[Node]) -> list[Node]:
    """The nodes to save, so that ``outputs`` follow from these, from what is ``given`` and from what they are linear in.

    Parameters
    ----------
    outputs
        Cotangents, built of ``linear`` stand-ins and of nodes of the graph that is differentiated.
    linear
        The stand-ins for the cotangents that come in.
    given
        What is there anyway; what follows from it alone is computed again.
    """
    order = topological(outputs)
    moving = set(linear)
    known = set(given)
    for n in order:
        if any(a in moving for a in n.needs):
            moving.add(n)
        elif n not in known and (all(a in known for a in n.needs) if n.needs else _is_leaf(n)):
            known.add(n)
    read = dict.fromkeys(a for n in order if n in moving for a in n.needs if a not in moving)
    read.update(dict.fromkeys(n for n in outputs if n not in moving))
    chosen: dict[Node, None] = {}
    for n in read:
        _choose(n, known, chosen)
    place = {n: k for k, n in enumerate(order)}
    saved = dict.fromkeys(sorted(chosen, key=lambda n: place.get(n, len(place))))
    for n in list(saved):
        rest = known.union(m for m in saved if m is not n)
        if not _is_size(n, saved) and _follows(n, rest, _DEPTH):
            del saved[n]
    return list(saved)


def _is_leaf(node: Node) -> bool:
    """Whether a node without operands is the same at every turn: a constant, a size, an index ramp."""
    return not node.needs and node.op.name not in {"input", "parameter", "seed"}


def _choose(node: Node, known: set[Node], chosen: dict[Node, None]) -> None:
    """Save ``node``, or what it is only a stretched view of; and the integers that its sizes mention."""
    while node not in known and node.op.name in {"broadcast", "reshape", "transpose", "form"}:
        for size in node.sized_by:
            _choose(size, known, chosen)
        node = node.args[0]
    if node in known or node in chosen:
        return
    chosen[node] = None
    for t in node.types:
        for n in (n for s in t.shape for n in nodes_of(s)):
            _choose(n, known, chosen)


def _is_size(node: Node, saved: Iterable[Node]) -> bool:
    return any(node in nodes_of(s) for n in saved for t in n.types for s in t.shape)


def _follows(node: Node, known: set[Node], depth: int) -> bool:
    """Whether ``node`` is cheap to compute from what is known."""
    if node in known:
        return True
    cheap = node.op.name in _CHEAP or getattr(node.op, "kind", "") == "move"
    return cheap and depth > 0 and bool(node.needs) and all(_follows(a, known, depth - 1) for a in node.needs)


def restored(
    outputs: Sequence[Node],
    saved: Sequence[Node],
    read: Callable[[int, tuple[Size, ...]], Node],
    known: Mapping[Node, Node] | None = None,
) -> list[Node]:
    """``outputs`` over what was saved.

    Parameters
    ----------
    outputs
        Nodes of the graph that saved.
    saved
        What it saved.
    read
        ``read(k, shape)``: value number ``k``, whose shape that is now.
    known
        What else takes the place of a node.
    """
    new = dict(known or {})
    for k, value in sorted(enumerate(saved), key=lambda item: item[1].type.ndim):  # shapes mention integers
        sizes = {
            n: size for s in value.type.shape for n in nodes_of(s) if n in new and (size := as_size(new[n])) is not None
        }
        new[value] = read(k, tuple(substitute_size(s, sizes) for s in value.type.shape))
    return substitute(outputs, new)
