"""A value and its linear map: ``tm.vjp`` and ``tm.linearize``, both from one run of the function.

A function whose reads can be followed is captured once for its value and once for the map, and both are kept. One
that reads a clock, or changes what it reads, is run once for both: another run would be of another function.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.inputs import door
from tensormagic.capture.inputs.snapshots import own
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.classes import of_class
from tensormagic.capture.random import generators
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.calls.argument_stores import committed
from tensormagic.functions.calls.call_inputs import Given
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.python_results import codes_behind
from tensormagic.functions.calls.results import numbers_alone
from tensormagic.functions.gradients.closed_functions import Closed, lazily_read
from tensormagic.functions.gradients.derivatives import fitted, in_tuple, jvp, kept, pushed
from tensormagic.functions.gradients.forward_and_backward import Pulled, passes_of
from tensormagic.functions.gradients.gradient_nodes import normal_form
from tensormagic.functions.gradients.objects import as_gradients
from tensormagic.functions.reads.arrays_in_objects import taken_back
from tensormagic.functions.reads.changed_containers import Copies
from tensormagic.functions.reads.changing_values import moved
from tensormagic.functions.reads.record import Record
from tensormagic.ir.errors import CaptureError, DifferentiationError, TensorError
from tensormagic.ir.node import Node
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes

Map = Callable[..., Any]
_KINDS = 64  # kinds of arguments for which reads of a function are known to be followed
_STATES = 8  # states of the values read, for each of them


def vjp(fun: Any, *primals: Any) -> tuple[Any, Map]:
    """Return the value of ``fun``, and a function that pulls a cotangent of it back to the arguments: reverse mode.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME. Its result may have any shape.
    *primals
        Its arguments: floats, complex numbers, or containers of these.

    Returns
    -------
    tuple
        The value, and a function that takes a cotangent, with the value's structure and shapes, and returns a tuple with the
        cotangent of each argument, with its structure and shape.

    Raises
    ------
    DifferentiationError
        If an argument is not floating-point; at a later call, if the cotangent has another structure than the value, or if what
        ``fun`` reads has changed since.
    ShapeError
        At a later call, if the cotangent does not fit the value.

    References
    ----------
    A. Radul and others, "You only linearize once: tangents transpose to gradients", Proceedings of the ACM on Programming Languages
    7 (POPL), 2023.

    Examples
    --------
    >>> value, pull = vjp(lambda x: 2 * x**3 + 8, 1.0)
    >>> pull(1.0)
    (6.0,)

    What it gives has the graphs of both passes, ``.graph.forward`` and ``.graph.backward``, as they are run, where it is called on values:

    >>> vjp(lambda x: np.exp(x) * 2, np.ones(3)).graph.kept
    1
    """
    pulling = kept(_pulling, fun)
    value, pull = _both(fun, primals, pulling, _pulled)
    pull.__name__ = pull.__qualname__ = (
        f"vjp({kept(of_callable, fun).name})"  # the name under which the function is displayed
    )
    found = value, pull
    if context.current() is not None:
        return found
    pulled = Pulled(found)
    pulled.behind = lambda: passes_of(kept(of_callable, fun), primals, value, _pulled)
    return pulled


def linearize(fun: Any, *primals: Any) -> tuple[Any, Map]:
    """Return the value of ``fun`` and its derivative as a function of the tangents: forward mode.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME. Its result may have any shape.
    *primals
        Its arguments: floats, complex numbers, or containers of these.

    Returns
    -------
    tuple
        The value, and a function that takes a tangent for each argument, of its shape, and returns the derivative along them, with
        the value's structure and shapes. ``fun`` is not run again for it.

    Raises
    ------
    DifferentiationError
        If an argument is not floating-point; at a later call, if a tangent is missing, or if what ``fun`` reads has changed since.
    ShapeError
        At a later call, if a tangent does not fit its argument.

    References
    ----------
    A. Radul and others, "You only linearize once: tangents transpose to gradients", Proceedings of the ACM on Programming Languages
    7 (POPL), 2023.

    Examples
    --------
    >>> value, derivative = linearize(lambda x: 2 * x**3 + 8, 1.0)
    >>> derivative(2.0)
    12.0
    """
    function = kept(of_callable, fun)
    value, along = _both(fun, primals, lambda at, moved: jvp(function, at, moved)[1], lambda *run: pushed(*run)[1])

    def derivative(*tangents: Any) -> Any:
        return along(as_gradients(tangents))

    derivative.__name__ = derivative.__qualname__ = f"linearize({function.name})"
    return value, derivative


def _both(fun: Any, primals: tuple[Any, ...], again: Map, derive: Map) -> tuple[Any, Map]:
    """Return the value, and the linear map: by running ``again`` if that is like the first run, else from the same run by ``derive``."""
    function = kept(of_callable, fun)
    if context.current() is not None:
        return _captured(function, primals, derive)
    if any(isinstance(v, Tensor) for v in flatten(primals)[0]):
        with context.capturing(Capture(function.name)) as capture:
            value, along = _captured(function, primals, derive)
        drawn = generators.advanced(capture)
        generators.commit(drawn, session.compute([g.buffer.node for g in drawn]))
        committed(capture, function.name)
        return value, along
    given, key = function.kind(primals, {})
    known = next((r for r in _followed.get(function, {}).get(key, ()) if r.holds()), None)
    if known is not None:
        return _twice(function, primals, given, known, again, stores=False)
    whole = function.whole(primals)
    if _has_moved(function, key) and (alike := _alike(function, primals, whole)) is not None:
        return _twice(function, primals, alike[0], function.record((primals, {})), again, stores=alike[1])
    try:
        return _computed(function, primals, key, derive)
    except (TensorError, TypeError, ValueError):
        alike = _alike(function, primals, whole)
        if alike is None:
            raise
    given, stores = alike
    return _twice(function, primals, given, function.record((primals, {})), again, stores=stores)


def _has_moved(function: Function, key: Any) -> bool:
    """Return whether nothing but values in objects has changed since a run that another run agreed with."""
    return any(map(moved, _followed.get(function, {}).get(key, ())[:1]))


def _alike(function: Function, primals: tuple[Any, ...], whole: Record) -> tuple[Given, bool] | None:
    """Return the values of a call if its runs are alike, for code that cannot be captured in one run without values, or None."""
    if not taken_back(whole) or function.record((primals, {})).why:
        return None
    given, stores = function.stored(primals)
    draws = any(map(generators.is_generator, given.objects))
    return None if (whole.changed() and taken_back(whole)) or draws else (given, stores)


def _twice(
    function: Function, primals: tuple[Any, ...], given: Given, known: Record, again: Map, *, stores: bool
) -> tuple[Any, Map]:
    """Return the value of one run, and the linear map by further runs, at the arguments and reads as they were."""
    leaves, build = flatten(primals)
    kept = [_kept(v) for v in leaves]  # copies, as arrays may be stored into before the map is used
    held = [(read, value, _kept(value)) for read, value in given.held]

    def same(moved: Any) -> Any:
        changed = known.changed() or next(
            (r[0] for r, v, was in held if not _is_still(r[1].get(r[0]), v, None if stores else was)), ""
        )
        if changed:
            raise DifferentiationError(
                f"{changed}, which {function.name} reads, has changed since its value was computed",
                "Compute value and derivative again.",
            )
        if not stores:
            return again(build(iter(kept)), moved)
        with _as_it_was([(v, was) for _, v, was in held]):
            return again(build(iter([_kept(v) for v in kept])), moved)

    return function(*primals), same


@contextmanager
def _as_it_was(held: Sequence[tuple[Any, Any]]) -> Generator[None]:
    """Restore former contents of arrays for the duration of the block."""
    arrays = [(v, was, v.copy()) for v, was in held if isinstance(v, np.ndarray) and v.flags.writeable]
    for array, was, _ in arrays:
        np.copyto(array, was)
    try:
        yield
    finally:
        for array, _, now in arrays:
            np.copyto(array, now)


def _kept(value: Any) -> Any:
    """Return a value as it is now: a copy of an array."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _is_still(value: Any, before: Any, was: Any) -> bool:
    """Return whether a name still holds the object ``before``, with unchanged elements unless ``was`` is None."""
    return value is before and (was is None or not isinstance(value, np.ndarray) or value.tobytes() == was.tobytes())


