"""Trying code out: what it has changed is found out, and put back."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, MutableMapping
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context, usercode
from tensormagic.capture.deferred import Deferred, parts_of
from tensormagic.capture.makers import is_function
from tensormagic.capture.operands import node_of
from tensormagic.capture.refusal import is_met_by_numpy
from tensormagic.capture.staging.attributes import (
    Attributes,
    containers_of,
    differs,
    is_longer,
    is_users_class,
    is_users_module,
    refill,
)
from tensormagic.capture.staging.slots import Slot
from tensormagic.capture.steps import named
from tensormagic.capture.stores.place import Buffer, ask_all, serials
from tensormagic.capture.stores.state import State
from tensormagic.capture.unused import raises, unused_on_trial
from tensormagic.capture.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError, DTypeError, ForeignStoreError, ShapeError
from tensormagic.ir.modules import is_users, package_of
from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects.checks import REQUIRE

DEPTH = 40  # of trials within trials
CHECKS = "__tensor_checks__"  # what ``Capture.checks`` holds
MOST = 20_000  # values that are looked at
ARRAY_BYTES = 2**24  # of arrays that are copied, in case the code stores into them


class NeedsPython(CaptureError, told_as=CaptureError):  # noqa: N818 (says what to do about it)
    """Code that Python has to run: it wants a value, or has an effect, that no graph can hold."""


class BeginsWeakly(NeedsPython):
    """What a loop begins with is a number of Python's, in which its first iteration computes more precisely than the others."""


class ForeignArrayError(NeedsPython, ForeignStoreError):
    """An array of NumPy's own where one is needed that is captured: a function takes those that objects hold for inputs then."""


class UnlikeShapesError(NeedsPython, ShapeError, told_as=ShapeError):
    """Control flow gives one name values of several shapes."""


class UnlikeDTypesError(NeedsPython, DTypeError, told_as=DTypeError):
    """Control flow gives one name values of several dtypes."""


class Unknown(Exception):  # noqa: N818 (a way that is not looked at yet)
    """What a function that calls itself gives, where that is not known yet."""


class Grows(NeedsPython):
    """A list or a dictionary grows a data-dependent number of times."""


# what code can reach --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _names_in(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in code, and in the code inside it."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_names_in(constant)))
    return tuple(found)


class Journaled:
    """An object of ours whose changes are changes of its ``state``."""

    state: dict[str, Tensor]


