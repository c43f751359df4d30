"""A lazy value as a function of the notebook's variables that it was computed from: what views of it compute, and follow."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from IPython.core.getipython import get_ipython

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.summary import is_on_device
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.gradients.gradient_nodes import replace
from tensormagic.functions.reads.reading import Read, look
from tensormagic.ir import site
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, resized, topological
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import INPUT, Source, input_node
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.region import matched

_AGAIN = "Run the cell that computes it again."


def notebook_variables() -> dict[str, Any]:
    """Return the variables of the notebook that this runs in; none, where it runs in none."""
    shell: Any = get_ipython()
    return shell.user_ns if shell is not None else {}


class _AsRead(Mapping[str, Any]):
    """The notebook's variables by the names that inputs have: ``w``, ``data.target``, ``parts['k']``; lists and lazy values as arrays."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self._space = space

    def __getitem__(self, name: str) -> Any:
        try:
            value = self._space[name] if name in self._space else _found(ast.parse(name, mode="eval").body, self._space)
        except Exception as error:  # (an attribute may do anything)
            raise KeyError(name) from error
        if isinstance(value, Tensor):  # what it was computed from is not what is shown
            return value if value.node.op is INPUT or is_on_device(value) else _known(value)
        if isinstance(value, list | tuple) or (hasattr(value, "__array__") and not isinstance(value, _READ_AS_IT_IS)):
            with suppress(Exception):  # other values raise an error where they are used
                return np.asarray(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._space)

    def __len__(self) -> int:
        return len(self._space)


class AsComputed(Mapping[str, Any]):
    """The notebook's variables, with computed values in place of lazy ones among the names that a cell reads.

    Parameters
    ----------
    holder
        The notebook's variables themselves.
    names
        The names that the cell reads.
    """

    def __init__(self, holder: Mapping[str, Any], names: Container[str]) -> None:
        self.holder, self._names = holder, names

    def __getitem__(self, name: str) -> Any:
        value = self.holder[name]
        lazy = name in self._names and isinstance(value, Tensor) and value.node.op is not INPUT
        return _known(value) if lazy and not is_on_device(value) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self.holder)

    def __len__(self) -> int:
        return len(self.holder)


def _known(value: Tensor) -> Any:
    """Return the value of a lazy array, where a function of the notebook's variables is captured, too."""
    with value.leveled():
        return hooks.compute([value.node])[0]


_READ_AS_IT_IS = (np.ndarray, np.generic, Tensor)


def _found(place: ast.expr, space: Mapping[str, Any]) -> Any:
    """Return the value of a variable, or of its attributes and constant keys."""
    match place:
        case ast.Name(id=name):
            return space[name]
        case ast.Attribute(value=inner, attr=attribute):
            return getattr(_found(inner, space), attribute)
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            return _found(inner, space)[key]
        case _:
            raise KeyError(ast.unparse(place))


def variables_of(node: Node, space: Mapping[str, Any]) -> dict[Node, str]:
    """Return the inputs of a value that variables of the notebook hold, unless the variable has changed since."""
    leaves = [n for n in topological([node]) if n.op is INPUT]
    lazy = {v.node: n for n, v in reversed(list(space.items())) if isinstance(v, Tensor) and not n.startswith("_")}
    seen = _AsRead(space)
    return {leaf: name for leaf in leaves if (name := _variable_of(leaf, seen) or lazy.get(leaf, ""))}


def _variable_of(leaf: Node, space: Mapping[str, Any]) -> str:
    name = leaf["source"].name
    return name if name in space and _was_read(space[name], leaf) else ""


def _was_read(value: Any, leaf: Node) -> bool:
    """Return whether a variable holds what an input has read from it."""
    if isinstance(value, Tensor):
        return value.node is leaf
    read = leaf["source"].value
    if not isinstance(value, np.ndarray | np.number | float | complex) or read is None:
        return False
    now, then = np.asarray(value), np.asarray(read)
    if now.shape != then.shape or now.dtype != then.dtype:
        return False
    return now is then or np.ascontiguousarray(now).tobytes() == np.ascontiguousarray(then).tobytes()


