"""The one graph representation: an immutable, weakly interned vertex. Knows an op only by its name and its rule for types."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensormagic.ir.type import Type

Params = tuple[tuple[str, Any], ...]


class Operation(Protocol):
    """What a node needs to know of its op."""

    @property
    def name(self) -> str: ...

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]: ...


class Node:
    """One vertex: ``op, args, params, type``. Equal nodes are the same object.

    Make nodes with :func:`make`, which interns them.
    """

    __slots__ = ("__weakref__", "_params", "args", "op", "param_items", "types")

    op: Operation
    args: tuple[Node, ...]
    param_items: Params
    types: tuple[Type, ...]

    def __init__(self, op: Operation, args: tuple[Node, ...], params: Params, types: tuple[Type, ...]) -> None:
        self.op = op
        self.args = args
        self.param_items = params
        self.types = types
        self._params = dict(params)

    @property
    def type(self) -> Type:
        """The type of a node with one result."""
        if len(self.types) != 1:
            message = f"{self.op.name} has {len(self.types)} results: take one with item()"
            raise TypeError(message)
        return self.types[0]

    @property
    def params(self) -> Mapping[str, Any]:
        """What the op is told beside its operands."""
        return self._params

    def __getitem__(self, name: str) -> Any:
        return self._params[name]

    def __repr__(self) -> str:
        return f"<{self.op.name}: {', '.join(map(str, self.types))}>"

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


_operators: dict[str, Callable[..., Node]] = {}


def install_operators(operators: Mapping[str, Callable[..., Node]]) -> None:
    """Say what the operators between nodes build: the pointwise ops do so when they are defined."""
    _operators.update(operators)


_table: weakref.WeakValueDictionary[Any, Node] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _fresh_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


def make(op: Operation, args: Iterable[Node] = (), type: Type | None = None, **params: Any) -> Node:
    """The node of ``op`` on ``args``: the existing one, if there is an equal one.

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
    items = tuple(sorted(params.items()))
    key = (op, args, items, type)
    found = _table.get(key)
    if found is not None:
        return found
    inferred = type if type is not None else op.infer(args, params)
    types = (inferred,) if isinstance(inferred, Type) else inferred
    with _lock:
        found = _table.get(key)
        if found is None:
            found = Node(op, args, items, types)
            _table[key] = found
    return found


@dataclass(frozen=True)
class Bits:
    """A constant's value, keyed by dtype, shape and bits: ``0.0``, ``-0.0``, ``nan``, ``1`` and ``True`` all differ."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(value: Any) -> Bits:
        """The bits of an array or number."""
        array = np.asarray(value)
        return Bits(array.dtype.str, array.shape, array.tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        """The value, as a read-only array."""
        return np.frombuffer(self.data, np.dtype(self.dtype)).reshape(self.shape)

    def __str__(self) -> str:
        return str(self.array().tolist())


def topological(roots: Iterable[Node], stop: Callable[[Node], bool] | None = None) -> list[Node]:
    """All nodes that ``roots`` need, operands first, each once, in a fixed order; ``stop`` cuts below a node."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, Iterator[Node]]] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack.append((root, iter(() if stop and stop(root) else root.args)))
        while stack:
            node, rest = stack[-1]
            for arg in rest:
                if arg not in seen:
                    seen.add(arg)
                    stack.append((arg, iter(() if stop and stop(arg) else arg.args)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def rebuild(node: Node, args: Iterable[Node]) -> Node:
    """``node`` with other operands (itself, where they are the same)."""
    args = tuple(args)
    if args == node.args:
        return node
    return make(node.op, args, **node.params)


def substitute(roots: Iterable[Node], replacement: Mapping[Node, Node]) -> list[Node]:
    """``roots`` with nodes replaced; what is below a replaced node is not visited."""
    roots = list(roots)
    memo = dict(replacement)
    for node in topological(roots, stop=lambda n: n in replacement):
        if node not in memo:
            memo[node] = rebuild(node, (memo[arg] for arg in node.args))
    return [memo[root] for root in roots]


def users(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each operand of ``nodes``, the nodes that use it."""
    table: dict[Node, list[Node]] = {}
    for node in nodes:
        for arg in dict.fromkeys(node.args):
            table.setdefault(arg, []).append(node)
    return table
