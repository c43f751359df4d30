"""The values that a derivative reads of the differentiated graph, and a small choice of them to save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Size, atom, evaluate, hint, nodes_of, product
from tensormagic.ir.substituting import substitute as substitute_size
from tensormagic.ir.type import Type
from tensormagic.ops.op import is_cheap
from tensormagic.ops.reverse.cut import cheapest_cut

_USUAL = 64  # assumed for an unknown size


def residuals(
    outputs: Sequence[Node], linear: Iterable[Node], given: Iterable[Node], sizes: Mapping[Any, Size] | None = None
) -> list[Node]:
    """Return the nodes to save, so that ``outputs`` can be computed from them, from ``given`` and from ``linear``.

    It is the smallest choice from which the rest follows by cheap ops.

    Parameters
    ----------
    outputs
        Cotangents, built of ``linear`` stand-ins and of nodes of the differentiated graph.
    linear
        The stand-ins for incoming cotangents.
    given
        Values available anyway; what depends on them alone is recomputed.
    sizes
        Sizes outside, which say how large they were at capture.
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
    for n in cheapest_cut(
        [n for n in read if n not in known],
        lambda n: [a for a in n.needs if a not in known] if _is_cheap(n) else None,
        lambda n: _weight(n, sizes or {}),
    ):
        _choose(n, known, chosen)
    place = {n: k for k, n in enumerate(order)}
    return sorted(chosen, key=lambda n: place.get(n, len(place)))


def _is_cheap(node: Node) -> bool:
    """Return whether a node is cheap enough to be recomputed."""
    return bool(node.needs) and (is_cheap(node.op) or node.op.kind == "move")


def _weight(node: Node, sizes: Mapping[Any, Size]) -> float:
    """Return the approximate number of bytes of a value."""
    return float(sum(bytes_of(t, sizes) for t in node.types))


def bytes_of(t: Type, sizes: Mapping[Any, Size]) -> int:
    """Return the approximate number of bytes of a value of type ``t``, by the sizes seen at capture if there are any."""
    extent = substitute_size(product(t.shape), sizes)
    return t.dtype.itemsize * max(1, evaluate(extent, lambda a: hint(atom(a)) or _USUAL))


def _is_leaf(node: Node) -> bool:
    """Return whether a node without operands is the same at every iteration: a constant, a size, an index ramp."""
    return not node.needs and node.op.name not in {"input", "parameter", "seed"}


def _choose(node: Node, known: set[Node], chosen: dict[Node, None]) -> None:
    """Save ``node``, and the integers its sizes mention."""
    if node in known or node in chosen:
        return
    chosen[node] = None
    for t in node.types:
        for n in (n for s in t.shape for n in nodes_of(s)):
            _choose(n, known, chosen)


def restored(
    outputs: Sequence[Node],
    saved: Sequence[Node],
    read: Callable[[int, tuple[Size, ...]], Node],
    known: Mapping[Node, Node] | None = None,
) -> list[Node]:
    """Return ``outputs`` in terms of saved values.

    Parameters
    ----------
    outputs
        Nodes of the graph that saved.
    saved
        The nodes it saved.
    read
        ``read(k, shape)``: saved value number ``k``, of this shape.
    known
        Other replacements of nodes.
    """
    new = dict(known or {})
    for k, value in sorted(
        enumerate(saved), key=lambda item: item[1].type.ndim
    ):  # larger values last: their shapes mention integers
        sizes = {
            n: size for s in value.type.shape for n in nodes_of(s) if n in new and (size := as_size(new[n])) is not None
        }
        new[value] = read(k, tuple(substitute_size(s, sizes) for s in value.type.shape))
        site.inherit(new[value], value)
    return site.substituted(outputs, new)
