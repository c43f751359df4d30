"""Derivatives of functions over arrays: grad, jvp, vjp and their kin, each a function that can be differentiated again."""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from types import MethodType
from typing import Any

import numpy as np

from tensormagic.capture import context, living, taken, usercode
from tensormagic.capture.abstract import stand_in_tensor
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import Snapshot, same_bits, unread
from tensormagic.capture.operands import build, node_of
from tensormagic.capture.random import Drawn
from tensormagic.capture.stores.holding import is_own
from tensormagic.capture.stores.overlap import through_memory
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, owned, wrap
from tensormagic.config import config
from tensormagic.functions.constant import warn_constant
from tensormagic.functions.function import Function, of_callable
from tensormagic.functions.gives import Copies
from tensormagic.functions.left import left_behind
from tensormagic.functions.program import refuse_stores
from tensormagic.functions.results import numbers_alone, numbers_in
from tensormagic.functions.travel import maker
from tensormagic.ir import site
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, rebuild, topological
from tensormagic.ops.effects.raising import behind_checks
from tensormagic.ops.leaf import INPUT, Source, constant, input_node
from tensormagic.ops.move import broadcast
from tensormagic.ops.named import NAMED, is_bare, unnamed
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes
from tensormagic.transform.rewriting import rewrite_nodes

ArgNums = int | str | Sequence[int | str]


def gradient_nodes(result: Node, wrt: Sequence[Node]) -> list[Node]:
    """The gradient of a scalar node: the primal is rewritten first, so that what is differentiated is stable.

    What shares memory with an array of the notebook changes with that.
    """
    as_function = {n: through_memory(result, n) for n in wrt}
    alone = [n for n in wrt if as_function[n] is result]
    found = dict(zip(alone, modes.gradient(normal_form([result], alone)[0], alone), strict=True)) if alone else {}
    for node in wrt:
        if node not in found:
            (found[node],) = modes.gradient(normal_form([as_function[node]], [node])[0], [node])
    return [found[n] for n in wrt]


def value_and_gradient_nodes(result: Node, wrt: Sequence[Node]) -> tuple[Node, list[Node]]:
    """As :func:`gradient_nodes`, with the value before it: the one whose loops also record what the gradient reads."""
    stable = normal_form([result], wrt)[0]
    value, gradient = modes.value_and_gradient(stable, wrt)
    return result if value is stable else value, gradient


def normal_form(results: Sequence[Node], keep: Sequence[Node] = ()) -> list[Node]:
    """``results`` after rewriting; ``keep`` are leaves for the rewriting, so that they stay what they are."""
    if not results:
        return []
    stand_ins = {n: input_node(Source(f"kept{k}"), n.type) for k, n in enumerate(keep) if n.op is not INPUT}
    replaced = unnamed(replace(results, stand_ins))
    rewritten, _ = rewrite_nodes(replaced, config.math)
    return replace(rewritten, {v: k for k, v in stand_ins.items()})


def replace(results: Sequence[Node], mapping: dict[Node, Node]) -> list[Node]:
    """``results`` with nodes replaced; what is rebuilt keeps its sites."""
    if not mapping:
        return list(results)
    memo = dict(mapping)
    for node in topological(results, stop=lambda n: n in mapping):
        if node not in memo:
            memo[node] = rebuild(node, [memo[a] for a in node.args], memo)
            if memo[node] is not node:
                for place in site.of(node):
                    site.record(memo[node], place)
    return [memo[r] for r in results]


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
            for leaf in leaves:
                _refuse_object(leaf, name, function.name)
            nodes = [self._stand_in(node_of(v), function, name) for v in leaves]
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
    return [] if capture is None else [v for v in capture.lifted.values() if isinstance(v, Tensor)]


def argument_positions(function: Function, argnums: ArgNums, count: int) -> list[int]:
    """The positions that ``argnums`` means in a call with ``count`` arguments."""
    wanted = argnums if isinstance(argnums, Sequence) and not isinstance(argnums, str) else [argnums]
    found: list[int] = []
    for item in wanted:
        if isinstance(item, str):
            if item not in function.parameters:
                raise DifferentiationError(
                    f"{function.name} has no argument {item!r}; it has {', '.join(function.parameters)}"
                )
            found.append(function.parameters.index(item))
            if found[-1] >= count:
                raise DifferentiationError(
                    f"{item} of {function.name} was not given: there is no derivative with respect to a default value",
                    f"Pass {item}.",
                )
        else:
            found.append(
                operator.index(item) % count if -count <= item < count else _no_argument(function, item, count)
            )
    if len(set(found)) < len(found):
        raise DifferentiationError(f"argnums {argnums!r} name an argument of {function.name} twice")
    return found


