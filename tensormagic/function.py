"""Functions over arrays: traced once for each kind of arguments, then run as one graph. ``tm.tensor`` on functions, and NAME of a cell."""

from __future__ import annotations

import functools
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture import context, namespace
from tensormagic.capture.cell import Code, execute
from tensormagic.capture.context import Capture
from tensormagic.capture.inputs import check_dtype
from tensormagic.capture.place import Buffer, Place
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.ir.errors import CaptureError, GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, input_node, open_type

Body = Callable[..., Any]  # lazy arrays in, lazy arrays out
_EXACT = 128  # argument shapes whose sizes are remembered


def _is_input(value: Any) -> bool:
    return isinstance(value, np.ndarray | float | complex | np.floating | np.complexfloating)


def fresh_input(value: Any, name: str) -> Node:
    """An input without a value, of the type of ``value`` with its sizes left open."""
    source = Source(name)
    if isinstance(value, np.ndarray):
        check_dtype(value.dtype, name)
        return input_node(source, open_type(source, value.dtype, value.shape))
    form = "python" if type(value) in {float, complex} else "scalar"
    return input_node(source, Type(np.asarray(value).dtype, (), form))  # type: ignore[arg-type]


def abstract_tensor(value: Any, name: str) -> Tensor:
    """A lazy array that stands for an argument."""
    return Tensor(Place(Buffer(fresh_input(value, name), None, name)))


@dataclass(frozen=True, eq=False)
class Trace:
    """What a body gave for abstract arguments: the nodes of arguments and results, and how results are put together."""

    leaves: list[Node]
    results: list[Node]
    build: Callable[[Any], Any]
    guards: list[Any]


def trace(body: Body, values: Sequence[Any], names: Sequence[str], arrange: Callable[[list[Any]], Any], label: str) -> Trace:
    """Run ``body`` over abstract arguments of the types of ``values``; ``arrange`` makes its arguments of the leaves."""
    capture = Capture(label, abstract=True)
    tensors = [abstract_tensor(v, n) for v, n in zip(values, names, strict=True)]
    leaves = [t.node for t in tensors]
    with context.capturing(capture):
        args, options = arrange(tensors)
        result = body(*args, **options)
        found, build = flatten(result)
        nodes = [node_of(v) for v in found]
    for tensor in tensors:
        if tensor.place.buffer.version:  # noqa: SLF001 (places are the capture's)
            raise CaptureError(
                f"{label} stores into its argument {tensor.place.buffer.name}, which is not captured in functions yet",  # noqa: SLF001 (as above)
                f"Begin with {tensor.place.buffer.name} = {tensor.place.buffer.name}.copy(), and return it.",  # noqa: SLF001 (as above)
            )
    return Trace(leaves, nodes, build, capture.guards)


@dataclass(eq=False)
class Specialisation:
    """A function for one kind of arguments."""

    graph: Graph
    program: session.Executable
    build: Callable[[Any], Any]
    extra: list[Node]
    single: bool

    def finish(self, results: list[Any]) -> Any:
        """The result as the user's function would give it."""
        return results[0] if self.single else self.build(iter(results))


