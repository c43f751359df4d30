"""Derivatives of functions over arrays: grad, jvp, vjp and related ones, each a function that can be differentiated again."""

from __future__ import annotations

import operator
import re
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import lru_cache
from types import MethodType
from typing import Any

from tensormagic.alike import alike
from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.results import numbers_alone
from tensormagic.functions.gradients.closed_functions import Closed
from tensormagic.functions.gradients.gradient_nodes import normal_form, value_and_gradient_nodes
from tensormagic.functions.gradients.objects import as_gradients
from tensormagic.functions.gradients.zero_gradients import warn_constant
from tensormagic.functions.travel import maker
from tensormagic.ir.errors import DifferentiationError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.type import hint
from tensormagic.ops.effects.raising import behind_checks
from tensormagic.ops.move import broadcast
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes

ArgNums = int | str | Sequence[int | str]


def argument_positions(function: Function, argnums: ArgNums, count: int) -> list[int]:
    """Return the argument positions that ``argnums`` denotes in a call with ``count`` arguments."""
    found: list[int] = []
    for item in _each(argnums):
        if isinstance(item, str):
            found.append(_named(function, item))
            if found[-1] >= count:
                raise DifferentiationError(
                    f"{item} of {function.name} was not given: there is no derivative with respect to a default value",
                    f"Pass {item}.",
                )
        else:
            number = _number(function, item)
            found.append(number % count if -count <= number < count else _no_argument(function, item, count))
    if len(set(found)) < len(found):
        raise DifferentiationError(f"argnums {argnums!r} name an argument of {function.name} twice")
    return found


def asked(function: Function, argnums: ArgNums) -> ArgNums:
    """Return a copy of ``argnums``; raise at once if no call of ``function`` could have such arguments."""
    for item in _each(argnums):
        _named(function, item) if isinstance(item, str) else _number(function, item)
    return deepcopy(argnums)


def _each(argnums: ArgNums) -> Sequence[int | str]:
    return argnums if isinstance(argnums, Sequence) and not isinstance(argnums, str) else [argnums]


def _named(function: Function, name: str) -> int:
    """Return the position of the argument of this name; raise DifferentiationError if there is none."""
    if name in function.parameters:
        return function.parameters.index(name)
    several = [part for part in re.split(r"[\s,]+", name) if part]
    near = alike(name, function.parameters)
    way = f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if len(several) > 1 and set(several) <= set(function.parameters):
        way = f"Several names are a tuple: ({', '.join(map(_quoted, several))})."
    raise DifferentiationError(
        f"{function.name} has no argument {name!r}; it has {', '.join(function.parameters) or 'none'}", way
    )


def _number(function: Function, item: Any) -> int:
    """Return a position, given as an integer of Python or NumPy."""
    if not isinstance(item, Tensor) and hasattr(type(item), "__index__"):
        try:
            return operator.index(item)
        except TypeError:  # an array that is not an integer
            pass
    listed = f": {function.name} has {', '.join(map(_quoted, function.parameters))}" if function.parameters else ""
    raise DifferentiationError(
        "which arguments are meant is told by their names or positions, not by their values",
        f"Write the names in quotes, several as a tuple{listed}. To take it at a value, write this behind: tm.grad(f)(x).",
    )


def _quoted(name: str) -> str:
    return f'"{name}"'


def _no_argument(function: Function, item: int, count: int) -> int:
    numbers = {0: "there is none", 1: "0 alone"}.get(count, f"0 to {count - 1}")
    raise DifferentiationError(
        f"{function.name} is called with {count} argument{'s' * (count != 1)}: there is no argument number {item}",
        f"argnums counts from 0: {numbers}.",
    )


def derived(function: Function, name: str, body: Callable[..., Any], argnums: ArgNums | None = None) -> Function:
    """Return a function of the same arguments with another body: a derivative with respect to the arguments in ``argnums``."""
    label = f"{name}({function.name})"

    def by(args: tuple[Any, ...]) -> Sequence[tuple[str, Any]]:
        return [_called(function, args, k) for k in argument_positions(function, argnums or 0, len(args))]

    made = Function(
        body,
        label,
        function.parameters,
        function.complete,
        function.reads,
        function.fills,
        function.roots,
        function.math,
        apart=None if argnums is None else by,
    )
    _derived.add(made)
    return made


_derived: weakref.WeakSet[Function] = weakref.WeakSet()  # derivatives may be constant without a warning


def kept(make: Callable[..., Function], fun: Any, *key: Any) -> Function:
    """Return ``make(fun, *key)``, cached per function and key, but not while code is traced."""
    if context.current() is not None:
        return make(fun, *key)
    try:
        return _made(make, _Same(fun), key)
    except TypeError:  # an unhashable key
        return make(fun, *key)


