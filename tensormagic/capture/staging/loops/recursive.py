"""Recursion on data in code without values: a graph function that calls itself, where unrolling would not end."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.staging.branches import merged_values
from tensormagic.capture.staging.branches.merged_values import Parts, apart, is_number
from tensormagic.capture.staging.branches.shared_arrays import Joined, share
from tensormagic.capture.staging.regions import around, graph_of, grown_type, of_type, one_type
from tensormagic.capture.staging.trials.needs_python import NeedsPython, Unknown
from tensormagic.capture.staging.trials.trial import Outcome, attempt, trial
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.modules import is_users
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, input_node
from tensormagic.ops.regions.recursion import OWN, itself, recursive

PASSES = 16
REACH = 200  # functions whose code is kept in the memo


class Recursion(NeedsPython):
    """Raised when a function calls itself under a data-dependent condition."""

    def __init__(self, code: CodeType) -> None:
        super().__init__(
            f"{code.co_name} calls itself depending on data in a way that is not supported",
            "Call it each time with numbers and arrays of the same types and shapes, and change nothing outside of it.",
        )
        self.code = code


class _TraceAgain(Exception):  # noqa: N818 (a function is traced once more)
    pass


@dataclass(eq=False)
class Plain:
    """Represents a call whose function runs directly; ``depth`` is the number of trials around it, None if it may recurse."""

    depth: int | None


@dataclass(eq=False)
class Traced:
    """Represents a function of the graph that is being traced.

    Parameters
    ----------
    name
        The name by which its calls refer to it.
    leaves
        The leaves of the first call's arguments.
    form
        What the arguments of all calls have in common.
    moving
        The arguments that differ between calls, by number, and their types.
    free
        The outside values that it reads.
    parts, types
        Its result as parts, and their types.
    tells
        Whether it checks or prints something.
    """

    name: str
    leaves: list[Any]
    form: Any
    moving: dict[int, Type] = field(default_factory=dict[int, Type])
    free: list[Node] = field(default_factory=list[Node])
    parts: Parts | None = None
    types: list[Type] = field(default_factory=list[Type])
    tells: bool = False

    def called(self, args: Any) -> Any:
        """Record a call of the function inside itself; return its value."""
        leaves, _ = flatten(args)
        if structure(args) != self.form:
            raise NeedsPython(
                "a function calls itself with arguments of a different structure",
                "Call it with arguments of the same structure each time.",
            )
        new = {
            k
            for k, (a, b) in enumerate(zip(self.leaves, leaves, strict=True))
            if k not in self.moving and not merged_values.same_value(a, b)
        }
        if not all(is_number(leaves[k]) and is_number(self.leaves[k]) for k in new):
            raise NeedsPython(
                "a function calls itself with a different text, function or object", "Call it with numbers and arrays."
            )
        types = {k: node_of(self.leaves[k]).type for k in new} | self.moving
        for k, t in types.items():
            start = node_of(self.leaves[k]).type
            types[k] = grown_type("a function calls itself", "an argument", start, t, node_of(leaves[k]).type)
        if types != self.moving:
            self.moving = dict(sorted(types.items()))
            raise _TraceAgain
        if self.parts is None:
            running = trial()
            unknown = Unknown()
            if running is not None:
                running.raised, running.place = unknown, ()
            raise unknown
        operands = [of_type(node_of(leaves[k]), t) for k, t in self.moving.items()]
        return self.given(itself(self.name, [*operands, *self.token(), *self.free], self.types_of_all()))

    def learn(self, parts: Parts) -> bool:
        """Record the types of the function's result; return whether these were known."""
        own = self.name.removeprefix(OWN)
        if not parts.numeric or any(d is not None for d in parts.defined):
            raise NeedsPython(f"{own} calls itself, and does not return a number", "Return numbers and arrays.")
        if any(nodes_of(s) for n in parts.nodes for s in n.type.shape):
            raise NeedsPython(
                f"{own} calls itself, and returns an array whose size depends on data", "Return arrays of one size."
            )
        if self.parts is not None and self.parts.form != parts.form:
            raise NeedsPython(
                f"{own} calls itself, and returns values of different structures", "Return values of one structure."
            )
        types = [n.type for n in parts.nodes]
        if self.parts is not None:
            types = [one_type(f"{own} calls itself, and returns", a, b) for a, b in zip(self.types, types, strict=True)]
        known = self.parts is not None and types == self.types
        self.parts, self.types = parts, types
        return known

    def token(self) -> list[Node]:
        """Return the node that stands for the checks so far, if the function makes some."""
        capture = context.current()
        return [node_of(capture.order.checks[CHECKS])] if self.tells and capture is not None else []

    def types_of_all(self) -> list[Type]:
        """Return the types of all results."""
        return [*self.types, *(n.type for n in self.token())]

    def given(self, found: Sequence[Node]) -> Any:
        """Return the value of a call, from the results of its node."""
        capture = context.current()
        if self.parts is None or capture is None:
            raise AssertionError
        if self.tells:
            capture.order.checks[CHECKS] = wrap(found[-1])
        nodes = map(context.record, found[: len(self.types)])
        return self.parts.build([Tensor(Place(Buffer(n))) for n in nodes])


