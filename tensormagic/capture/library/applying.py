"""NumPy's functions that call a function repeatedly: vectorize, apply_along_axis, apply_over_axes.

The function is called once, on one element or row, and what it computed is computed for all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.foreign.calls import call_library, called_back
from tensormagic.capture.foreign.lending import Loan
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.library.shaping import expand_dims_
from tensormagic.capture.names import implements
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.random.generators import Drawn
from tensormagic.capture.staging.calls.called_once import call_once_for_all
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.staging.trials.world import World
from tensormagic.capture.values.arguments import done, one_axis, tensor
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError, ShapeError, TensorError, ValueNeededError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, Type, hint
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, input_node
from tensormagic.ops.move import broadcast, lead, reshape, transpose
from tensormagic.ops.move_kind import broadcast_shapes
from tensormagic.ops.pointwise import astype


def _tried(function: Callable[[], Any], reached: Callable[..., Any], name: str) -> Any:
    """Return a function's result for an element without a value; raise if it has effects, or, in a cell, if it needs the value."""
    if not values_are_there():
        return call_once_for_all(function, [reached], lambda: _once_for_all(name))
    world = World([reached])
    try:
        outcome = attempt(world, function)
    except Exception as error:
        if isinstance(error, CaptureError) and not isinstance(error, NeedsPython):
            raise
        raise _once_for_all(name) from error
    if outcome.slots or outcome.grown or outcome.buffers:
        raise _once_for_all(name)
    return outcome.result


def _once_for_all(name: str) -> CaptureError:
    return ValueNeededError(
        f"a function that {name} calls, and that needs each value or has side effects, is not captured",
        "Write it as NumPy code for all elements at once, with np.where.",
    )


def _for_all(
    function: Callable[..., Any],
    stacks: list[Node],
    size: Size,
    name: str,
    reached: Callable[..., Any],
    *,
    form: Literal["scalar", "python"] = "scalar",
    typed: bool = False,
) -> list[Node]:
    """Apply ``function`` to each element of stacks of length ``size``; each result is a stack.

    ``reached`` is the user's function behind it; ``form`` says whether it gets an element as a NumPy scalar or a Python
    number; ``typed`` says that the dtypes of its results do not follow from its first result.
    """
    examples: dict[Node, Node] = {}
    arguments: list[Tensor] = []
    for stack in stacks:
        shape = stack.type.shape[1:]
        one = input_node(Source(f"an element of {name}"), Type(stack.type.dtype, shape, "array" if shape else form))
        examples[one] = stack
        arguments.append(wrap(one))
    before = [a.place.buffer.version for a in arguments]
    with Drawn(f"a function that {name} calls") as drawn:
        found = _tried(lambda: function(*arguments), reached, name)
        if drawn.stores_outside(arguments):
            raise _once_for_all(name)
    if [a.place.buffer.version for a in arguments] != before:
        refuse(f"a store into the argument of a function that {name} calls", "Copy it first.")
    results = [node_of(v) for v in (found if isinstance(found, tuple) else (found,))]
    if not typed and any(map(undecided_dtypes.is_undecided, results)):
        raise CaptureError(
            f"a function that {name} calls returns numbers of several dtypes, and NumPy uses the first one for all",
            "Let it return one dtype: 0.0 instead of 0, or float(...); for np.vectorize, otypes=[float] also works.",
        )
    try:
        stacked = hooks.batch(results, examples, size)
    except TensorError as error:
        raise _once_for_all(name) if values_are_there() else error from None
    return [lead(r, False, size) if s is None else s for r, s in zip(results, stacked, strict=True)]


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **options: Any) -> Any:
    """Implement ``np.apply_along_axis``."""
    x = node_of(arr)
    axis = one_axis(axis, x.type.ndim)
    others = [k for k in range(x.type.ndim) if k != axis]
    kept = tuple(x.type.shape[k] for k in others)
    count: Size = 1
    for s in kept:
        count = count * s
    if hint(count) == 0:
        raise ShapeError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = reshape(transpose(x, (*others, axis)), (count, x.type.shape[axis]))
    (found,) = _for_all(lambda row: tensor(func1d(row, *args, **options)), [rows], count, "np.apply_along_axis", func1d)
    inner = found.type.shape[1:]
    result = reshape(found, (*kept, *inner))
    rank = len(kept)
    order = (*range(axis), *range(rank, rank + len(inner)), *range(axis, rank))
    return done(to_form(transpose(result, order), "array"))  # NumPy makes the array itself