class _Same:
    """An object as a key: equal to itself alone; a method, to that method of the same object."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._parts = (value.__func__, value.__self__) if isinstance(value, MethodType) else (value, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and all(a is b for a, b in zip(self._parts, other._parts, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._parts)))


@lru_cache(maxsize=64)
def _made(make: Callable[..., Function], fun: _Same, key: tuple[Any, ...]) -> Function:
    return make(fun.value, *key)


def _scalar(value: Any, function: Function) -> Node:
    leaves, _ = flatten(value)
    if len(leaves) != 1:
        raise DifferentiationError(
            f"{function.name} returns {len(leaves)} values, but a gradient is that of one scalar",
            "Return one value, or use has_aux=True.",
        )
    return numbers_alone(leaves, function.name)[0]


def _pair(result: Any, function: Function) -> tuple[Any, Any]:
    """Return the result of a function with ``has_aux``, checked to be a pair."""
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    found = f"{len(result)} values" if isinstance(result, tuple | list) else "one value"
    raise DifferentiationError(
        f"{function.name} returns {found}, but with has_aux=True it returns a pair: the scalar, and what stands beside it",
        "Return such a pair, or leave has_aux out.",
    )


@maker
def value_and_grad(fun: Any, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the value of ``fun`` and its gradient.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME, that returns one real scalar (with ``has_aux``: and something beside it).
    argnums
        Which arguments, by position or name: one, or several in a tuple.
    has_aux
        Whether ``fun`` returns a pair of the scalar and something that is not differentiated.

    Returns
    -------
    Function
        Takes the arguments of ``fun``; returns ``(value, gradient)``, the gradient a tuple if ``argnums`` is one.

    Raises
    ------
    DifferentiationError
        If the result is not a real scalar, or an argument is not floating-point.

    Examples
    --------
    >>> value_and_grad(lambda x: 2 * x**3 + 8)(1.0)
    (10.0, 6.0)
    """
    function = of_callable(fun)
    single, argnums = isinstance(argnums, int | str), asked(function, argnums)

    def body(*args: Any, **options: Any) -> Any:
        closed = Closed(function, args, options, argument_positions(function, argnums, len(args)))
        value, aux = _pair(closed.result, function) if has_aux else (closed.result, None)
        scalar_node = _scalar(value, function)
        result, found = value_and_gradient_nodes(scalar_node, closed.wrt)
        if function not in _derived:
            warn_constant(function.name, scalar_node, closed.named())
            hooks.differentiated(scalar_node, closed.wrt)
        gradient = closed.arranged(behind_checks(found, [scalar_node]), single)
        leaves, build = flatten(aux)
        first, *rest = map(wrap, closed.results([scalar_node, *map(node_of, leaves)], [result]))
        return ((first, build(iter(rest))) if has_aux else first), gradient

    return derived(function, "value_and_grad", body, argnums)