# what calls itself ----------------------------------------------------------------------------------------------------

_recursive: dict[CodeType, bool] = {}
_KEPT = 4096


def code_that_calls_itself(function: Any) -> CodeType | None:
    """Return the code of a function that names itself, or one that names it; None for any other function."""
    inner = _innermost(function)
    if inner is None or not is_users(inner.__code__.co_filename):
        return None
    code = inner.__code__
    found = _recursive.get(code)
    if found is None:
        found = _recursive[code] = _reaches(inner, code)
        if len(_recursive) > _KEPT:
            _recursive.pop(next(iter(_recursive)), None)
    return code if found else None


def _innermost(function: Any) -> FunctionType | None:
    while not isinstance(function, FunctionType):
        function = inspect.getattr_static(
            function, "__wrapped__", None
        )  # which a class of the user's may compute otherwise
        if function is None:
            return None
    return function


def _reaches(function: FunctionType, code: CodeType) -> bool:
    pending, seen = [function], set[CodeType]()
    while pending and len(seen) < REACH:
        for value in map(_innermost, _named(pending.pop())):
            if value is None or not is_users(value.__code__.co_filename):
                continue
            if _where(value.__code__) == _where(code):
                return True
            if value.__code__ not in seen:
                seen.add(value.__code__)
                pending.append(value)
    return False


def _where(code: CodeType) -> tuple[Any, ...]:
    return code.co_filename, code.co_name, code.co_firstlineno


def _named(function: FunctionType) -> list[Any]:
    space = function.__globals__
    found = [space[n] for n in names_in(function.__code__) if n in space]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return found


# calls ----------------------------------------------------------------------------------------------------------------


def calling(function: Callable[..., Any], code: CodeType) -> Callable[..., Any]:
    """Return a replacement for a function that may call itself under data-dependent conditions."""

    def call(*args: Any, **options: Any) -> Any:
        capture = context.current()
        if capture is None:
            return function(*args, **options)
        key = _where(code)
        active = capture.running.recursions.get(key)
        if isinstance(active, Traced):
            return active.called((args, options))
        if active is None:
            return _first(function, code, args, options)
        if active.depth is not None and len(capture.heap.trials) > active.depth:
            raise Recursion(code)
        return function(*args, **options)

    return call


def _first(function: Callable[..., Any], code: CodeType, args: Any, options: Any) -> Any:
    """Return the value of a call from outside: direct, unless the function calls itself under a data-dependent condition."""
    key = _where(code)
    capture = context.current()
    if capture is None:
        raise AssertionError
    try:
        capture.running.recursions[key] = Plain(len(capture.heap.trials) + 1)
        try:
            return attempt(World([function]), lambda: function(*args, **options), lambda _result: True).result
        except Recursion as error:
            if _where(error.code) != key:
                raise
            failed: NeedsPython = error
        except RecursionError:  # deeper than Python's limit, with what is traced on the way
            failed = Recursion(code)
        except NeedsPython as error:
            failed = error
        if isinstance(failed, Recursion):
            traced = Traced(_name(capture, code.co_name), flatten((args, options))[0], structure((args, options)))
            capture.running.recursions[key] = traced
            return _traced(traced, function, args, options)
        capture.running.recursions[key] = Plain(None)
        return function(*args, **options)
    finally:
        del capture.running.recursions[key]


