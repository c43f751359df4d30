"""Matrices of derivatives: ``tm.jacobian`` and ``tm.hessian``, each one batched pass over a basis, not a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.results import numbers_alone
from tensormagic.functions.gradients.closed_functions import Closed
from tensormagic.functions.gradients.derivatives import ArgNums, argument_positions, asked, derived, grad
from tensormagic.functions.gradients.gradient_nodes import normal_form
from tensormagic.functions.gradients.sparse import SparseJacobian
from tensormagic.functions.travel import maker
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type, hint
from tensormagic.ops.effects.raising import behind_checks
from tensormagic.ops.leaf import Source, constant, input_node, iota
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import equal
from tensormagic.transform import grad as modes
from tensormagic.transform.batch import batch

Mode = Literal["forward", "reverse"]


@overload
def jacobian(fun: Any, argnums: ArgNums = 0, sparse: Literal[False] = False) -> Function: ...
@overload
def jacobian(fun: Any, argnums: ArgNums = 0, *, sparse: Literal[True]) -> SparseJacobian: ...
@maker
def jacobian(fun: Any, argnums: ArgNums = 0, sparse: bool = False) -> Function | SparseJacobian:
    """Return a function that computes the Jacobian of ``fun``: the derivative of each element of its result.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME.
    argnums
        Which arguments, by position or name: one, or several in a tuple.
    sparse
        Whether each matrix is a ``scipy.sparse.csr_array``, with a row for each element of the result and a column for
        each of the argument. Only entries that may be nonzero by the graph are kept, and columns that share no row are
        computed together.

    Returns
    -------
    Function
        Takes the arguments of ``fun``; returns an array of shape ``result.shape + argument.shape``. Where the result is
        a container, it is one of these arrays; where ``argnums`` is a tuple or the argument a container, each array
        becomes one of them. Forward mode is used where there are fewer inputs than outputs, else reverse mode.

    Raises
    ------
    DifferentiationError
        If an argument is not real floating-point, or a result is not floating-point.

    References
    ----------
    Where ``sparse``: A. R. Curtis, M. J. D. Powell and J. K. Reid, "On the estimation of sparse Jacobian matrices", IMA Journal of
    Applied Mathematics 13 (1974), 117-119.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> derivative = jacobian(lambda x: x[1:] * x[:-1], sparse=True)
    >>> derivative(np.array([1.0, 2.0, 4.0])).toarray()
    array([[2., 1., 0.],
           [0., 4., 2.]])
    >>> derivative.colours(np.ones(1000))
    2
    """
    function = of_callable(fun)
    argnums = asked(function, argnums)
    if sparse:
        return SparseJacobian(function, argnums, "jacobian", _check)
    return _jacobian(function, argnums, None)


@overload
def hessian(fun: Any, argnums: ArgNums = 0, sparse: Literal[False] = False) -> Function: ...
@overload
def hessian(fun: Any, argnums: ArgNums = 0, *, sparse: Literal[True]) -> SparseJacobian: ...
@maker
def hessian(fun: Any, argnums: ArgNums = 0, sparse: bool = False) -> Function | SparseJacobian:
    """Return a function that computes all second derivatives of ``fun``: forward over reverse mode, in one batched pass.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME, usually of one real scalar.
    argnums
        Which arguments, by position or name: one, or several in a tuple, which gives a tuple of tuples of blocks.
    sparse
        Whether each block is a ``scipy.sparse.csr_array``, of a function of one real scalar: a row and a column for each
        element of the arguments. Its symmetry saves work.

    Returns
    -------
    Function
        Takes the arguments of ``fun``; returns an array of shape ``result.shape + argument.shape + argument.shape``.

    Raises
    ------
    DifferentiationError
        At a call, if an argument is not floating-point, or, with ``sparse``, the result is not a real scalar.

    References
    ----------
    Where ``sparse``: T. F. Coleman and J. J. Moré, "Estimation of sparse Hessian matrices and graph coloring problems", Mathematical
    Programming 28 (1984), 243-270.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    function = of_callable(fun)
    argnums = asked(function, argnums)
    if sparse:
        return SparseJacobian(grad(function, argnums), argnums, "hessian", _check, function)
    return _jacobian(_jacobian(function, argnums, "reverse"), argnums, "forward", "hessian")