@maker
def grad(fun: Any, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the gradient of ``fun``, by reverse mode.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME, that returns one real scalar (with ``has_aux``: and something beside it).
    argnums
        Which arguments, by position or name: one, or several in a tuple. An argument may be a container of arrays, or
        an object of a class of yours that holds such.
    has_aux
        Whether ``fun`` returns a pair of the scalar and something that is not differentiated.

    Returns
    -------
    Function
        Takes the arguments of ``fun``; returns the gradient, with the structure, shapes and dtypes of the argument, or a tuple if
        ``argnums`` is one. For an object it has those attributes that have a gradient; in a container, None stands for parts without
        one. With ``has_aux``, a pair of the gradient and the second result of ``fun``.

    Raises
    ------
    DifferentiationError
        At a call, if the result is not a real scalar, an argument is not floating-point, or there is no such argument.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda w, x: np.sum((x @ w) ** 2))(np.ones(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([48., 68.])
    >>> grad(lambda p: p["a"] * p["b"] ** 2)({"a": 2.0, "b": 3.0})
    {'a': 9.0, 'b': 12.0}

    The result is a function like any other, and has a gradient itself:

    >>> grad(grad(lambda x: 2 * x**3 + 8))(1.0)
    12.0
    """
    both, argnums = value_and_grad(fun, argnums, has_aux), deepcopy(argnums)

    def body(*args: Any, **options: Any) -> Any:
        value, gradient = both.body(*args, **options)
        return (gradient, value[1]) if has_aux else gradient

    return derived(of_callable(fun), "grad", body, argnums)


def fitted(kind: str, label: str, given: Sequence[Any], nodes: Sequence[Node]) -> list[Node]:
    """Return tangents, or cotangents, of nodes: one for each, converted to its dtype and shape."""
    if len(given) != len(nodes):
        raise DifferentiationError(
            f"{kind}s of {label}: {len(given)} arrays or numbers are given for {len(nodes)}", "Give one for each."
        )
    return [_like(kind, label, t, n) for t, n in zip(given, nodes, strict=True)]


def _like(kind: str, label: str, tangent: Any, node: Node) -> Node:
    moved = astype(node_of(tangent), node.type.dtype)
    try:
        return broadcast(moved, node.type.shape)
    except ShapeError as error:
        shapes = (tuple(hint(s) for s in n.type.shape) for n in (moved, node))
        raise ShapeError("a {} of {} has shape {}, but belongs to shape {}".format(kind, label, *shapes)) from error


def jvp(fun: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the value of ``fun`` at ``primals`` and its directional derivative along ``tangents``, by forward mode.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME. Its result may have any shape.
    primals
        Its arguments, in a tuple or a list; floats, complex numbers, or containers of these.
    tangents
        One for each argument, of its shape.

    Returns
    -------
    tuple
        The value, and the derivative, with the value's structure and shapes.

    Raises
    ------
    DifferentiationError
        If an argument is not floating-point, or the number of tangents differs from that of the arguments.
    ShapeError
        If a tangent does not fit its argument.

    Examples
    --------
    >>> jvp(lambda x: 2 * x**3 + 8, (1.0,), (1.0,))
    (10.0, 6.0)
    >>> import numpy as np
    >>> jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 1.0))
    (array([3., 6.]), array([4., 2.]))
    """
    for told, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise DifferentiationError(
                f"jvp takes the {told} in a tuple, not as {type(given).__name__}", "As in tm.jvp(f, (x,), (v,))."
            )
    if len(primals) != len(tangents):
        raise DifferentiationError(
            f"jvp takes a tangent for each primal, but {len(tangents)} were given for {len(primals)}"
        )
    return kept(_pushing, fun)(tuple(primals), as_gradients(tuple(tangents)))


def _pushing(fun: Any) -> Function:
    function = of_callable(fun)

    def body(points: Any, directions: Any) -> Any:
        return pushed(Closed(function, tuple(points), {}, range(len(points))), directions)

    return Function(
        body,
        f"jvp({function.name})",
        reads=function.reads,
        roots=function.roots,
        math=function.math,
        apart=in_tuple(function),
    )


def in_tuple(function: Function) -> Callable[[tuple[Any, ...]], Sequence[tuple[str, Any]]]:
    """Return a function that lists the arguments of ``function`` with their names, for a derivative that takes them in a tuple."""
    return lambda args: [_called(function, args[0], k) for k in range(len(args[0]))]


def _called(function: Function, args: tuple[Any, ...], k: int) -> tuple[str, Any]:
    """Return an argument's name, and the argument."""
    return (function.parameters[k] if k < len(function.parameters) else f"argument {k + 1}"), args[k]


def pushed(closed: Closed, directions: Any) -> tuple[Any, Any]:
    """Return the results of a run, and their tangents along directions of its arguments."""
    leaves, build = flatten(closed.result)
    known_results = results = [node_of(v) for v in leaves]
    moves = closed.tangents(directions)
    stable = normal_form(results, closed.wrt)
    known = dict(zip(closed.wrt, fitted("tangent", closed.label, moves, closed.wrt), strict=True))
    wider, found = modes.push(stable, known)
    changes = [zeros_like(r) if t is None else t for r, t in zip(results, found, strict=True)]
    results = [r if new is old else new for r, new, old in zip(results, wider, stable, strict=True)]
    first, second = closed.results(known_results, results), closed.open(changes)
    return build(iter(map(wrap, first))), build(iter(map(wrap, second)))


def hvp(fun: Any, primals: Any, vector: Any) -> Any:
    """Return the product of the Hessian of ``fun`` and ``vector``: forward over reverse mode, without the Hessian itself.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME, that gives one real scalar.
    primals
        Its argument, or its arguments in a tuple.
    vector
        The direction, of the form and the shapes of ``primals``.

    Returns
    -------
    array, number, container or tuple
        Of the form and the shapes of ``primals``.

    Raises
    ------
    DifferentiationError
        If the result is not a real scalar, or an argument is not floating-point.
    ShapeError
        If a vector does not fit its argument.

    References
    ----------
    B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6 (1994), 147-160.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    points = primals if isinstance(primals, tuple) else (primals,)
    vectors = vector if isinstance(vector, tuple) else (vector,)
    argnums: ArgNums = 0 if not isinstance(primals, tuple) else tuple(range(len(points)))
    return jvp(kept(grad, fun, argnums), points, vectors)[1]


def stop_gradient(value: Any) -> Any:
    """Return ``value`` such that derivatives treat it as a constant.

    Parameters
    ----------
    value
        An array or a number.

    Returns
    -------
    array or number
        The same value. Every derivative of it, of any order and in both modes, is 0.

    Raises
    ------
    DTypeError
        If ``value`` is a container: apply it to each of its parts.

    Examples
    --------
    >>> grad(lambda x: x * stop_gradient(x))(3.0)  # and not 6.0
    3.0
    """
    return build(scalar.stop_gradient, value)
