"""Function bodies run over stand-ins for some arguments, so that derivatives are with respect to these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from functools import partial
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs.snapshots import own
from tensormagic.capture.numbers.classes import Classes, is_number, noted, of_classes
from tensormagic.capture.random.generators import Drawn
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import Build, flatten, is_container, items_of
from tensormagic.capture.values.abstract import stand_in_tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import refuse_stores
from tensormagic.functions.calls.results import numbers_in
from tensormagic.functions.gradients.gradient_nodes import replace
from tensormagic.functions.gradients.objects import Apart, Part, is_object, is_variable, standing_in, taken_apart
from tensormagic.functions.reads.changed_containers import Copies
from tensormagic.functions.reads.left_in_objects import left_behind
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import INPUT, Source, constant, constant_value, input_node

Make = Callable[[Iterator[Any]], Any]


class Closed:
    """A body run with stand-ins for some arguments, so that derivatives are with respect to these alone."""

    def __init__(
        self, function: Function, args: tuple[Any, ...], options: dict[str, Any], positions: Sequence[int]
    ) -> None:
        self.label = function.name
        self.actual: dict[Node, Node] = {}
        self.moving: list[tuple[list[Node], Callable[[Any], Any]]] = []
        self.names: list[str] = []
        self._counts: list[list[int]] = []  # for each leaf of an argument, how many variables it has
        self._inside: dict[Any, tuple[Part, Tensor, Node]] = {}  # the variables in objects, with the stand-in of each
        changed = list(args)
        tensors: list[Tensor] = []
        given: list[Any] = []
        for position in positions:
            name = function.parameters[position] if position < len(function.parameters) else f"argument {position + 1}"
            self.names.append(name)
            leaves, build = flatten(args[position])
            seen, nodes, makes = self._taken(args[position], leaves, name)
            self.moving.append((nodes, _made(build, makes)))
            moves = [k for k, v in enumerate(seen) if v is not leaves[k]]
            tensors += [seen[k] for k in moves]
            given += [leaves[k] for k in moves]
            changed[position] = build(iter(seen))
        inside = [*self._inside.values()]
        tensors += [lazy for _, lazy, _ in inside]
        given += [part.value for part, *_ in inside]
        copies = Copies(args, tuple(changed))
        outside = {t.place.buffer: t.place.buffer.version for t in _lazy(args, options)}
        mark = wrap(constant(0))
        with Drawn() as drawn, context.standing(), standing_in([(part, lazy) for part, lazy, _ in inside]):
            self.result = numbers_in(function.body(*changed, **options), function.name)
        actual = {t.place.buffer: v.place for t, v in zip(tensors, given, strict=True) if isinstance(v, Tensor)}
        self._leave(mark, [*tensors, *(read := lazily_read())], actual)
        for buffer in drawn.before:
            buffer.put(self.open([buffer.node])[0])
        outside |= {
            t.place.buffer: 0 for t in read if t.place.buffer not in outside
        }  # names that the body was the first to read
        for buffer in [b for b, version in outside.items() if b.version != version]:
            buffer.put(self.open([buffer.node])[0])
        copies.put_back({id(t): v for t, v in zip(tensors, given, strict=True)})
        for tensor, value in zip(tensors, given, strict=True):
            if tensor.place.buffer.stored:
                self._store(tensor, value, function)
        for tensor, value in zip(tensors, given, strict=True):  # the body may have kept it
            tensor.place = value.place if isinstance(value, Tensor) else Place(Buffer(self.open([tensor.node])[0]))

    def _taken(self, argument: Any, leaves: Sequence[Any], name: str) -> tuple[list[Any], list[Node], list[Make]]:
        """Return the stand-ins that the body gets for the leaves of an argument, their nodes, and functions that rebuild each leaf."""
        if argument is None or isinstance(argument, str | bytes):
            raise _no_float(argument, name, self.label)
        seen, nodes, makes = list(leaves), list[Node](), list[Make]()
        whole = not is_container(argument)
        for number in _integers(argument):
            self._stand_in(node_of(number), name)  # raises an error for an integer
        counts: list[int] = []
        for k, leaf in enumerate(leaves):
            before = len(nodes)
            if is_object(leaf):
                apart = taken_apart(leaf, name)
                nodes += [self._lazy_in(part, name).node for _, part in apart.paths]
                makes.append(partial(_like_object, apart, len(nodes) - before))
            elif whole or has_derivative(leaf):
                seen[k] = stand_in_tensor(self._stand_in(node_of(leaf), name), name)
                nodes.append(seen[k].node)
                makes.append(next)
            else:
                makes.append(_nothing)
            counts.append(len(nodes) - before)
        if not nodes:
            raise _no_float(argument, name, self.label)
        self._counts.append(counts)
        return seen, nodes, makes

    def _lazy_in(self, part: Part, name: str) -> Tensor:
        """Return the stand-in for a variable in an object."""
        if part.key not in self._inside:
            node = own(part.value, part.name)
            node = node_of(part.value) if node is None else node
            stand_in = self._stand_in(node, name)
            self._inside[part.key] = part, stand_in_tensor(stand_in, part.name), stand_in
        known, lazy, _ = self._inside[part.key]
        for place in part.places:
            known.add(place)
        return lazy

    def _leave(self, mark: Tensor, own: Sequence[Tensor], actual: Mapping[Buffer, Place]) -> None:
        """Replace the stand-ins by the ``actual`` arguments in values that the body has left in objects, or stored into arrays."""
        kept = {id(t) for t in own}
        left = [v for v in left_behind(mark, known=True) if id(v) not in kept]
        results, build = flatten(self.result)  # the containers of the result, which stay what they are
        self.result = build(iter([wrap(r.node) if isinstance(r, Tensor) else r for r in results]))
        given = {t.place.buffer for t in own}
        for value in [v for v in left if v.place.buffer in given and self._moves(v.node)]:  # parts of arguments
            whole = actual.get(value.place.buffer)
            value.place = Place(Buffer(self.open([value.node])[0])) if whole is None else _within(value.place, whole)
        for buffer in dict.fromkeys(v.place.buffer for v in left if v.place.buffer not in given):
            if self._moves(buffer.node):
                buffer.put(self.open([buffer.node])[0])

    def _moves(self, node: Node) -> bool:
        return any(n in self.actual for n in topological([node]))

    def _stand_in(self, node: Node, name: str) -> Node:
        if not node.type.inexact:
            raise DifferentiationError(
                f"{name} of {self.label} is {node.type}: there is no derivative with respect to integers",
                "Convert it to floats: astype(float)."
                if (number := constant_value(node)) is None or number.shape
                else f"Write {float(number)} for {number}.",
            )
        stand_in = input_node(Source(str(node["source"]) if node.op is INPUT else "value"), node.type)
        self.actual[stand_in] = node
        context.stand_for([stand_in], [node])
        return stand_in

    def _store(self, tensor: Tensor, value: Any, function: Function) -> None:
        """Store into the caller's array what the function has stored into its argument."""
        if not isinstance(value, Tensor):
            refuse_stores([tensor], function.name)
        value.place.write(self.open([tensor.place.buffer.node])[0])

    @property
    def wrt(self) -> list[Node]:
        return [n for nodes, _ in self.moving for n in nodes]

    def tangents(self, directions: Sequence[Any]) -> list[Any]:
        """Return the tangents in directions, one for each argument: containers like the arguments, which may hold other parts too."""
        for part, _, node in self._inside.values():
            if self.wrt.count(node) > 1:
                raise DifferentiationError(
                    f"{part.name} of {self.label} is held twice: there is one variable, and two places for its tangent",
                    "Use tm.grad or tm.vjp, or copy the array.",
                )
        found: list[Any] = []
        for direction, counts in zip(directions, self._counts, strict=False):
            leaves, _ = flatten(direction)
            whole = len(leaves) == sum(max(count, 1) for count in counts)
            taken = [max(count, 1) if whole else count for count in counts]
            ends = np.cumsum(taken)
            rest = [
                v for end, n, count in zip(ends, taken, counts, strict=True) if count for v in leaves[end - n : end]
            ]
            found += rest if len(leaves) == sum(taken) else leaves
        return found + flatten(tuple(directions[len(self._counts) :]))[0]

    def named(self) -> list[tuple[str, list[Node]]]:
        """Return the leaves with derivatives of each argument."""
        return [(name, nodes) for name, (nodes, _) in zip(self.names, self.moving, strict=True)]

    def open(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes with the actual arguments in place of the stand-ins."""
        return replace(nodes, self.actual)

    def results(self, nodes: Sequence[Node], computed: Sequence[Node] = ()) -> list[Node]:
        """Return the opened results, whose numbers keep their classes; ``computed`` replaces the first ones."""
        found = self.open([*computed, *nodes[len(computed) :]])
        return [self._of_its_class(n, noted(own)) for n, own in zip(found, nodes, strict=True)]

    def _of_its_class(self, number: Node, classes: Classes | None) -> Node:
        if classes is None or not is_number(number.type):
            return number
        (code,) = self.open([classes.code])
        return of_classes(number, Classes(code, classes.types))

    def arranged(self, nodes: Sequence[Node], single: bool) -> Any:
        """Return one node for each leaf with a derivative, in the arguments' containers."""
        rest = iter([wrap(n) for n in self.open(nodes)])
        parts = [build(rest) for _, build in self.moving]
        return parts[0] if single else tuple(parts)


def _within(place: Place, whole: Place) -> Place:
    """Return a view of an argument's stand-in, as the same view of the place ``whole``."""
    return whole if place.parent is None else replaced(place, buffer=whole.buffer, parent=_within(place.parent, whole))


def _made(build: Build, makes: Sequence[Make]) -> Make:
    """Return a function that rebuilds an argument from values for its variables, with None for its other parts."""
    return lambda rest: build(iter([make(rest) for make in makes]))


def _like_object(apart: Apart, count: int, rest: Iterator[Any]) -> Any:
    return apart.like([next(rest) for _ in range(count)])


def _nothing(_rest: Iterator[Any]) -> None:
    """Return None for a part without a derivative, so that nothing is computed with it by mistake."""


def has_derivative(leaf: Any) -> bool:
    """Return whether a part of a container is a real or complex number, or an array of such, in contrast to texts and integers."""
    if isinstance(leaf, Tensor):
        return leaf.type.inexact
    return is_variable(leaf) or isinstance(leaf, np.ndarray | float | complex)


def _integers(argument: Any) -> Iterator[Any]:
    """Yield the integers beside floats in lists, tuples and dictionaries, which are usually meant as floats; not those in fields."""
    if type(argument) in {list, tuple, dict}:
        for part in items_of(argument):
            yield from _integers(part)
            if isinstance(part, int) and not isinstance(part, bool):
                yield part


def _no_float(argument: Any, name: str, label: str) -> DifferentiationError:
    if argument is None or isinstance(argument, str | bytes):
        what = "None" if argument is None else f"the text {argument!r}"
        return DifferentiationError(
            f"{name} of {label} holds {what}: there is no derivative with respect to it",
            "Differentiate with respect to numbers alone: give texts and None as arguments of their own.",
        )
    return DifferentiationError(
        f"{name} of {label} is {type(argument).__name__}, which holds no float and no array of floats: there is no derivative "
        "with respect to it",
        "Differentiate with respect to floats: 2.0 for 2, x.astype(float).",
    )


def _lazy(args: tuple[Any, ...], options: dict[str, Any]) -> list[Tensor]:
    """Return the lazy arrays that a body may store into beside stand-ins: arguments, and names read from outside."""
    return [*(v for v in flatten((args, options))[0] if isinstance(v, Tensor)), *lazily_read()]


def lazily_read() -> list[Tensor]:
    """Return the lazy arrays that stand for names that are read from outside."""
    capture = context.current()
    return [] if capture is None else [v for v in capture.names.lifted.values() if isinstance(v, Tensor)]
