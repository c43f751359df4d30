"""Everything that functions can reach: what has changed in it is found, and restored."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import partial
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.foreign.native_functions import is_function
from tensormagic.capture.numbers.deferred import Deferred, parts_of
from tensormagic.capture.python.bytecode import named, names_in
from tensormagic.capture.staging.branches.slots import Slot
from tensormagic.capture.staging.trials.attributes import (
    Attributes,
    containers_of,
    differs,
    is_longer,
    is_users_class,
    is_users_module,
    refill,
)
from tensormagic.capture.staging.trials.needs_python import GetsKeys, NeedsPython, grows
from tensormagic.capture.stores.state import State
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import is_users, package_of
from tensormagic.ir.node import Node
from tensormagic.ir.plain_texts import key_text
from tensormagic.ops.effects.checks import REQUIRE

CHECKS = "__tensor_checks__"  # the content of ``Order.checks``
MOST = 20_000  # values that are visited, at most
ARRAY_BYTES = 2**24  # bytes of arrays that are copied, in case the code stores into them


class Journaled:
    """Base of our objects whose changes are changes of their ``state``."""

    state: dict[str, Tensor]


class Reaching:
    """Base of our objects that call functions of the user's."""

    @property
    def reached(self) -> Iterable[Any]:
        """Return these functions, and their arguments."""
        return ()


class World:
    """Represents what functions can reach: their variables, the containers that these hold, and the functions that they name."""

    def __init__(self, functions: Iterable[Callable[..., Any]]) -> None:
        self.variables: dict[Any, Slot] = {}
        self.items: dict[Any, Slot] = {}
        self.containers: list[tuple[Any, Any]] = []
        self.arrays: list[State] = []
        self.has_arrays = False
        self.tensors: list[Tensor] = []
        self.growing: dict[int, list[Any]] = {}  # lists that the code may append to, by their id
        self.adding = False  # whether the code may give lists, dictionaries and objects items that they do not have
        self.grown: list[tuple[list[Any], list[Any]]] = []  # what it has appended to these
        self.readers: dict[Any, list[FunctionType]] = {}  # the functions that name a variable
        self.iterators: dict[int, Any] = {}  # iterators, whose values are gone once they are taken, by their id
        self._seen: set[int] = set()
        self._classes: set[type] = set()
        self._pending: deque[Any] = deque(functions)
        self._bytes = 0
        while self._pending and len(self._seen) < MOST:
            value = self._pending.popleft()
            if type(value) is not Tensor:
                self._look(value)
            elif id(value) not in self._seen:  # first: any other question about its class would call the user's code
                self._seen.add(id(value))
                self.tensors.append(value)
        capture = context.current()
        if capture is not None:
            self._variable(capture.order.checks, CHECKS, CHECKS)
        self.values = {key: slot.get() for key, slot in self.variables.items()}

    def slot(self, function: Any, name: str) -> Slot:
        """Return the variable ``name`` of a function."""
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
        elif isinstance(value, _BOUND):
            self._pending += _bound_to(value)
        elif isinstance(value, list | deque | set | bytearray | array | dict):
            self._look_at_container(value)
        elif isinstance(value, tuple | frozenset):
            self._pending += [v for v in value if type(v) not in _NUMBERS]
        elif isinstance(value, Journaled):
            self._pending.append(value.state)
        elif not is_function(value):  # nothing that it holds belongs to captured code
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
            own = str(function.__module__).startswith("tensormagic.")  # it passes on what the user's code has made
            self._pending += [Slot(c, None, "").get() for c in function.__closure__ or ()] if own else ()
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._pending.append(self._variable(cell, None, name).get())
            self.readers.setdefault((id(cell), None), []).append(function)
        space = function.__globals__
        stored = named(function.__code__, "STORE_GLOBAL", "DELETE_GLOBAL")
        for name in names_in(function.__code__):
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
        if isinstance(value, Reaching):
            self._pending += value.reached
        foreign = package_of(type(value)) in _FOREIGN and not is_users_class(type(value))
        for inside in containers_of(value) if not foreign or is_users_module(value) else ():
            self.containers.append((inside, dict(inside)))
            self._pending += () if isinstance(value, ModuleType) else inside.values()
        wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
        if isinstance(wrapped, FunctionType):
            self._pending.append(wrapped)

    # what has changed -------------------------------------------------------------------------------------------------

    def changes(self) -> dict[Slot, Any]:
        """Return the variables and items that hold another object than before, with the new object."""
        held = {slot: slot.get() for slot in self.variables.values()}
        found = {slot: held[slot] for key, slot in self.variables.items() if held[slot] is not self.values[key]}
        self.grown = []
        for container, before in self.containers:
            if id(container) in self.growing and is_longer(container, before):
                self.grown.append((container, container[len(before) :]))
                continue
            for key in _changed(container, before, adding=self.adding):
                slot = self.items.setdefault((id(container), key), Slot(container, key, f"item {key_text(key)}"))
                found[slot] = slot.get()
        if any(state.changed for state in self.arrays):
            raise NeedsPython("a store into an array that is not captured", "Give the array a name in an earlier cell.")
        return found

    def restore(self) -> None:
        """Restore everything."""
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
        """Return whether surely nothing lazy can be reached."""
        return not self.tensors and self.is_whole

    @property
    def is_whole(self) -> bool:
        """Return whether everything reachable was examined."""
        return not self._pending

    def nodes(self) -> set[Node]:
        """Return the nodes of the lazy arrays that are known before the code runs."""
        return {part for t in self.tensors for n in (t.place.buffer.node, t.node) for part in unasked(n)}


_BOUND = (MethodType, BuiltinMethodType, MethodWrapperType, partial)


def _bound_to(function: Any) -> list[Any]:
    """Return the objects that a method or a partial call is bound to: `add = out.append` changes a container."""
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, MethodType):
        return [function.__func__, function.__self__]
    return [] if isinstance(function.__self__, ModuleType | type | None) else [function.__self__]


def unasked(node: Node) -> Iterator[Node]:
    """Yield a value without the check that it exists, which is made where it is used."""
    if node.op is REQUIRE and node["error"] in {"name", "none", "capture"}:
        for part in node.args:
            yield from unasked(part)
    else:
        yield node


_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype, np.ufunc, Node)
_NUMBERS = {str, bytes, int, float, complex, bool, type(None), np.float64, np.int64}
_FOREIGN = {"numpy", "scipy", "tensormagic", "builtins", "functools", "itertools", "matplotlib", "pandas", "IPython"}


def _changed(container: Any, before: Any, *, adding: bool) -> Iterator[Any]:
    """Yield the keys of items of a container that have changed; raise if it has lost items, or has more and is not ``adding``."""
    if not differs(container, before):
        return
    if adding and isinstance(container, MutableMapping) and list(container)[: len(before)] == list(before):
        yield from (k for k, v in list(container.items()) if k not in before or before[k] is not v)
        return
    if adding and type(container) is list and len(container) > len(before):
        yield from (k for k, v in enumerate(container) if k >= len(before) or before[k] is not v)
        return
    kind = "class" if isinstance(container, Attributes) else type(container).__name__
    if isinstance(container, MutableMapping) and container.keys() == before.keys():
        yield from (k for k, v in before.items() if container[k] is not v)
    elif isinstance(container, list | deque) and len(container) == len(before):
        yield from (k for k, v in enumerate(before) if container[k] is not v)
    elif isinstance(container, MutableMapping) and container.keys() > before.keys():
        raise grows(kind, GetsKeys)
    else:
        raise grows(kind)