@implements(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """Implement ``np.apply_over_axes``."""
    value = tensor(a)
    for axis in axes if isinstance(axes, tuple | list | np.ndarray) else (axes,):
        found = func(value, axis + value.ndim if axis < 0 else axis)
        if found.ndim != value.ndim:
            found = expand_dims_(found, axis)
        if found.ndim != value.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        value = found
    return value


class Vectorized(StandIn):
    """Represents ``np.vectorize(pyfunc)``: NumPy's own on plain values, one call for all elements on lazy ones."""

    def __init__(
        self,
        pyfunc: Any = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.options: dict[str, Any] = {
            "otypes": otypes,
            "doc": doc,
            "excluded": excluded,
            "cache": cache,
            "signature": signature,
        }
        self.pyfunc = pyfunc

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.pyfunc is None:
            return Vectorized(*args, **self.options)
        if not any(map(has_lazy, (*args, *named.values()))):
            return self.real()(*args, **named)
        try:
            return self._captured(args, named)
        except Exception:
            if not values_are_there():
                raise
            called = np.vectorize(self._called(), **self.options)
            return call_library(called, args, named, _once_for_all("np.vectorize"))

    def _called(self) -> Any:
        """Return the function that NumPy calls for each element: the user's own, unchanged, if that is equivalent."""
        from tensormagic.capture.staging.calls.each_element import as_written

        return as_written(self.pyfunc, Loan("a function that np.vectorize calls")) or called_back(self.pyfunc)

    def calling(self, pyfunc: Any) -> Vectorized:
        """Return a vectorised function that calls ``pyfunc`` instead."""
        return self if pyfunc is self.pyfunc else Vectorized(pyfunc, **self.options)

    @property
    def own_class(self) -> type:
        """Return NumPy's class."""
        return np.vectorize

    def real(self) -> Any:
        """Return NumPy's own object."""
        return np.vectorize(self.pyfunc, **self.options)

    def _captured(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self.options["signature"] is not None:
            refuse("np.vectorize with a signature", "Use tm.vmap, or np.apply_along_axis.")
        excluded: set[Any] = set(self.options["excluded"] or ())
        varied = [k for k in (*range(len(args)), *named) if k not in excluded]
        given: dict[Any, Any] = dict(enumerate(args)) | named
        nodes = [node_of(given[k]) for k in varied]
        shape = broadcast_shapes([n.type.shape for n in nodes])
        count: Size = 1
        for s in shape:
            count = count * s
        if hint(count) == 0 and self.options["otypes"] is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        stacks = [reshape(broadcast(n, shape), (count,)) for n in nodes]

        def function(*elements: Any) -> Any:
            values = given | dict(zip(varied, elements, strict=True))
            return self.pyfunc(*(values[k] for k in range(len(args))), **{k: values[k] for k in named})

        types = self._types(lambda: _for_all(function, stacks, count, "np.vectorize", self.pyfunc))
        stacks = [astype(n, _PYTHONS.get(n.type.dtype.kind, n.type.dtype)) for n in stacks]
        every = _for_all(function, stacks, count, "np.vectorize", self.pyfunc, form="python", typed=True)
        found = [_typed(reshape(n, shape), t) for n, t in zip(every, types, strict=True)]
        results = [done(to_form(n, "array")) for n in found]  # NumPy makes arrays, of numbers too
        return tuple(results) if len(results) > 1 else results[0]

    def _types(self, first: Callable[[], list[Node]]) -> list[np.dtype[Any]]:
        """Return the dtypes of the results: as requested, or of the ``first`` call, whose operands are NumPy's numbers."""
        otypes = self.options["otypes"]
        return [n.type.dtype for n in first()] if otypes is None else [np.dtype(t) for t in otypes]


_PYTHONS = {"b": np.dtype(bool), "i": np.dtype(int), "u": np.dtype(int), "f": np.dtype(float), "c": np.dtype(complex)}


def _typed(node: Node, dtype: np.dtype[Any]) -> Node:
    if node.type.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    return astype(node, dtype)


implements(np.vectorize)(Vectorized)


def vectorized(value: Any) -> Vectorized:
    """Return NumPy's object of a vectorised function, as captured code calls it."""
    return Vectorized(value.pyfunc, value.otypes, None, value.excluded, value.cache, value.signature)