@dataclass(eq=False)
class Function:
    """A captured function: a call traces it for the kind of its arguments, and runs the graph.

    Called on lazy arrays, or inside a captured cell, it gives lazy arrays; on NumPy arrays it gives NumPy arrays.

    Parameters
    ----------
    body
        What is traced: takes and gives lazy arrays. What it reads beside its arguments it takes as options.
    name, parameters
        For messages, and for arguments that are named.
    complete
        Brings arguments to their normal form: positional, with those filled in that were not given.
    fills
        Whether ``complete`` has something to do where all arguments are positional.
    reads
        The names that ``body`` reads beside its arguments, each with the dictionary that holds it.
    """

    body: Body
    name: str
    parameters: tuple[str, ...] = ()
    complete: Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]] | None = None
    reads: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    fills: bool = False
    _exact: OrderedDict[Any, tuple[Specialisation, dict[Any, int]]] = field(default_factory=OrderedDict, repr=False)
    _kinds: dict[Any, list[Specialisation]] = field(default_factory=dict, repr=False)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if context.current() is not None:
            args, options = self._completed(args, options)
            return self.body(*args, **options)
        if not options and not self.fills:
            try:
                held = tuple([id(space[name]) for name, space in self.reads])
                key = (tuple([(a.dtype, a.shape) for a in args]), held)
                program, sizes = self._exact[key]
                return program.finish(program.program.run(sizes, *args))
            except (AttributeError, KeyError, TypeError):
                pass  # not seen before in just this form
        return self._general(*self._completed(args, options))

    def _completed(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.complete(args, options) if self.complete and (options or self.fills) else (args, options)

    def _general(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        leaves, build = flatten((args, options))
        if any(isinstance(v, Tensor) for v in leaves):
            return self.body(*args, **options)
        leaves = [np.asarray(v) if hasattr(v, "__array__") and not isinstance(v, np.ndarray | np.generic) else v for v in leaves]
        moving = [_is_input(v) for v in leaves]
        held = {name: space[name] for name, space in self.reads if name in space}
        arrays = {n: v for n, v in held.items() if _is_input(v)}
        everything = [*(v for v, m in zip(leaves, moving, strict=True) if m), *arrays.values()]
        fixed = tuple([_fixed(v) for v, m in zip(leaves, moving, strict=True) if not m])
        others = tuple([id(v) for n, v in held.items() if n not in arrays])
        key = (structure((args, options)), tuple(moving), fixed, others, tuple(arrays), tuple([_signature(v) for v in everything]))
        known = self._exact.get(key)
        if known is None:
            known = self._exact[key] = self._specialise(key, leaves, moving, build, everything, list(arrays))
            if not arrays and not options and all(isinstance(v, np.ndarray) for v in args):
                self._exact[tuple([(a.dtype, a.shape) for a in args]), tuple([id(space[n]) for n, space in self.reads if n in space])] = known
            while len(self._exact) > _EXACT:
                self._exact.popitem(last=False)
        program, sizes = known
        return program.finish(program.program.run(sizes, *everything))

    def _specialise(self, key: Any, leaves: list[Any], moving: list[bool], build: Callable[[Any], Any], everything: list[Any], names: list[str]) -> tuple[Specialisation, dict[Any, int]]:
        kind = (*key[:-1], tuple([_kind(v) for v in everything]))
        shapes = [np.shape(v) for v in everything]
        for program in self._kinds.get(kind, ()):
            try:
                return program, program.graph.bind(shapes)
            except GuardError:
                continue
        program = self.specialise(leaves, moving, build, everything, names)
        self._kinds.setdefault(kind, []).append(program)
        return program, program.graph.bind(shapes)

    def specialise(self, leaves: list[Any], moving: list[bool], build: Callable[[Any], Any], everything: list[Any], names: list[str]) -> Specialisation:
        """Trace for these arguments."""
        count = sum(moving)
        labels = [*(self.parameters[k] if k < len(self.parameters) else f"argument {k + 1}" for k in range(count)), *names]

        def arrange(tensors: list[Any]) -> Any:
            rest = iter(tensors[:count])
            args, options = build(iter([next(rest) if m else v for v, m in zip(leaves, moving, strict=True)]))
            if names:
                options = {**options, **dict(zip(names, tensors[count:], strict=True))}
            return args, options

        found = trace(self.body, everything, labels, arrange, self.name)
        closed = session.close_over(found.results, found.leaves, found.guards, use_values=False)
        extra = [leaf for leaf in closed.leaves if leaf not in found.leaves]
        if extra:
            unnamed = ", ".join(str(leaf["source"]) for leaf in extra)
            raise CaptureError(f"{self.name} reads {unnamed} from outside in a way that cannot be followed", "Pass it as an argument.")
        return Specialisation(closed.graph, session.executable(closed.graph), found.build, extra, _is_single(found))

    def graph(self, *args: Any, **options: Any) -> Graph:
        """The graph for arguments of these types, before rewriting."""
        args, options = self._completed(args, options)
        leaves, build = flatten((args, options))
        moving = [_is_input(v) for v in leaves]
        arrays = {name: space[name] for name, space in self.reads if name in space and _is_input(space[name])}
        everything = [*(v for v, m in zip(leaves, moving, strict=True) if m), *arrays.values()]
        return self.specialise(leaves, moving, build, everything, list(arrays)).graph


def _is_single(found: Trace) -> bool:
    marker = object()
    return len(found.results) == 1 and found.build(iter([marker])) is marker


def _signature(value: Any) -> Any:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)


def _kind(value: Any) -> Any:
    return (value.dtype, tuple([min(n, 2) for n in value.shape])) if isinstance(value, np.ndarray) else type(value)


def _fixed(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value), value)


# functions of the user ------------------------------------------------------------------------------------------------


def _global_names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _global_names(constant)
    return found


