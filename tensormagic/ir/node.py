"""The one graph representation: an immutable, weakly interned vertex."""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tensormagic.ir import stored
from tensormagic.ir.operation import Bounds, Operation
from tensormagic.ir.size import Atom, Dim, Size, Symbol, atom
from tensormagic.ir.substituting import substitute_in
from tensormagic.ir.type import Type

Params = tuple[tuple[str, Any], ...]
_serial = itertools.count()


def made() -> int:
    """Return how many nodes have been made so far, or a larger number."""
    return next(_serial)


_NONE: Mapping[str, Any] = MappingProxyType({})


class Node:
    """One vertex of a graph: ``op, args, params, type``. Equal nodes are the same object.

    Make nodes with :func:`make`, which interns them. ``sized_by`` are the integer nodes that the sizes among its
    params mention; ``needs`` are these and the operands, which must be computed before it. ``guards`` caches the
    conditions that its op requires, ``below`` the node without its changes of form and checks (None for itself),
    ``sites`` its places in code (:mod:`tensormagic.ir.site`), ``heads`` and ``within`` the results of
    :func:`tensormagic.ir.rewriting.table.heads` and :func:`tensormagic.ir.rewriting.within.within`. ``kept`` caches
    other facts that are often asked for, by the name of who asks.
    """

    __slots__ = (
        "__weakref__",
        "_params",
        "_symbols",
        "args",
        "below",
        "guards",
        "heads",
        "kept",
        "needs",
        "op",
        "param_items",
        "serial",
        "sites",
        "sized_by",
        "type",
        "types",
        "within",
    )

    op: Operation
    args: tuple[Node, ...]
    param_items: Params
    type: Type  # the type of a node with one result
    types: tuple[Type, ...]
    serial: int
    below: Node | None
    heads: tuple[int, int] | None
    within: int | None
    kept: dict[Any, Any] | None
    sites: dict[Any, None] | None
    sized_by: tuple[Node, ...]
    needs: tuple[Node, ...]

    def __init__(self, op: Operation, args: tuple[Node, ...], params: Params, types: tuple[Type, ...]) -> None:
        self.op = op
        self.args = args
        self.param_items = params
        self.types = types
        if len(types) == 1:
            self.type = types[0]
        self._params: Mapping[str, Any] = dict(params) if params else _NONE
        self._symbols: tuple[Symbol, ...] | None = None
        self.guards: tuple[Any, ...] | None = None
        self.serial = next(_serial)
        self.sized_by = _nodes_in(params) if params else ()
        first = args[0] if op.hands_on else None  # cached, because rules ask for it at each look
        self.heads = self.within = self.sites = self.kept = None
        self.below = first if first is None or first.below is None else first.below
        self.needs = tuple(dict.fromkeys((*args, *self.sized_by))) if self.sized_by else args

    def __getattr__(self, name: str) -> Any:
        """Raise TypeError for ``type`` of a node with several results, else AttributeError."""
        if name == "type":
            message = f"{self.op.name} has {len(self.types)} results: take one with item()"
            raise TypeError(message)
        raise AttributeError(name)

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the op, apart from its operands."""
        return self._params

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that the sizes among its params, and those of its types, mention."""
        if self._symbols is None:
            found: dict[Symbol, None] = {}
            pending: list[Any] = [*self._params.values(), *(t.shape for t in self.types)]
            while pending:
                value = pending.pop()
                if type(value) is Dim:
                    found.update((a, None) for a in value.atoms if type(a) is Symbol)
                elif type(value) is tuple:
                    pending += value
            self._symbols = tuple(found)
        return self._symbols

    def __getitem__(self, name: str) -> Any:
        return self._params[name]

    def __repr__(self) -> str:
        return f"<{self.op.name}: {', '.join(map(str, self.types))}>"

    # An integer without axes may be part of a size: for this it has a name for people, an order and bounds.

    def __str__(self) -> str:
        return str(self._params.get("source", self.op.name))

    @property
    def key(self) -> str:
        """A sort key of this node among the atoms of a size."""
        return f"%{self.serial}"

    @property
    def bounds(self) -> Bounds:
        """Bounds of the node's value as sizes, as far as they are known."""
        return self.op.bounds(self)

    # NumPy notation for derivatives and rules. ``==`` stays identity, so that nodes can be keys.
    def __add__(self, other: Any) -> Node:
        return _operators["add"](self, other)

    def __radd__(self, other: Any) -> Node:
        return _operators["add"](other, self)

    def __sub__(self, other: Any) -> Node:
        return _operators["subtract"](self, other)

    def __rsub__(self, other: Any) -> Node:
        return _operators["subtract"](other, self)

    def __mul__(self, other: Any) -> Node:
        return _operators["multiply"](self, other)

    def __rmul__(self, other: Any) -> Node:
        return _operators["multiply"](other, self)

    def __truediv__(self, other: Any) -> Node:
        return _operators["divide"](self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return _operators["divide"](other, self)

    def __pow__(self, other: Any) -> Node:
        return _operators["power"](self, other)

    def __rpow__(self, other: Any) -> Node:
        return _operators["power"](other, self)

    def __neg__(self) -> Node:
        return _operators["negative"](self)

    def __abs__(self) -> Node:
        return _operators["absolute"](self)

    def __lt__(self, other: Any) -> Node:
        return _operators["less"](self, other)

    def __le__(self, other: Any) -> Node:
        return _operators["less_equal"](self, other)

    def __gt__(self, other: Any) -> Node:
        return _operators["greater"](self, other)

    def __ge__(self, other: Any) -> Node:
        return _operators["greater_equal"](self, other)

    def __reduce__(self) -> str:
        message = "nodes are not pickled: print the graph as text, or pickle the value"
        raise TypeError(message)


def _nodes_in(params: Params) -> tuple[Node, ...]:
    found: dict[Node, None] = {}
    pending = [  # facts known about the value are not needed to compute it
        v for k, v in reversed(params) if type(v) in _HOLDING and k != "within"
    ]
    while pending:
        value = pending.pop()
        if type(value) is Dim:
            found.update(dict.fromkeys(value.nodes))
        else:
            pending += [v for v in reversed(value) if type(v) in _HOLDING]
    return tuple(found)


_HOLDING = (tuple, Dim)  # types that may contain nodes


_operators: dict[str, Callable[..., Node]] = {}


def install_operators(operators: Mapping[str, Callable[..., Node]]) -> None:
    """Set the nodes that operators between nodes build; the pointwise ops call this when they are defined."""
    _operators.update(operators)


_Key = tuple[Operation, "tuple[Node, ...]", Params, "Type | None"]
_table: weakref.WeakValueDictionary[_Key, Node] = weakref.WeakValueDictionary()
_made: dict[_Key, weakref.ref[Node]] = _table.data  # type: ignore[attr-defined]
_remove: Callable[[Any], None] = _table._remove  # type: ignore[attr-defined]  # noqa: SLF001 (as its own ``setdefault`` does)


class _Ref(weakref.ref[Node]):
    """A weak reference with a key, like ``weakref.KeyedRef``, but created without a call of Python code."""

    __slots__ = ("key",)
    key: _Key


_lock = threading.RLock()


def _fresh_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


def make(op: Operation, args: Iterable[Node] = (), type: Type | None = None, **params: Any) -> Node:
    """Return the node of ``op`` on ``args``: the existing one, if there is an equal one.

    Parameters
    ----------
    op
        The op; its ``infer`` gives the type, and raises where the operands do not fit.
    args
        Operand nodes.
    type
        The type, for leaves whose type nothing determines.
    params
        Hashable parameters.
    """
    args = tuple(args)
    items = tuple(sorted(params.items()) if len(params) > 1 else params.items())
    key = (op, args, items, type)
    known = _made.get(key)  # like ``get`` of the table itself, which is slow
    found = known() if known is not None else None
    if found is not None:
        return found
    if stored.SEEN:
        stored.check(op, args)
    return _fresh(key, type if type is not None else op.infer(args, params))


def _fresh(key: _Key, inferred: Type | tuple[Type, ...]) -> Node:
    """Return a new node, unless another thread has made it meanwhile."""
    fresh = Node(key[0], key[1], key[2], (inferred,) if isinstance(inferred, Type) else inferred)
    with _lock:
        known = _made.get(key)  # like ``setdefault`` of the table itself, which is slow
        found = known() if known is not None else None
        if found is not None:
            return found
        ref = _Ref(fresh, _remove)
        ref.key = key
        _made[key] = ref
        return fresh


@dataclass(frozen=True)
class Bits:
    """A constant's value, keyed by dtype, shape and bits: ``0.0``, ``-0.0``, ``nan``, ``1`` and ``True`` all differ."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(value: Any) -> Bits:
        """Return the bits of an array or number."""
        array = np.asarray(value)
        return Bits(stored.text_of(array.dtype), array.shape, array.tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        """Return the value as a read-only array."""
        return np.frombuffer(self.data, stored.dtype_of(self.dtype)).reshape(self.shape)

    def __str__(self) -> str:
        return str(self.array().tolist())


# what is asked of ops wherever nodes are read -----------------------------------------------------------------------------


def is_constant(node: Node) -> bool:
    """Return whether a node is an array or number held as bits."""
    return not node.args and "bits" in node.params


def hands_on(node: Node) -> bool:
    """Return whether a node is its first operand unchanged, except that it may be broadcast, in another form, or checked."""
    return node.op.hands_on


def moves(node: Node) -> bool:
    """Return whether a node only moves the elements of its only operand."""
    return node.op.kind == "move" and len(node.args) == 1


def is_check(node: Node) -> bool:
    """Return whether a node is its first operand, checked."""
    return hands_on(node) and not moves(node)


def as_size(node: Node) -> Size | None:
    """Return an integer node of rank 0 as a size, or None for any other node."""
    return _as_size(node, _DEPTH)


_DEPTH = 6
"""How many nested sums and the like of an integer are searched."""


def _as_size(node: Node, depth: int) -> Size | None:
    while "form" in node.params and moves(node):
        node = node.args[0]
    if not node.args and "size" in node.params:
        return node["size"]
    if len(node.types) != 1 or node.type.shape or node.type.dtype.kind not in "iu":
        return None
    if is_constant(node):
        return int(node["bits"].array())
    found = _combined(node, depth) if depth else None
    return atom(node) if found is None else found


def _combined(node: Node, depth: int) -> Size | None:
    """Return a sum, multiple, quotient, minimum or maximum of sizes, in 64 bits, as a size, or None for other nodes."""
    combine: Callable[[Size, Size], Size | None] | None = getattr(node.op, "sizes", None)
    if combine is None or node.type.dtype != np.dtype(np.int64):
        return None
    left, right = (_as_size(a, depth - 1) for a in node.args)
    return None if left is None or right is None else combine(left, right)


def topological(
    roots: Iterable[Node],
    stop: Callable[[Node], bool] | None = None,
    needs: Callable[[Node], Iterable[Node]] = operator.attrgetter("needs"),
) -> list[Node]:
    """Return all nodes that ``roots`` need, each once and after those it needs, in a fixed order.

    Below a node for which ``stop`` holds, nothing is visited.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [*roots]
    stack.reverse()
    while stack:
        node = stack.pop()
        if node is None:  # all that the next node on the stack needs is in the order
            order.append(stack.pop())  # type: ignore[arg-type]
        elif node not in seen:
            seen.add(node)
            below = () if stop and stop(node) else needs(node)
            if below:
                stack += (node, None, *below[::-1]) if type(below) is tuple else (node, None, *reversed(tuple(below)))
            else:
                order.append(node)
    return order


def rebuild(node: Node, args: Iterable[Node], known: Mapping[Node, Node] | None = None) -> Node:
    """Return ``node`` with other operands, and with the nodes in its sizes replaced as ``known`` says."""
    args = tuple(args)
    sizes = {n: known[n] for n in node.sized_by if known.get(n, n) is not n} if known and node.sized_by else {}
    if sizes:
        return resized(node, args, {n: _size(new) for n, new in sizes.items()})
    return node if args == node.args else _with_operands(node, args)


def _with_operands(node: Node, args: tuple[Node, ...]) -> Node:
    """Return the node of the same op with the same parameters on other operands."""
    key = (node.op, args, node.param_items, None)
    known = _made.get(key)
    found = known() if known is not None else None
    return found if found is not None else _fresh(key, node.op.infer(args, node.params))


def _size(node: Node) -> Size:
    size = as_size(node)
    if size is None:
        message = f"{node!r} is no size"
        raise TypeError(message)
    return size


def resized(node: Node, args: Iterable[Node], replacement: Mapping[Atom, Size]) -> Node:
    """Return ``node`` with other operands, and with symbols and nodes replaced in its sizes."""
    params = {k: substitute_in(v, replacement) for k, v in node.param_items}
    if node.args:
        return make(node.op, args, **params)
    t = node.type
    return make(node.op, (), type=Type(t.dtype, substitute_in(t.shape, replacement), t.form), **params)


def replaced(node: Node, known: Mapping[Node, Node]) -> Node:
    """Return ``node`` with its operands, and the nodes in its sizes, replaced as ``known`` says; those not in it stay."""
    return rebuild(node, [known.get(a, a) for a in node.args], known)


def substitute(
    roots: Iterable[Node], replacement: Mapping[Node, Node], memo: dict[Node, Node] | None = None
) -> list[Node]:
    """Return ``roots`` with nodes replaced. Nothing below a replaced node is visited; ``memo`` records what each node became."""
    roots = list(roots)
    memo = {} if memo is None else memo
    memo.update(replacement)
    for node in topological(roots, stop=lambda n: n in replacement):
        if node not in memo:
            memo[node] = replaced(node, memo)
    return [memo[root] for root in roots]


def users(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for each node that ``nodes`` need the nodes that need it."""
    table: dict[Node, list[Node]] = {}
    for node in nodes:
        needs = node.needs
        for arg in needs if len(needs) < 2 else dict.fromkeys(needs):
            known = table.get(arg)
            if known is None:
                table[arg] = [node]
            else:
                known.append(node)
    return table