def _jacobian(function: Function, argnums: ArgNums, mode: Mode | None, name: str = "jacobian") -> Function:
    single = isinstance(argnums, int | str)

    def body(*args: Any, **options: Any) -> Any:
        closed = Closed(function, args, options, argument_positions(function, argnums, len(args)))
        leaves, build = flatten(closed.result)
        results = numbers_alone(leaves, function.name)
        _check(function, results, closed.wrt)
        rows = _rows(normal_form(results, closed.wrt), closed.wrt, mode)
        blocks = behind_checks([block for row in rows for block in row], results)
        rest = iter([wrap(n) for n in closed.open(blocks)])
        arranged = [[make(rest) for _, make in closed.moving] for _ in results]
        return build(iter([parts[0] if single else tuple(parts) for parts in arranged]))

    return derived(function, name, body, argnums)


def _check(function: Function, results: Sequence[Node], wrt: Sequence[Node]) -> None:
    for node in results:
        if not node.type.inexact:
            raise DifferentiationError(
                f"{function.name} returns {node.type}, which has no derivative", "Return a float."
            )
    for node in wrt:
        if node.type.dtype.kind == "c":
            raise DifferentiationError(
                f"jacobians are with respect to real floats, but an argument of {function.name} is {node.type}",
                "Make the real and the imaginary part separate arguments.",
            )


def _rows(results: Sequence[Node], wrt: Sequence[Node], mode: Mode | None) -> list[list[Node]]:
    """Return for each result the derivatives with respect to each node."""
    if (mode or _cheaper(results, wrt)) == "reverse" and all(r.type.dtype.kind == "f" for r in results):
        return [_pulled(r, wrt) for r in results]
    columns = [_pushed(results, x) for x in wrt]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in results]


def _cheaper(results: Sequence[Node], wrt: Sequence[Node]) -> Mode:
    """Return the mode that takes fewer passes, as far as sizes are known at capture."""
    inputs, outputs = ([hint(n.type.size) for n in nodes] for nodes in (wrt, results))
    if None in inputs or None in outputs:
        return "reverse"
    return "forward" if sum(n or 0 for n in inputs) < sum(n or 0 for n in outputs) else "reverse"


def _pushed(results: Sequence[Node], x: Node) -> list[Node]:
    """Return the derivatives of ``results`` with respect to ``x``, by forward mode along every direction."""
    direction = _direction(x)
    changes = modes.jvp(results, {x: direction})
    stacks = _along_basis(changes, direction)
    return [_block(s, r, x, first=x) for s, r in zip(stacks, results, strict=True)]


def _pulled(result: Node, wrt: Sequence[Node]) -> list[Node]:
    """Return the derivatives of ``result``, by reverse mode from every element."""
    direction = _direction(result)
    stacks = _along_basis(modes.vjp([result], [direction], wrt), direction)
    return [_block(s, result, x, first=result) for s, x in zip(stacks, wrt, strict=True)]


def _direction(node: Node) -> Node:
    """Return a stand-in for a tangent or cotangent of ``node``; for a scalar, the number 1."""
    t = node.type
    return input_node(Source("direction"), t.with_shape(t.shape)) if t.shape else constant(t.dtype.type(1))


def _along_basis(found: Sequence[Tangent], direction: Node) -> list[Tangent]:
    """Return a linear function of ``direction`` for a batch of unit directions, one for each element."""
    t = direction.type
    if not t.shape:
        return list(found)
    known = [k for k, node in enumerate(found) if node is not None]
    stacks = batch([node for node in found if node is not None], {direction: _basis(t)}, t.size)
    result: list[Tangent] = [None] * len(found)
    for k, stack in zip(known, stacks, strict=True):
        result[k] = stack  # None if it does not depend on the direction: then it is zero
    return result


def _basis(t: Type) -> Node:
    n = t.size
    eye = equal(iota((n, n), 0), iota((n, n), 1))
    return reshape(astype(eye, t.dtype), (n, *t.shape))


def _block(stack: Tangent, result: Node, x: Node, first: Node) -> Node:
    """Return a batch over the elements of ``first`` as an array with the axes of ``result``, then those of ``x``."""
    dtype = x.type.dtype if result.type.dtype.kind == "f" else np.result_type(x.type.dtype, np.complex64)
    shape = (*result.type.shape, *x.type.shape)
    if stack is None:
        return broadcast(constant(dtype.type(0)), shape)
    if first is x and x.type.shape:
        stack = transpose(stack, (*range(1, stack.type.ndim), 0))
    return reshape(astype(stack, dtype), shape)