def _name(capture: context.Capture, own: str) -> str:
    """Return a name that no function which is being traced has."""
    used = {a.name for a in capture.running.recursions.values() if isinstance(a, Traced)}
    name = OWN + (own if own.isidentifier() else "function")
    while name in used:
        name += "_"
    return name


def _traced(traced: Traced, function: Callable[..., Any], args: Any, options: Any) -> Any:
    """Return the results of a graph function, traced until its arguments and results settle."""
    world = World([function])
    leaves, build = flatten((args, options))
    traced.moving = {k: v.type for k, v in enumerate(leaves) if isinstance(v, Tensor)}
    for _ in range(PASSES):
        try:
            stand_ins, results = _iteration(traced, world, function, leaves, build)
        except _TraceAgain:
            continue
        if results is None:
            continue
        free = around(results, stand_ins)
        if free != traced.free:
            traced.free = free
            continue
        graph = graph_of(results, [*stand_ins, *free])
        operands = [of_type(node_of(leaves[k]), t) for k, t in traced.moving.items()]
        found = recursive(traced.name, {traced.name: graph}, [*operands, *traced.token(), *free])
        result = traced.given(found)
        _share(result, [v for v in leaves if isinstance(v, Tensor)])
        return result
    raise NeedsPython(
        f"{traced.name.removeprefix(OWN)} calls itself, and the types of its arguments keep changing",
        "Begin with the types that an iteration ends with.",
    )


def _iteration(
    traced: Traced, world: World, function: Callable[..., Any], leaves: list[Any], build: Callable[..., Any]
) -> tuple[list[Node], list[Node] | None]:
    """Trace the function once; return stand-ins for its arguments and its results, None where something new was found out."""
    capture = context.current()
    if capture is None:
        raise AssertionError
    inner = {k: input_node(Source(f"argument {k}"), t) for k, t in traced.moving.items()}
    values = [wrap(inner[k]) if k in inner else v for k, v in enumerate(leaves)]
    token = [input_node(Source("checks"), n.type) for n in traced.token()]

    def run() -> Any:
        if token:
            capture.order.checks[CHECKS] = wrap(token[0])
        args, options = build(iter(values))
        return function(*args, **options), *([capture.order.checks[CHECKS]] if token else [])

    try:
        outcome = attempt(world, run)
    except Unknown:
        raise NeedsPython(
            f"{traced.name.removeprefix(OWN)} always calls itself",
            "Let it return without calling itself for some data.",
        ) from None
    _settled(outcome)
    if any(s.name == CHECKS for s in outcome.slots) and not traced.tells:
        traced.tells = True
        return [], None
    value, *after = outcome.result
    parts = outcome.seen(lambda: apart(value, asked=True))
    if not traced.learn(parts):
        return [], None
    results = [of_type(n, t) for n, t in zip(parts.nodes, traced.types, strict=True)]
    return [*inner.values(), *token], [*results, *(node_of(t) for t in after)]


def _settled(outcome: Outcome) -> None:
    if any(s.name != CHECKS for s in outcome.slots) or outcome.buffers or outcome.grown:
        raise NeedsPython(
            "a function that calls itself depending on data changes something outside it",
            "Pass what it changes as an argument, and return it.",
        )


def _share(result: Any, given: Sequence[Tensor]) -> None:
    """Treat an array that a function returns as possibly a part of its arguments."""
    arrays = [v for v in flatten(result)[0] if isinstance(v, Tensor) and v.type.form == "array"]
    known = tuple(t for t in given if t.type.form == "array")
    share([Joined(array, known) for array in arrays], lambda _buffer: True)