_followed: weakref.WeakKeyDictionary[Function, OrderedDict[Any, list[Record]]] = weakref.WeakKeyDictionary()


def _note(function: Function, key: Any, record: Record) -> None:
    """Record that another run is like the first one as long as this record holds."""
    known = _followed.setdefault(function, OrderedDict())
    found = known.setdefault(key, [])
    found.insert(0, record)
    del found[_STATES:]
    while len(known) > _KINDS:
        known.popitem(last=False)


# one run --------------------------------------------------------------------------------------------------------------


def _captured(function: Function, primals: tuple[Any, ...], derive: Map) -> tuple[Any, Map]:
    """Return value and map of one run, as lazy values."""
    with config.using(math=function.math):
        args, options = function.complete(primals, {}) if function.complete and function.fills else (primals, {})
        closed = Closed(function, args, options, range(len(primals)))
        leaves, build = flatten(closed.result)
        value = build(iter([wrap(closed.results([v.node])[0]) if isinstance(v, Tensor) else v for v in leaves]))

    def along(moved: Any) -> Any:
        with config.using(math=function.math):
            return derive(closed, moved)

    return value, along


def _computed(function: Function, primals: tuple[Any, ...], key: Any, derive: Map) -> tuple[Any, Map]:
    """Return value and map of one run, as computed values."""
    before = function.record((primals, {}))
    leaves, build = flatten(primals)
    lazy = [_input(v, f"argument {k + 1}") for k, v in enumerate(leaves)]
    copied = build(iter(lazy))
    copies = Copies(primals, copied)
    with context.capturing(Capture(function.name)) as capture:
        value, along = _captured(function, copied, derive)
        copies.refuse(function.name)
        if any(t.place.buffer.stored for t in (*lazy, *lazily_read())):
            raise CaptureError(
                f"{function.name} stores into what it is given or reads, so "
                "its value and its derivative would come from two different runs",
                "Make a new array, w = w - g, and return it.",
            )
        if capture.attempts.raising:
            raise CaptureError(
                f"{function.name} asks for floating-point errors by np.errstate, which a run for a derivative does not raise",
                "Put np.errstate around tm.vjp or tm.linearize.",
            )
        drawn = generators.advanced(capture)
        found, put = _values(value, [g.buffer.node for g in drawn], function.math)
    generators.commit(drawn, put)
    if not drawn and before.holds():
        _note(function, key, before)

    def numbers(moved: Any) -> Any:
        with context.capturing(Capture(function.name)):
            return _values(along(moved), [], function.math)[0]

    return found, numbers