def _no_argument(function: Function, item: int, count: int) -> int:
    raise DifferentiationError(f"{function.name} is called with {count} arguments: there is no argument number {item}")


def derived(function: Function, name: str, body: Callable[..., Any]) -> Function:
    """A function of the same arguments as ``function``, with another body."""
    label = f"{name}({function.name})"
    made = Function(
        body,
        label,
        function.parameters,
        function.complete,
        function.reads,
        function.fills,
        function.roots,
        function.math,
    )
    _derived.add(made)
    return made


_derived: weakref.WeakSet[Function] = weakref.WeakSet()  # that a derivative is constant is nothing to warn of


def kept(make: Callable[..., Function], fun: Any, *key: Any) -> Function:
    """``make(fun, *key)``, once for each function itself and key; what is made while code is traced is not kept."""
    if context.current() is not None:
        return make(fun, *key)
    try:
        return _made(make, _Same(fun), key)
    except TypeError:  # a key that is not hashable
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


@maker
def value_and_grad(fun: Any, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """A function that gives the value of ``fun`` and its gradient.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME, that gives one real scalar (with ``has_aux``: and something beside it).
    argnums
        Which arguments, by position or name: one, or several in a tuple.
    has_aux
        Whether ``fun`` gives a pair of the scalar and something that is not differentiated.

    Returns
    -------
    Function
        Takes the arguments of ``fun``; gives ``(value, gradient)``, the gradient a tuple where ``argnums`` is one.

    Raises
    ------
    DifferentiationError
        Where the result is no real scalar, or an argument no float.

    Examples
    --------
    >>> value_and_grad(lambda x: 2 * x**3 + 8)(1.0)
    (10.0, 6.0)
    """
    function = of_callable(fun)
    single, argnums = isinstance(argnums, int | str), deepcopy(argnums)  # as they are now

    def body(*args: Any, **options: Any) -> Any:
        closed = Closed(function, args, options, argument_positions(function, argnums, len(args)))
        value, aux = closed.result if has_aux else (closed.result, None)
        scalar_node = _scalar(value, function)
        result, found = value_and_gradient_nodes(scalar_node, closed.wrt)
        if function not in _derived:
            warn_constant(function.name, scalar_node, closed.named())
        gradient = closed.arranged(behind_checks(found, [scalar_node]), single)
        first = wrap(closed.open([result])[0])
        if not has_aux:
            return first, gradient
        leaves, build = flatten(aux)
        return (first, build(iter([wrap(n) for n in closed.open([node_of(v) for v in leaves])]))), gradient

    return derived(function, "value_and_grad", body)


@maker
def grad(fun: Any, argnums: ArgNums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of ``fun``; see :func:`value_and_grad`.

    Examples
    --------
    >>> grad(grad(lambda x: 2 * x**3 + 8))(1.0)
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux)

    def body(*args: Any, **options: Any) -> Any:
        value, gradient = both.body(*args, **options)
        return (gradient, value[1]) if has_aux else gradient

    return derived(of_callable(fun), "grad", body)


def like(tangent: Any, node: Node) -> Node:
    """A tangent of ``node``: of its dtype and shape."""
    return broadcast(astype(node_of(tangent), node.type.dtype), node.type.shape)


def jvp(fun: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``fun`` at ``primals`` and its directional derivative along ``tangents``.

    Examples
    --------
    >>> jvp(lambda x: 2 * x**3 + 8, (1.0,), (1.0,))
    (10.0, 6.0)
    """
    if len(primals) != len(tangents):
        raise DifferentiationError(
            f"jvp takes a tangent for each primal, but {len(tangents)} were given for {len(primals)}"
        )
    return kept(_pushing, fun)(tuple(primals), tuple(tangents))


def _pushing(fun: Any) -> Function:
    function = of_callable(fun)

    def body(points: Any, directions: Any) -> Any:
        return pushed(Closed(function, tuple(points), {}, range(len(points))), directions)

    return Function(body, f"jvp({function.name})", reads=function.reads, roots=function.roots, math=function.math)


def pushed(closed: Closed, directions: Any) -> tuple[Any, Any]:
    """The results of what was run, and how they change along directions of its arguments."""
    leaves, build = flatten(closed.result)
    results = [node_of(v) for v in leaves]
    moves, _ = flatten(tuple(directions))
    stable = normal_form(results, closed.wrt)
    known = {n: like(t, n) for n, t in zip(closed.wrt, moves, strict=True)}
    wider, found = modes.push(stable, known)
    changes = [zeros_like(r) if t is None else t for r, t in zip(results, found, strict=True)]
    results = [r if new is old else new for r, new, old in zip(results, wider, stable, strict=True)]
    first, second = [iter([wrap(n) for n in closed.open(nodes)]) for nodes in (results, changes)]
    return build(first), build(second)


def hvp(fun: Any, primals: Any, vector: Any) -> Any:
    """The product of the Hessian of ``fun`` and ``vector``: forward over reverse.

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
    """``value``, which derivatives take for a constant."""
    return build(scalar.stop_gradient, value)


def not_alone(value: Any, name: str = "the value", result: Node | None = None) -> str:
    """What is to be told of a gradient by a value that another one is, too: an expression that is there twice; else nothing.

    The other one may have no name: ``result`` then is made of an expression that says the same once more.

    Raises
    ------
    DifferentiationError
        For what was made of constants alone.
    """
    if not isinstance(value, Tensor) or not value.type.inexact or (node := value.node).op in {INPUT, NAMED}:
        return ""
    if is_bare(node):
        raise DifferentiationError(
            f"{name} is computed from constants alone: it cannot be distinguished from equal constants",
            "Make it a lazy value first, tm.tensor(np.asarray(w)), and compute with that.",
        )
    named = any(other.node is node for other in living.held() if other is not value and not _shares(other, value))
    if not named and (result is None or not _is_said_again(node, result)):
        return ""
    return (
        f"{name} and another lazy value are the same expression, so the gradient counts both. To tell them apart, "
        "write a function and differentiate that: tm.grad(lambda w: ...)(w)"
    )


def _is_said_again(node: Node, result: Node) -> bool:
    """Whether what uses ``node`` in ``result`` has the expression in it, written out, and ``node`` was built elsewhere, too."""
    places = site.of(node)
    if len(places) < 2:
        return False
    users = [s for n in topological([result]) if node in n.args for s in site.of(n)]
    return any(any(s in user for s in places) and any(s not in user for s in places) for user in users)


def _shares(other: Any, value: Tensor) -> bool:
    return not isinstance(other, Tensor) or other.place.buffer is value.place.buffer


def input_of(result: Node, wrt: Any) -> Node:
    """The node that a gradient is with respect to: a lazy value's, or the input of that name, or that array's or number's."""
    number = not isinstance(wrt, Tensor) and isinstance(wrt, int | float | complex | np.number)
    if not number and not isinstance(wrt, str | np.ndarray):
        if told := not_alone(wrt, result=result):
            warnings.warn(told, UserWarning, stacklevel=4)
        taken.tell(result, node_of(wrt), "what it is differentiated by")
        return node_of(wrt)
    sources = {n: n["source"] for n in topological([result]) if n.op is INPUT}
    if isinstance(wrt, str):
        found = [n for n, source in sources.items() if source.name == wrt]
    elif not isinstance(wrt, np.ndarray):
        found = _inputs_of(wrt, sources)
    else:
        found = [n for n, source in sources.items() if isinstance(source, Snapshot) and source.is_of(wrt)]
        leaf = unread(wrt)
        if not found and through_memory(result, leaf) is not result:  # a part of what it depends on, or the whole
            return leaf
    what = repr(wrt) if isinstance(wrt, str) or number else "the array"
    if len(found) != 1:
        names = ", ".join(sorted({source.name for source in sources.values()})) or "nothing"
        many = f"several inputs have this {'value' if number else 'name'}" if found else f"it depends on {names}"
        raise DifferentiationError(
            f"{what} is not an input of this value: {many}",
            "Name an input, as in y.grad('x'); an array must be the one that the cell read, and unchanged since.",
        )
    taken.tell(result, found[0], what)
    return found[0]


def _inputs_of(number: Any, sources: Mapping[Node, Any]) -> list[Node]:
    """The inputs that were read as this number: where there are several, those under a name that it has where the user's code is."""
    array, held = np.asarray(number), [(n, s) for n, s in sources.items() if isinstance(s, Snapshot)]
    same = [(n, s) for n, s in held if not isinstance(s.value, np.ndarray) and same_bits(np.asarray(s.value), array)]
    names = {name for name, value in usercode.user_names(usercode.user_frame()).items() if value is number}
    named = [n for n, s in same if s.name in names]
    return named or [n for n, _ in same]


def _tensor_grad(self: Tensor, wrt: Any) -> Any:
    """The gradient of this lazy scalar with respect to ``wrt``: a lazy value, an array known by identity, or a tuple of these."""
    several = isinstance(wrt, tuple | list)
    nodes = [input_of(self.node, v) for v in (wrt if several else (wrt,))]
    with self.leveled():
        found = [owned(wrap(n), numbers=True) for n in gradient_nodes(self.node, nodes)]
    return tuple(found) if several else found[0]


hooks.methods["grad"] = _tensor_grad