def _reads(function: types.FunctionType) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The globals and closure cells that a function reads, and that its helpers beside it read."""
    own = set(_parameters(function))
    found: dict[str, Mapping[str, Any]] = {}
    stack, seen = [function], {function}
    while stack:
        current = stack.pop()
        for name in sorted(_global_names(current.__code__)):
            if name in current.__globals__ and name not in own:
                found.setdefault(name, current.__globals__)
                value = current.__globals__[name]
                if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__ and value not in seen:
                    seen.add(value)
                    stack.append(value)
        for name, cell in zip(current.__code__.co_freevars, current.__closure__ or (), strict=True):
            found.setdefault(name, _CellSpace(name, cell))
    return tuple(found.items())


class _CellSpace(Mapping[str, Any]):
    """A closure cell as the dictionary that holds its name."""

    def __init__(self, name: str, cell: types.CellType) -> None:
        self.name = name
        self.cell = cell

    def __getitem__(self, name: str) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:  # not filled yet
            raise KeyError(name) from None

    def __iter__(self) -> Any:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1


def captured_body(function: types.FunctionType) -> Body:
    """``function`` over the names that captured code sees; inputs among its free names are passed as options."""
    own = set(_parameters(function))
    reads = _reads(function)

    def body(*args: Any, **options: Any) -> Any:
        held = {n: space[n] for n, space in reads if n in space}
        lifted = {n: options.pop(n) if n in options and n not in own else _visible(v) for n, v in held.items()}
        return _rebind(function, {**function.__globals__, **lifted}, lifted)(*args, **options)

    return body


def _visible(value: Any) -> Any:
    return value if not _is_input(value) else wrap(node_of(value))


def _parameters(function: types.FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _rebind(function: types.FunctionType, space: dict[str, Any], lifted: Mapping[str, Any]) -> types.FunctionType:
    for name, value in list(lifted.items()):
        if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__ and value is not function:
            space[name] = _Late(value, space)
        else:
            space[name] = namespace.value_of(value)
    closure = tuple(types.CellType(space[n]) if n in lifted else c for n, c in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    rebound = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, closure or None)
    rebound.__kwdefaults__ = function.__kwdefaults__
    space[function.__name__] = rebound if space.get(function.__name__) is function else space.get(function.__name__, rebound)
    return rebound


class _Late:
    """A helper of the notebook, seen over the same names as the function that calls it."""

    def __init__(self, function: types.FunctionType, space: dict[str, Any]) -> None:
        self.function = function
        self.space = space

    def __call__(self, *args: Any, **options: Any) -> Any:
        rebound = types.FunctionType(self.function.__code__, self.space, self.function.__name__, self.function.__defaults__, self.function.__closure__)
        rebound.__kwdefaults__ = self.function.__kwdefaults__
        return rebound(*args, **options)


def _by_position(function: types.FunctionType) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]:
    signature = inspect.signature(function)

    def complete(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound = signature.bind(*args, **options)
        return bound.args, bound.kwargs

    return complete


def of_callable(function: Any) -> Function:
    """The captured function of any callable."""
    if isinstance(function, Function):
        return function
    if isinstance(function, types.FunctionType):
        made = Function(captured_body(function), function.__name__, _parameters(function), _by_position(function), _reads(function))
        functools.update_wrapper(made, function, updated=())
        return made
    if callable(function):
        return Function(function, getattr(function, "__name__", type(function).__name__))
    raise CaptureError(f"{type(function).__name__} is not a function", "Pass a function of arrays.")


# cells as functions ---------------------------------------------------------------------------------------------------


def of_cell(code: Code, name: str, inputs: Sequence[str], notebook: Mapping[str, Any]) -> Function:
    """A cell as a function of its inputs; one that is not given is read from the notebook at the call."""
    inputs = tuple(inputs)
    free = tuple(n for n in code.parsed.reads if n not in inputs and n in notebook)

    def complete(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if len(args) > len(inputs):
            raise TypeError(f"{name}() takes {len(inputs)} arguments ({', '.join(inputs)}) but {len(args)} were given")
        unknown = sorted(set(options) - set(inputs))
        if unknown:
            raise TypeError(f"{name}() got an unexpected argument {unknown[0]!r}; its inputs are {', '.join(inputs)}")
        given = dict(zip(inputs, args, strict=False))
        twice = sorted(set(given) & set(options))
        if twice:
            raise TypeError(f"{name}() got two values for {twice[0]!r}")
        given |= options
        missing = [n for n in inputs if n not in given and n not in notebook]
        if missing:
            raise TypeError(f"{name}() needs {missing[0]!r}: it is neither given nor a variable of the notebook")
        return tuple([given[n] if n in given else notebook[n] for n in inputs]), {}

    def body(*args: Any) -> Any:
        held = {n: namespace.value_of(notebook[n]) for n in free if n in notebook}
        values = {n: _visible(v) for n, v in zip(inputs, args, strict=True)}
        capture = context.current() or Capture(name)
        result, space = execute(code, {**notebook, **held, **values}, capture)
        return space.get(code.parsed.last_name) if code.last is None else result

    return Function(body, name, inputs, complete, tuple((n, notebook) for n in free if not _is_input(notebook[n])), fills=True)


__all__ = ["Function", "Specialisation", "of_callable", "of_cell"]