def _values(tree: Any, beside: list[Node], math: str) -> tuple[Any, list[Any]]:
    """Return the values of lazy arrays, computed in one run together with ``beside``."""
    leaves, build = flatten(tree)
    lazy = [v.node for v in leaves if isinstance(v, Tensor)]
    every = list(lazy)
    coded, known = codes_behind(lazy, every), number_classes.types()
    with config.using(math=math):
        found = session.compute([*every, *beside])
    own = iter(
        [of_class(v, known[int(found[coded[k][0]])]) if k in coded else v for k, v in enumerate(found[: len(lazy)])]
    )
    made = build(iter([next(own) if isinstance(v, Tensor) else v for v in leaves]))
    return made, found[len(every) :]


def _input(value: Any, name: str) -> Tensor:
    """Return an argument as a lazy value of its own."""
    value = door.variable(value, name)
    node = own(value, name)
    return wrap(node_of(value) if node is None else node)


# bodies ---------------------------------------------------------------------------------------------------------------


def _pulling(fun: Any) -> Function:
    function = of_callable(fun)

    def body(points: Any, cotangents: Any) -> Any:
        return _pulled(Closed(function, tuple(points), {}, range(len(points))), cotangents)

    return Function(
        body,
        f"vjp({function.name})",
        reads=function.reads,
        roots=function.roots,
        math=function.math,
        apart=in_tuple(function),
    )


def _pulled(closed: Closed, cotangents: Any) -> Any:
    """Return the cotangents of the arguments for cotangents of the results."""
    results = numbers_alone(flatten(closed.result)[0], closed.label)
    given = fitted("cotangent", closed.label, flatten(cotangents)[0], results)
    stable = normal_form(results, closed.wrt)
    found = modes.vjp(stable, given, closed.wrt)
    return closed.arranged(
        [zeros_like(n) if c is None else c for c, n in zip(found, closed.wrt, strict=True)], single=False
    )
