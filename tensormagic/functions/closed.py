"""A function's body run over stand-ins for some arguments, so that derivatives are with respect to these alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.abstract import stand_in_tensor
from tensormagic.capture.number_classes import Classes, is_number, noted, of_classes
from tensormagic.capture.operands import node_of
from tensormagic.capture.random import Drawn
from tensormagic.capture.stores.holding import is_own
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, wrap
from tensormagic.functions.changed import Copies
from tensormagic.functions.function import Function
from tensormagic.functions.gradient_nodes import replace
from tensormagic.functions.left import left_behind
from tensormagic.functions.program import refuse_stores
from tensormagic.functions.results import numbers_in
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import INPUT, Source, constant, input_node


def _node(leaf: Any, name: str, label: str) -> Node:
    """The node of a number that is differentiated by; texts and None are refused by the argument's name."""
    if leaf is None or isinstance(leaf, str | bytes):
        what = "None" if leaf is None else f"the text {leaf!r}"
        raise DifferentiationError(
            f"{name} of {label} holds {what}: there is no derivative with respect to it",
            "Differentiate with respect to numbers alone: give texts and None as arguments of their own.",
        )
    return node_of(leaf)


class Closed:
    """A body run over stand-ins for some arguments, so that derivatives are with respect to these alone."""

    def __init__(
        self, function: Function, args: tuple[Any, ...], options: dict[str, Any], positions: Sequence[int]
    ) -> None:
        self.label = function.name
        self.actual: dict[Node, Node] = {}
        self.moving: list[tuple[list[Node], Callable[[Any], Any]]] = []
        self.names: list[str] = []
        changed = list(args)
        tensors: list[Tensor] = []
        given: list[Any] = []
        for position in positions:
            name = function.parameters[position] if position < len(function.parameters) else f"argument {position + 1}"
            self.names.append(name)
            leaves, build = flatten(args[position])
            leaves = leaves if args[position] is not None else [None]
            for leaf in leaves:
                _refuse_object(leaf, name, function.name)
            nodes = [self._stand_in(_node(v, name, function.name), function, name) for v in leaves]
            self.moving.append((nodes, build))
            tensors += (own := [stand_in_tensor(n, name) for n in nodes])
            given += leaves
            changed[position] = build(iter(own))
        copies = Copies(args, tuple(changed))
        outside = {t.place.buffer: t.place.buffer.version for t in _lazy(args, options)}
        mark = wrap(constant(0))
        with Drawn() as drawn, context.standing():
            self.result = numbers_in(function.body(*changed, **options), function.name)
        self._leave(mark, [*tensors, *(read := lazily_read())])
        for buffer in drawn.before:
            buffer.put(self.open([buffer.node])[0])
        outside |= {t.place.buffer: 0 for t in read if t.place.buffer not in outside}  # names that it has read first
        for buffer in [b for b, version in outside.items() if b.version != version]:
            buffer.put(self.open([buffer.node])[0])
        copies.put_back({id(t): v for t, v in zip(tensors, given, strict=True)})
        for tensor, value in zip(tensors, given, strict=True):
            if tensor.place.buffer.stored:
                self._store(tensor, value, function)

    def _leave(self, mark: Tensor, own: Sequence[Tensor]) -> None:
        """Have what the body has left in objects, and stored into arrays there, be of the actual arguments."""
        kept = {id(t) for t in own}
        left = [v for v in left_behind(mark, known=True) if id(v) not in kept]
        results, build = flatten(self.result)  # which stay what they are
        self.result = build(iter([wrap(r.node) if isinstance(r, Tensor) else r for r in results]))
        given = {t.place.buffer for t in own}
        for value in [v for v in left if v.place.buffer in given and self._moves(v.node)]:  # parts of arguments
            value.place = Place(Buffer(self.open([value.node])[0]))
        for buffer in dict.fromkeys(v.place.buffer for v in left if v.place.buffer not in given):
            if self._moves(buffer.node):
                buffer.put(self.open([buffer.node])[0])

    def _moves(self, node: Node) -> bool:
        return any(n in self.actual for n in topological([node]))

    def _stand_in(self, node: Node, function: Function, name: str) -> Node:
        if not node.type.inexact:
            raise DifferentiationError(
                f"{name} of {function.name} is {node.type}: there is no derivative with respect to integers",
                "Convert it to a float: astype(float), or write 2.0 for 2.",
            )
        stand_in = input_node(Source(str(node["source"]) if node.op is INPUT else "value"), node.type)
        self.actual[stand_in] = node
        context.stand_for([stand_in], [node])
        return stand_in

    def _store(self, tensor: Tensor, value: Any, function: Function) -> None:
        """What the function has stored into its argument, stored into the array that it was called with."""
        if not isinstance(value, Tensor):
            refuse_stores([tensor], function.name)
        value.place.write(self.open([tensor.place.buffer.node])[0])

    @property
    def wrt(self) -> list[Node]:
        return [n for nodes, _ in self.moving for n in nodes]

    def named(self) -> list[tuple[str, list[Node]]]:
        """The moving leaves of each argument."""
        return [(name, nodes) for name, (nodes, _) in zip(self.names, self.moving, strict=True)]

    def open(self, nodes: Sequence[Node]) -> list[Node]:
        """Put the actual arguments in for the stand-ins."""
        return replace(nodes, self.actual)

    def results(self, nodes: Sequence[Node], computed: Sequence[Node] = ()) -> list[Node]:
        """The same of results, where numbers stay of the classes that they are of; the first as they are ``computed`` instead."""
        found = self.open([*computed, *nodes[len(computed) :]])
        return [self._of_its_class(n, noted(own)) for n, own in zip(found, nodes, strict=True)]

    def _of_its_class(self, number: Node, classes: Classes | None) -> Node:
        if classes is None or not is_number(number.type):
            return number
        (code,) = self.open([classes.code])
        return of_classes(number, Classes(code, classes.types))

    def arranged(self, nodes: Sequence[Node], single: bool) -> Any:
        """One node for each moving leaf, in the arguments' containers."""
        rest = iter([wrap(n) for n in self.open(nodes)])
        parts = [build(rest) for _, build in self.moving]
        return parts[0] if single else tuple(parts)


def _refuse_object(value: Any, name: str, function: str) -> None:
    """Refuse a derivative with respect to an object of a class that the user has written."""
    if is_own(value):
        kind = type(value).__name__
        raise DifferentiationError(
            f"{name} of {function} is {kind}, and there is no derivative with respect to an object in a function",
            f"Pass what it holds, as in {function}(w, b); make {kind} a dataclass; or use a cell: %%tensor --grad {name}.",
        )


def _lazy(args: tuple[Any, ...], options: dict[str, Any]) -> list[Tensor]:
    """The lazy arrays that a body may store into beside stand-ins: arguments, and names that are read from outside."""
    return [*(v for v in flatten((args, options))[0] if isinstance(v, Tensor)), *lazily_read()]


def lazily_read() -> list[Tensor]:
    """The lazy arrays that stand for names that are read from outside."""
    capture = context.current()
    return [] if capture is None else [v for v in capture.names.lifted.values() if isinstance(v, Tensor)]