def function_of(value: Tensor, name: str, moved: Mapping[str, Node], space: Mapping[str, Any]) -> Function:
    """Return a lazy value as a function of some of its inputs; the others are read from the notebook at each call.

    Parameters
    ----------
    value
        The value.
    name
        Its name.
    moved
        The inputs that become parameters, by name.
    space
        The notebook's variables. An input that none of them holds, as after a rebinding, keeps its value.
    """
    movable = {leaf: _movable(leaf) for leaf in moved.values()}
    closed = session.close_over(replace([value.node], movable), use_values=False)
    graph, leaves = closed.graph, closed.leaves
    places: dict[Node, list[site.Site]] = {}
    for node, inner in closed.mapping.items():  # other cells may close to equal nodes, which have their places too
        if inner.op is node.op:  # not what closing has left out, as stretching to a size that is found equal
            places.setdefault(inner, []).extend(site.of(node))
    parameters = {movable[leaf]: parameter for parameter, leaf in moved.items()}
    variables = {leaf: n for leaf, n in variables_of(value.node, space).items() if leaf not in movable}
    seen = _AsRead(space)

    def body(*args: Any, **options: Any) -> Any:
        given = dict(zip(moved, args, strict=False)) | options
        nodes: list[Node] = []
        for leaf in leaves:
            if leaf in parameters:
                nodes.append(_in_type(node_of(given[parameters[leaf]]), leaf.type))
            elif leaf in variables:
                nodes.append(_as_read((variables[leaf], seen), leaf, name))
            else:
                nodes.append(leaf)
        try:
            return wrap(_over(graph, nodes, name, places))
        except ShapeError as error:
            shapes = " and ".join(f"{n} {list(np.shape(seen[n]))}" for n in variables.values() if np.shape(seen[n]))
            raise ShapeError(f"{name} cannot be computed from {shapes}", _AGAIN) from error

    return Function(body, name, tuple(moved), reads=tuple((n, seen) for n in variables.values()), roots=())


def _as_read(read: Read, leaf: Node, name: str) -> Node:
    """Return what a variable holds now, where the value's graph can be computed from it."""
    variable, space = read
    if variable not in space:
        raise NameError(f"{variable}, which {name} was computed from, no longer exists")
    now, then = look(read), leaf.type
    node = now.node if isinstance(now, Tensor) else None
    if node is None or node.type.dtype != then.dtype or node.type.ndim != then.ndim:
        found = type(now).__name__ if node is None else node.type
        raise DTypeError(f"{variable} is {found}, but {name} was computed from {then}", _AGAIN)
    return _in_type(node, then)


def _movable(leaf: Node) -> Node:
    """Return an input that sliders can move: of whole numbers one of floats, for between them there are others."""
    if leaf.type.dtype.kind == "f":
        return leaf
    return input_node(Source(leaf["source"].name), Type(np.dtype(float), leaf.type.shape, leaf.type.form))


def _in_type(node: Node, t: Type) -> Node:
    """Return a node in the dtype and in the rank-0 form of a type."""
    cast = astype(node, t.dtype)
    return cast if t.shape else to_form(cast, t.form)


def _over(graph: Graph, operands: Sequence[Node], name: str, places: Mapping[Node, Sequence[site.Site]]) -> Node:
    """Return the result of a graph applied to operands; the new nodes get the places where the old ones were written."""
    found, guards = matched(graph, operands, name)
    capture = context.current()
    if capture is not None:
        capture.guards += guards
    sizes: dict[Any, Size] = dict(found)
    memo = dict(zip(graph.parameters, operands, strict=True))
    for node in topological(graph.results):
        if node not in memo:
            new = memo[node] = resized(node, [memo[a] for a in node.args], sizes)
            size = as_size(new)
            if size is not None:
                sizes[node] = size
            for place in places.get(node, ()):
                site.record(new, place)
    return memo[graph.results[0]]