class World:
    """What functions can reach: their variables, the containers that these hold, and the functions that they name."""

    def __init__(self, functions: Iterable[Callable[..., Any]]) -> None:
        self.variables: dict[Any, Slot] = {}
        self.items: dict[Any, Slot] = {}
        self.containers: list[tuple[Any, Any]] = []
        self.arrays: list[State] = []
        self.has_arrays = False
        self.tensors: list[Tensor] = []
        self.growing: dict[int, list[Any]] = {}  # lists that the code may append to, by their id
        self.adding = False  # whether the code may give dictionaries and objects items that they do not have
        self.grown: list[tuple[list[Any], list[Any]]] = []  # what it has appended to these
        self.readers: dict[Any, list[FunctionType]] = {}  # the functions that name a variable
        self.iterators: dict[int, Any] = {}  # whose values are gone once they are taken, by their id
        self._seen: set[int] = set()
        self._classes: set[type] = set()
        self._pending: deque[Any] = deque(functions)
        self._bytes = 0
        while self._pending and len(self._seen) < MOST:
            self._look(self._pending.popleft())
        capture = context.current()
        if capture is not None:
            self._variable(capture.checks, CHECKS, CHECKS)
        self.values = {key: slot.get() for key, slot in self.variables.items()}

    def slot(self, function: Any, name: str) -> Slot:
        """The variable ``name`` of a function."""
        code: CodeType = function.__code__
        inner = name in code.co_freevars
        holder = function.__closure__[code.co_freevars.index(name)] if inner else function.__globals__
        found = self._variable(holder, None if inner else name, name)
        self.values.setdefault((id(holder), found.key), found.get())
        return found

    def _variable(self, holder: Any, key: Any, name: str) -> Slot:
        return self.variables.setdefault((id(holder), key), Slot(holder, key, name))

    def _look(self, value: Any) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor | Deferred):
            self._pending += parts_of(value)
            self.tensors += [value] if isinstance(value, Tensor) else []
        elif isinstance(value, np.ndarray):
            self._look_at_array(value)
        elif isinstance(value, FunctionType):
            self._look_at_function(value)
        elif isinstance(value, MethodType):
            self._pending += [value.__func__, value.__self__]
        elif isinstance(value, list | deque | set | bytearray | array | dict):
            self._look_at_container(value)
        elif isinstance(value, tuple | frozenset):
            self._pending += [v for v in value if type(v) not in _NUMBERS]
        elif isinstance(value, Journaled):
            self._pending.append(value.state)
        elif not is_function(value):  # nothing that it holds is captured code's
            self._look_at_object(value)

    def _look_at_container(self, value: Any) -> None:
        numbers = isinstance(value, bytearray | array)
        self.containers.append(
            (value, dict(value) if isinstance(value, dict) else value[:] if numbers else value.copy())
        )
        held = () if numbers else value.values() if isinstance(value, dict) else value
        self._pending += [v for v in held if type(v) not in _NUMBERS]
        if hasattr(value, "__dict__"):
            self._look_at_object(value)

    def _look_at_array(self, value: np.ndarray[Any, Any]) -> None:
        self.has_arrays = True
        self._bytes += value.nbytes
        if value.flags.writeable and self._bytes <= ARRAY_BYTES:
            self.arrays.append(State(value))
        if value.dtype == object:
            self._pending += value.ravel().tolist()
        self._pending += getattr(value, "__dict__", {}).values()

    def _look_at_function(self, function: FunctionType) -> None:
        if not is_users(function.__code__.co_filename):
            own = str(function.__module__).startswith("tensormagic.")  # which hands on what the user's code has made
            self._pending += [Slot(c, None, "").get() for c in function.__closure__ or ()] if own else ()
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._pending.append(self._variable(cell, None, name).get())
            self.readers.setdefault((id(cell), None), []).append(function)
        space = function.__globals__
        stored = named(function.__code__, "STORE_GLOBAL", "DELETE_GLOBAL")
        for name in _names_in(function.__code__):
            if name in space or name in stored:
                self._pending.append(self._variable(space, name, name).get())
                self.readers.setdefault((id(space), name), []).append(function)
        self.containers.append((function.__dict__, dict(function.__dict__)))
        self._pending += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._pending += function.__dict__.values()

    def _look_at_object(self, value: Any) -> None:
        kind: Any = value if isinstance(value, type) else type(value)
        for own in (c for c in kind.__mro__ if c not in self._classes and is_users_class(c)):
            held = Attributes(own)
            self._classes.add(own)
            self.containers.append((held, dict(held)))
            self._pending += [getattr(v, "__func__", v) for v in vars(own).values()]
        if isinstance(value, type):
            return
        if hasattr(kind, "__next__"):
            self.iterators[id(value)] = value
        foreign = package_of(type(value)) in _FOREIGN and not is_users_class(type(value))
        for inside in containers_of(value) if not foreign or is_users_module(value) else ():
            self.containers.append((inside, dict(inside)))
            self._pending += () if isinstance(value, ModuleType) else inside.values()
        wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
        if isinstance(wrapped, FunctionType):
            self._pending.append(wrapped)

    # what has changed -------------------------------------------------------------------------------------------------

    def changes(self) -> dict[Slot, Any]:
        """What variables and items hold that they did not hold before, by identity."""
        held = {slot: slot.get() for slot in self.variables.values()}
        found = {slot: held[slot] for key, slot in self.variables.items() if held[slot] is not self.values[key]}
        self.grown = []
        for container, before in self.containers:
            if id(container) in self.growing and is_longer(container, before):
                self.grown.append((container, container[len(before) :]))
                continue
            for key in _changed(container, before, adding=self.adding):
                slot = self.items.setdefault((id(container), key), Slot(container, key, f"item {key!r}"))
                found[slot] = slot.get()
        if any(state.changed for state in self.arrays):
            raise NeedsPython("a store into an array that is not captured", "Give the array a name in an earlier cell.")
        return found

    def restore(self) -> None:
        """Put everything back."""
        for key, slot in self.variables.items():
            if slot.get() is not self.values[key]:
                slot.set(self.values[key])
        for container, before in self.containers:
            if differs(container, before):
                refill(container, before)
        for state in self.arrays:
            if state.changed:
                state.restore()

    @property
    def has_no_tensors(self) -> bool:
        """Whether there is nothing lazy in reach, for sure."""
        return not self.tensors and self.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether all that is in reach was looked at."""
        return not self._pending

    def nodes(self) -> set[Node]:
        """The values of the lazy arrays that are known before the code runs."""
        return {part for t in self.tensors for n in (t.place.buffer.node, t.node) for part in unasked(n)}


def unasked(node: Node) -> Iterator[Node]:
    """A value, without asking whether it is there: that is asked where it is used."""
    if node.op is REQUIRE and node["error"] in {"name", "none", "capture"}:
        for part in node.args:
            yield from unasked(part)
    else:
        yield node


_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype, np.ufunc, Node)
_NUMBERS = {str, bytes, int, float, complex, bool, type(None), np.float64, np.int64}
_FOREIGN = {"numpy", "scipy", "tensormagic", "builtins", "functools", "itertools", "matplotlib", "pandas", "IPython"}


def _changed(container: Any, before: Any, *, adding: bool) -> Iterator[Any]:
    """The keys of items of a container that have changed; raises where there are fewer, or more and none may be ``adding`` any."""
    if not differs(container, before):
        return
    if adding and isinstance(container, MutableMapping) and list(container)[: len(before)] == list(before):
        yield from (k for k, v in list(container.items()) if k not in before or before[k] is not v)
        return
    kind = "class" if isinstance(container, Attributes) else type(container).__name__
    if isinstance(container, MutableMapping) and container.keys() == before.keys():
        yield from (k for k, v in before.items() if container[k] is not v)
    elif isinstance(container, list | deque) and len(container) == len(before):
        yield from (k for k, v in enumerate(before) if container[k] is not v)
    else:
        raise grows(kind)


def grows(kind: str) -> Grows:
    """The error for a container that holds a data-dependent number of values."""
    return Grows(
        f"a {kind} grows or shrinks a data-dependent number of times", "Use an array that is as large as needed."
    )


# trials ---------------------------------------------------------------------------------------------------------------


Held = tuple[Node, int, bool]  # what a buffer holds, its version, and whether the code has stored into it


@dataclass(eq=False)
class Trial:
    """Code that is being tried out.

    Parameters
    ----------
    failure
        Why it cannot be staged, where somebody may have caught that.
    raised, place
        The exception of its last ``raise`` statement, and where that stands.
    iterators
        Those that are there before it.
    made
        What its expressions have given, used or not.
    """

    iterators: dict[int, Any]
    failure: CaptureError | None = None
    raised: Exception | None = None
    place: tuple[Any, ...] = ()
    made: list[Node] = field(default_factory=list[Node])


@dataclass
class Outcome:
    """What code has done.

    Parameters
    ----------
    result
        What it gave.
    started
        When it began, in the count of buffers: arrays made later are its own.
    slots
        What slots hold after it that they did not hold before.
    buffers
        The values of arrays made before it into which it has stored.
    chosen
        Containers between which a data-dependent condition chooses, that names hold after it.
    grown
        Lists, and what it has appended to them.
    raised, place
        What it ended in, where that was a ``raise`` or an ``assert``, and where that stands.
    met
        Whether that was none: it is an error that Python, NumPy or the capture has found.
    """

    result: Any = None
    started: int = 0
    raised: Exception | None = None
    place: tuple[Any, ...] = ()
    met: bool = False
    chosen: list[Any] = field(default_factory=list)
    grown: list[tuple[list[Any], list[Any]]] = field(default_factory=list[tuple[list[Any], list[Any]]])
    slots: dict[Slot, Any] = field(default_factory=dict[Slot, Any])
    buffers: dict[Buffer, Held] = field(default_factory=dict[Buffer, Held])

    def seen(self, read: Callable[[], Any]) -> Any:
        """What ``read`` gives over the arrays as the code has left them."""
        kept = {b: _held(b) for b in self.buffers}
        _fill(self.buffers)
        try:
            return read()
        finally:
            _fill(kept)


def _held(buffer: Buffer) -> Held:
    return buffer.node, buffer.version, buffer.stored


def _fill(values: dict[Buffer, Held]) -> None:
    for buffer, (node, version, stored) in values.items():
        buffer.hold(node)
        buffer.version, buffer.stored = version, stored


def trial() -> Trial | None:
    """The innermost trial that is going on."""
    capture = context.current()
    return capture.trials[-1] if capture is not None and capture.trials else None


def fail_trial(what: str, advice: str) -> NeedsPython:
    """The error for what a trial cannot do, noted with it."""
    error = NeedsPython(what, advice)
    running = trial()
    if running is not None:
        running.failure = running.failure or error
    return error


def refuse_taken(value: Any) -> None:
    """Refuse to take values, in code that is tried out, from an iterator that was there before: they could not be put back."""
    capture = context.current()
    if capture is not None and any(id(value) in t.iterators for t in capture.trials):
        raise fail_trial(
            f"values are taken from a {type(value).__name__} in a loop or a branch that depends on data",
            "Make a list of them first.",
        )


def attempt(
    world: World,
    run: Callable[[], Any],
    keep: Callable[[Any], bool] = lambda _result: False,
    *,
    may_raise: bool = False,
    unneeded: Container[Slot] = (),
) -> Outcome:
    """Run code and find out what it does; then put everything back, unless what it gives says that it is to be kept.

    Where it ``may_raise``, an exception of a ``raise`` statement is an outcome, too; in code without values any error of its own is.
    What ``unneeded`` variables hold is not used.

    Raises
    ------
    Exception
        What the code raises, everything being put back.
    """
    capture = context.current()
    if capture is None:
        raise AssertionError
    if len(capture.trials) >= DEPTH:
        raise NeedsPython(
            f"branches are nested {DEPTH} deep: a function calls itself depending on data, and does more than return the result",
            "Return the recursive call itself, with the result so far as an argument; or write a loop.",
        )
    ask_all()  # of what there is before
    journal: dict[Buffer, Held] = {}
    running = Trial(world.iterators)
    start = next(serials)
    counts = capture.nodes, len(capture.guards), dict(capture.noted), dict(capture.lifted)
    refused = capture.refused
    told, chosen = len(capture.listeners), len(capture.chosen)
    capture.journals.append(journal)
    capture.trials.append(running)
    done = kept = False
    used: list[Node] | None = None
    try:
        outcome = _run(run, running, start) if may_raise else Outcome(run(), start)
        if running.failure is not None:
            raise running.failure
        for one in capture.chosen[chosen:]:
            one.check()
        kept = keep(outcome.result)
        if not kept:
            ask_all()  # as it is now
            outcome.slots = world.changes()
            outcome.grown = world.grown
            outcome.chosen = capture.chosen[chosen:]
            outcome.buffers = {b: _held(b) for b in journal if b.born < start}
            used = _used(running, outcome, unneeded)
        done = True
    finally:
        capture.trials.pop()
        capture.journals.pop()
        if not done:
            capture.nodes, capture.refused = counts[0], refused
            del capture.guards[counts[1] :]
            capture.noted, capture.lifted = counts[2], counts[3]
        if not kept:
            del capture.chosen[chosen:]
            world.restore()
            _fill({b: was for b, was in journal.items() if b.born < start})
            for buffer, tell in capture.listeners[told:]:
                buffer.followers.remove(tell)
            del capture.listeners[told:]
    context.keep(running.made if kept else ())
    if used is not None:  # everything is as it was: that the world knew
        capture.trials.append(running)  # what is built for it is no line of the code around
        _await_unused(capture, outcome, world, used)
        capture.trials.pop()
    return outcome


def _used(running: Trial, outcome: Outcome, unneeded: Container[Slot]) -> list[Node] | None:
    """What code on trial hands on; None where all that it has computed gives a value in any case."""
    from tensormagic.capture.tree import tensors_in  # which takes apart what loops have made, by way of this

    if not any(map(raises, topological(running.made))):
        return None
    held = [value for slot, value in outcome.slots.items() if slot not in unneeded]
    held += [outcome.result, *(v for _, more in outcome.grown for v in more)]
    return [t.node for t in tensors_in(held)] + [node for node, _, _ in outcome.buffers.values()]


def _await_unused(capture: context.Capture, outcome: Outcome, world: World, used: list[Node]) -> None:
    """Have what code on trial has computed, may fail, and is not used, be among the checks: Python computes it all the same."""
    slot = world.variables[id(capture.checks), CHECKS]
    token = node_of(outcome.slots.get(slot, slot.get()))
    checked = unused_on_trial(list(capture.trials[-1].made), used, world.nodes(), token)
    if checked is not token:
        outcome.slots[slot] = wrap(checked)


def _run(run: Callable[[], Any], running: Trial, start: int) -> Outcome:
    try:
        return Outcome(run(), start)
    except Exception as error:
        if error is running.raised or isinstance(error, Unknown):
            return Outcome(None, start, raised=error, place=running.place)
        place = place_of(error)
        if isinstance(error, CaptureError | MemoryError | RecursionError) or place is None:
            raise
        refuse_caught(error)
        return Outcome(None, start, raised=error, place=place, met=True)


def refuse_caught(error: Exception) -> None:
    """Refuse an error in a `try` where it is data-dependent whether it is met."""
    capture = context.current()
    if capture is not None and capture.attempts:
        raise fail_trial(
            "an error in a `try` occurs only for some data", "Check with `if` instead of `try`."
        ) from error


def place_of(error: Exception) -> tuple[Any, ...] | None:
    """Where the user's code has met an error that may wait for the graph to run, if it is data-dependent whether the code runs; else None.

    What NumPy makes of a refusal that it has met is no error of the code's.
    """
    capture, trace, found = context.current(), error.__traceback__, None
    if capture is None or not capture.abstract or is_met_by_numpy(error):
        return None
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = usercode.span_at(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return None if found is None else astuple(found)[:6]
