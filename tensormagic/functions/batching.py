"""``tm.vmap``: a function of one example as a function of a stack of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.random.generators import Drawn
from tensormagic.capture.staging.calls.called_once import call_once_for_all
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.abstract import stand_in_tensor
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.examples_in_order import one_by_one
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import refuse_stores
from tensormagic.functions.calls.results import numbers_alone, numbers_in
from tensormagic.functions.gradients.derivatives import derived
from tensormagic.functions.gradients.objects import is_object
from tensormagic.functions.reads.changed_containers import Copies
from tensormagic.functions.travel import maker
from tensormagic.ir.errors import CaptureError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.plain_texts import counted
from tensormagic.ir.type import Size, hint
from tensormagic.ops.leaf import INPUT, Source, input_node
from tensormagic.ops.move import lead, transpose
from tensormagic.ops.move_kind import normalise_axis, same, show
from tensormagic.transform.batch import batch
from tensormagic.transform.rewriting import rewrite_nodes

Axes = Any  # an int or None, or a container of these


@maker
def vmap(fun: Any, in_axes: Axes = 0, out_axes: Axes = 0) -> Function:
    """Return ``fun``, a function of single examples, as a function of stacks of examples.

    Parameters
    ----------
    fun
        A function of arrays.
    in_axes
        The axis along which each argument is stacked; None for one that is the same for all examples. One axis for all
        arguments, or a tuple with one for each, which may be a container like the argument.
    out_axes
        The axis along which each result is stacked; None for one that is the same for all examples. One axis for all
        results, or a container like the result.

    Returns
    -------
    Function
        One pass over the whole stack, without a loop over the examples.

    Raises
    ------
    ShapeError
        If the arguments hold different numbers of examples, or none is stacked.

    Examples
    --------
    >>> import numpy as np
    >>> vmap(lambda x, y: x @ y)(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    array([1., 5., 9.])
    >>> vmap(lambda x, a: x * a, in_axes=(0, None))(np.array([1.0, 2.0]), 3.0)
    array([3., 6.])
    """
    function = of_callable(fun)
    in_axes, out_axes = deepcopy((in_axes, out_axes))  # later changes of the containers do not count

    def body(*args: Any, **options: Any) -> Any:
        stacks = _Stacks(function)
        single = [
            stacks.examples(a, axes, k)
            for k, (a, axes) in enumerate(zip(args, _each(in_axes, args, function), strict=True))
        ]
        size = stacks.size()
        outside, copies = _versions(args, options), Copies(args, tuple(single))
        with Drawn() as drawn:
            leaves, build = flatten(
                numbers_in(_once(function, single, options, outside, (stacks, copies)), function.name)
            )
        copies.refuse(function.name)
        results = numbers_alone(leaves, function.name)
        stored = [e for e in stacks.given if e.tensor.place.buffer.stored]
        shared = [b for b in _stored_since(outside) if b not in drawn.before]
        ends = [*results, *(e.tensor.place.buffer.node for e in stored), *(b.node for b in shared)]
        found = one_by_one(ends, stacks.known, size, drawn.before) if drawn.before else batch(ends, stacks.known, size)
        axes = _spread(out_axes, build, len(leaves), f"out_axes of vmap({function.name})")
        placed = [_placed(r, f, axis, size, function) for r, f, axis in zip(results, found, axes, strict=False)]
        for example, end in zip(stored, found[len(results) :], strict=False):
            example.store(end, size, function)
        _refuse_shared(shared, found[len(ends) - len(shared) :], function)
        return build(iter([wrap(n) for n in placed]))

    return derived(function, "vmap", body)


@dataclass(frozen=True, eq=False)
class _Example:
    """The stand-in for one example, and the argument that holds all of them along an axis."""

    tensor: Tensor
    argument: Any
    axis: int

    def store(self, end: Node | None, size: Size, function: Function) -> None:
        """Store into the batch what the function has stored into one example."""
        if not isinstance(self.argument, Tensor):
            refuse_stores([self.tensor], function.name)
        stack = lead(self.tensor.place.buffer.node, False, size) if end is None else end
        self.argument.place.write(_from_front(stack, self.axis))


def _once(
    function: Function,
    single: Sequence[Any],
    options: dict[str, Any],
    outside: dict[Buffer, int],
    about: tuple[_Stacks, Copies],
) -> Any:
    """Return the function's result for one example that stands for all."""

    def refused() -> CaptureError:
        stacks, copies = about
        copies.refuse(function.name)
        shared = _stored_since(outside)
        with suppress(ShapeError):  # the error below is raised instead
            _refuse_shared(shared, batch([b.node for b in shared], stacks.known, stacks.size()), function)
        return CaptureError(
            f"vmap({function.name}): {function.name} changes something that all examples share (a list, a dictionary, an object, an array, "
            "a random generator of Python, an iterator), and it would do so once, where a loop over the examples does it for each",
            "Return the value, and change things where the function is called; draw from a generator of NumPy.",
        )

    reached = [*(function.roots or ()), *single, *options.values()]
    return call_once_for_all(
        lambda: function.body(*single, **options), reached, refused, lambda: _stored_since(outside), _are_equal
    )


def _are_equal(nodes: Sequence[Node], others: Sequence[Node]) -> bool:
    """Return whether values equal others, after removing stores that are overwritten at once."""
    found = rewrite_nodes([*nodes, *others], "exact")[0]
    return found[: len(nodes)] == found[len(nodes) :]


def _stored_since(outside: dict[Buffer, int]) -> list[Buffer]:
    """Return the arrays shared by all examples that have been stored into."""
    return [b for b, version in outside.items() if b.version != version]


def _versions(args: Any, options: Any) -> dict[Buffer, int]:
    """Return the unbatched arrays a function may store into (arguments, and names from outside) with their versions."""
    capture = context.current()
    read = list(capture.names.lifted.values()) if capture is not None else []
    lazy = [v for v in [*flatten((args, options))[0], *read] if isinstance(v, Tensor)]
    return {t.place.buffer: t.place.buffer.version for t in lazy}


def _refuse_shared(buffers: Sequence[Buffer], found: Sequence[Node | None], function: Function) -> None:
    """Raise if what is stored into an array shared by all examples differs between them."""
    for buffer, end in zip(buffers, found, strict=True):
        if end is not None:
            raise CaptureError(
                f"vmap({function.name}): {function.name} stores into {buffer.name or 'an array'}, which all examples "
                "share, a value that differs between them",
                "Give each example its own array, or return the value.",
            )


class _Stacks:
    """The stand-ins for single examples, and the stacks that they stand for."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[Node, Node] = {}
        self.sizes: dict[str, Size] = {}
        self.given: list[_Example] = []

    def examples(self, argument: Any, axes: Axes, position: int) -> Any:
        """Return an argument as the function sees it: one example, if it is batched."""
        leaves, build = flatten(argument)
        parameters = self.function.parameters
        name = parameters[position] if position < len(parameters) else f"argument {position + 1}"
        places = _spread(axes, build, len(leaves), f"in_axes for {name} of {self.function.name}")
        labels = [name if len(leaves) == 1 else f"{name}[{k}]" for k in range(len(leaves))]
        return build(
            iter(
                [
                    v if a is None else self._example(v, a, label)
                    for v, a, label in zip(leaves, places, labels, strict=True)
                ]
            )
        )

    def _example(self, value: Any, axis: int, label: str) -> Any:
        if isinstance(value, str | bytes | FunctionType | BuiltinFunctionType | np.ufunc):
            return value
        if is_object(value):
            kind = type(value).__name__
            raise ShapeError(
                f"vmap({self.function.name}): {label} is {kind}, an object, which has no axis of examples",
                "Pass None for it in in_axes, or pass the arrays that it holds.",
            )
        stack = node_of(value)
        if not stack.type.ndim:
            raise ShapeError(
                f"vmap({self.function.name}): {label} is {stack.type}, which has no axis of examples",
                "Pass None for it in in_axes.",
            )
        axis = normalise_axis(axis, stack.type.ndim)
        stack = transpose(stack, (axis, *(k for k in range(stack.type.ndim) if k != axis)))
        self.sizes[label] = stack.type.shape[0]
        name = str(stack["source"]) if stack.op is INPUT else label
        example = input_node(Source(name), stack.type.with_shape(stack.type.shape[1:]))
        self.known[example] = stack
        self.given.append(_Example(stand_in_tensor(example, label), value, axis))
        return self.given[-1].tensor

    def size(self) -> Size:
        """Return the number of examples, which all stacks have; raise ShapeError if it differs."""
        if not self.sizes:
            raise ShapeError(
                f"vmap({self.function.name}): no argument is stacked", "Give the axis of the examples in in_axes."
            )
        size = next((s for s in self.sizes.values() if isinstance(s, int)), next(iter(self.sizes.values())))
        if not all(same(size, s) for s in self.sizes.values()):
            found = ", ".join(f"{label} has {hint(s)}" for label, s in self.sizes.items())
            raise ShapeError(f"vmap({self.function.name}): the arguments hold different numbers of examples: {found}")
        capture = context.current()
        if capture is not None:
            capture.guards += [(size, "==", s) for s in self.sizes.values() if s != size]
        return size


def _each(axes: Axes, args: Sequence[Any], function: Function) -> Sequence[Axes]:
    """Return one entry of ``in_axes`` for each argument."""
    if not isinstance(axes, tuple | list):
        return [axes] * len(args)
    if len(axes) != len(args):
        raise ShapeError(
            f"vmap({function.name}): in_axes has {counted(len(axes), 'entry', 'entries')} for {counted(len(args), 'argument')}"
        )
    return axes


def _spread(axes: Axes, build: Callable[[Any], Any], count: int, what: str) -> list[int | None]:
    """Return one axis for each leaf: an entry counts for all leaves below its place."""
    found: list[int | None] = [None] * count
    _fill(axes, build(iter(range(count))), found, what)
    return found


def _fill(axes: Axes, places: Any, found: list[int | None], what: str) -> None:
    if axes is None or not isinstance(axes, tuple | list | dict):
        axis = None if axes is None else operator.index(axes)
        for leaf in flatten(places)[0]:
            found[leaf] = axis
        return
    pairs = _pairs(axes, places)
    if pairs is None:
        raise ShapeError(f"{what}: {axes!r} does not have the structure of the value")
    for own, place in pairs:
        _fill(own, place, found, what)


def _pairs(axes: Axes, places: Any) -> list[tuple[Axes, Any]] | None:
    """Return each entry of a container of axes with its counterpart, or None if the containers differ in form."""
    if isinstance(axes, dict):
        fits = isinstance(places, dict) and axes.keys() == places.keys()
        return [(axes[k], places[k]) for k in axes] if fits else None
    fits = isinstance(places, tuple | list) and len(axes) == len(places)
    return list(zip(axes, places, strict=True)) if fits else None


def _placed(result: Node, found: Node | None, axis: int | None, size: Size, function: Function) -> Node:
    """Return a result with its examples along the requested axis."""
    if axis is None:
        if found is not None:
            raise ShapeError(
                f"vmap({function.name}): out_axes is None for a result that differs between examples, "
                f"of shape {show(result.type.shape)}"
            )
        return result
    stack = lead(result, False, size) if found is None else found
    return _from_front(stack, normalise_axis(axis, stack.type.ndim))


def _from_front(stack: Node, axis: int) -> Node:
    """Return ``stack`` with its first axis in the place of ``axis``."""
    rest = list(range(1, stack.type.ndim))
    return transpose(stack, (*rest[:axis], 0, *rest[axis:]))


hooks.batch = batch
