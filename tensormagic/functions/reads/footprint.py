"""What a captured function may read of Python's state: everything that its code can reach by the names in it.

The code of a function names globals, attributes and modules. From its globals, closure, defaults and arguments these
lead to objects, classes, containers and other functions, whose code is examined in turn. What is found is more than
what is read, and never less; it is recorded with its contents. What cannot be examined (iterators, files, clocks,
objects of C) is named, and then a trace holds for one call only.
"""

from __future__ import annotations

import builtins
import gc
import inspect
import math
import operator
import random
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensormagic.capture.foreign.native_functions import is_function, is_library
from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.python.builtin_facts import IN_NAMESPACES
from tensormagic.capture.staging.calls.special_methods import written
from tensormagic.capture.tree import is_container
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.reads import value_kinds
from tensormagic.functions.reads.arrays_in_objects import Inside
from tensormagic.functions.reads.name_reads import CellSpace, Read, place_of
from tensormagic.functions.reads.names_in_code import Named, named
from tensormagic.functions.reads.notes import LARGEST, Unfollowed
from tensormagic.functions.reads.record import MISSING, Check, Record
from tensormagic.functions.reads.wrappers import WRAPPERS, Wrappers
from tensormagic.ir.node import Node

LIMIT = 1000  # objects that are examined
_LONGEST = 512  # items of a container that are compared at each call


UNKNOWN = Record((), "what it read at an earlier call")


class Code:
    """The code of a cell over the names of a notebook; ``reads`` are the names it does not bind itself."""

    def __init__(self, codes: Iterable[types.CodeType], space: Mapping[str, Any], reads: Iterable[str]) -> None:
        self.named = [replace(n, reads=n.reads & set(reads)) for n in map(named, codes)]
        self.space = space

    @property
    def follows(self) -> list[Any]:
        """The objects that the code reads."""
        return [self.space[name] for one in self.named for name in one.reads if name in self.space]


def record_of(
    roots: Sequence[Any] | None,
    arguments: Any,
    reads: Sequence[Read],
    is_moving: Callable[[Any], bool],
    *,
    fixed: bool = False,
    generators: bool = True,
    largest: float | None = LARGEST,
    ahead: bool = False,
    passing: bool = False,
    most: float = math.inf,
) -> Record:
    """Return a record of what functions can read, as it is now.

    Parameters
    ----------
    roots
        Functions, and code of cells; None if the code is not known.
    arguments
        Their arguments other than arrays and numbers.
    reads
        Names that are known to be read; those for which ``is_moving`` holds are inputs, whose values do not matter.
    fixed
        Whether what was read is not read again: then elements of large arrays and lazy values are compared, too.
    generators
        Whether the states of NumPy's generators are read.
    largest
        The limit in bytes for comparing elements, of all arrays together, or of each that may be read again; None for
        no elements.
    ahead
        Whether a trace follows that will turn arrays of called functions into inputs: their elements do not matter, and
        the record holds no longer than that trace.
    passing
        Whether to skip what cannot be followed, and list only existing objects; there may be ``most`` of them.
    """
    if roots is None:
        return Record((), "code that is not known")
    inside = [space for name, space in reads if isinstance(space, Inside) and name in space]
    inputs = {id(space[space.name]) for space in inside if not space.moving}
    walk = _Walk({place_of(r) for r in reads}, inputs, is_moving, fixed=fixed)
    walk.generators, walk.largest, walk.ahead = generators, largest, ahead
    walk.passing, walk.most = passing, most
    walk.moving = {spot for space in inside if space.moving for spot in space.spots}
    try:
        walk.all(roots, arguments, reads)
        walk.refuse_random()
    except Unfollowed as found:
        return Record((), str(found), found.lazy)
    return Record(
        tuple(walk.checks.values()),
        "" if passing else walk.called,
        typed=walk.is_typed,
        seen=walk.seen.values(),
        partial=walk.partial,
        by_calls=bool(walk.called) and not walk.is_unstaged(),
    )


_WATCHED = {"numpy", "scipy", "math", "numpy.random", "numpy.linalg", "numpy.fft"}  # parts of NumPy that tests replace


class _Walk(Wrappers):
    """One search; it is repeated until no new names are found."""

    def all(self, roots: Sequence[Any], arguments: Any, reads: Sequence[Read]) -> None:
        """Examine everything that is reachable, repeatedly until no new names are found."""
        while True:
            known = self.known()
            self.begin()
            self.pending += [
                (r, vars(r)["__name__"] if "__name__" in getattr(r, "__dict__", ()) else "the function", True)
                for r in roots
            ]
            self.pending += [(a, f"argument {k + 1}", False) for k, a in enumerate(arguments)]
            for read in reads:
                if not isinstance(
                    read[1].get(read[0]), types.FunctionType
                ):  # the code itself leads to it when it is called
                    self.read(*read, True)
            while self.pending:
                self._visit(*self.pending.pop())
            if known == self.known():
                return

    # what is looked into ----------------------------------------------------------------------------------------------

    def _visit(self, value: Any, told: str, lifted: bool) -> None:
        key = id(value), lifted
        if key in self.seen:
            return
        self.seen[key] = value
        if len(self.seen) > LIMIT:
            self.stop(f"more than {LIMIT} objects")
        if len(self.seen) > self.most:
            raise Unfollowed(f"more than {self.most} objects")
        if not self.generators and (
            value is np.random or isinstance(value, np.random.Generator | np.random.RandomState)
        ):
            return
        if self._is_of_random(value):
            self.random = told
            return
        look = _LOOKS.get(type(value))
        if look is not None:
            look(self, value, told, lifted)
        elif isinstance(value, Code):
            self._code(value.named, value.space, None, lifted)
        elif not (
            value_kinds.is_constant(value) or is_function(value)
        ):  # what the function reads, it reads when the graph runs
            self._other(value, told, lifted)

    def _is_of_random(self, value: Any) -> bool:
        """Return whether a function of ``np.random`` is handled by captured code; drawing is reported if what is read is fixed."""
        return value_kinds.is_maker(value) or (self.fixed and value_kinds.is_draw(value))

    def refuse_random(self) -> None:
        """Raise for makers of generators in code that Python runs as written, where they need no seed."""
        if self.random and self.is_unstaged():
            self.stop(self.random)

    def _other(self, value: Any, told: str, lifted: bool) -> None:
        if isinstance(value, type):
            self._class(value, told)
        elif isinstance(value, types.ModuleType):
            self._module(value, told)
        elif (roots := getattr(type(value), "follows", None)) is not None:  # one of our own functions
            self._own(roots.fget(value), told)
        elif is_library(value):
            self._attributes(value, getattr(value, "__dict__", {}), (), told)
        elif (names := value_kinds.parts_of(value)) is not None:
            self.unstaged |= isinstance(value, property)
            self.makes |= isinstance(value, classmethod)
            for name in names:
                self.push(getattr(value, name), told)
        elif isinstance(value, np.ndarray):
            self._array(value, told, lifted)
        elif not (self.fixed and self._compared(value, told)):
            self._object(value, told)

    def _own(self, roots: Sequence[Any] | None, told: str) -> None:
        """Follow a captured function to the functions it was made of."""
        if roots is None:
            self.stop(told)
        for root in roots or ():
            self.push(root, told, lifted=True)

    def _array(self, array: Any, told: str, lifted: bool) -> None:
        if id(array) in self.inputs or self.largest is None:
            return
        if lifted and self.ahead and array.nbytes > self.room:
            self.partial = True
            return
        if (type(array) is not np.ndarray and not self.fixed) or array.dtype.hasobject or array.nbytes > self.room:
            raise Unfollowed(f"the elements of {told}")
        if type(array) is not np.ndarray:
            self._attributes(array, getattr(array, "__dict__", {}), (), told, whole=True)
            array = array.view(np.ndarray)
        self.room -= array.nbytes if self.fixed else 0
        self.check("array", array, None, (array.dtype, array.shape, array.strides, array.tobytes()), told)

    # functions

    def function(self, function: types.FunctionType, told: str, lifted: bool) -> None:
        """Follow a function of the user's: its code, defaults, closure and globals."""
        if value_kinds.is_quiet_function(function):
            if not value_kinds.is_quiet(
                function.__module__
            ):  # a wrapper, such as those of `dataclass`, whose closure has the functions it calls
                self._beside(function, told, False)
            return
        if value_kinds.is_librarys(function.__code__.co_filename):
            self.by_call(f"{function.__module__}.{function.__qualname__}()")
            return
        self._beside(function, told, lifted)
        self.users.append(function)
        self._code([named(written(function))], function.__globals__, function.__globals__, lifted)

    def _beside(self, function: types.FunctionType, told: str, lifted: bool) -> None:
        """Record a function's code, defaults, closure and attributes."""
        self.check("code", function, None, written(function), told)
        self.check("defaults", function, None, function.__defaults__, f"the defaults of {told}")
        self.check("options", function, None, function.__kwdefaults__, f"the defaults of {told}")
        self.push(function.__defaults__, f"a default of {told}")
        self.push(function.__kwdefaults__, f"a default of {told}")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.read(name, CellSpace(name, cell), lifted and name != "__class__", function.__globals__)
        self._attributes(function, function.__dict__, self.beside(function, told), told)

    def _code(self, found: Sequence[Named], space: Mapping[str, Any], home: Any, lifted: bool) -> None:
        for one in found:
            self.names |= one.parts
            self.asked |= one.asked
            self.held |= "random" in one.bare
            self.stored |= one.stores
            if value_kinds.FILES & one.parts:
                self.by_call(f"{min(value_kinds.FILES & one.parts)}()")
            self.every |= not value_kinds.BY_NAME.isdisjoint(one.reads | one.parts)
            self.asks |= not value_kinds.ASKING.isdisjoint(one.reads)
            self.typed |= not value_kinds.TYPES.isdisjoint(one.reads)
            self.builtins |= one.reads
            self.makes |= not value_kinds.REACHING.isdisjoint(one.reads | one.parts)
            for name in sorted(one.reads):
                self._global(name, space, home, lifted)
            for name in one.modules:
                self._import(name)

    def _global(self, name: str, space: Mapping[str, Any], home: Any, lifted: bool) -> None:
        if name not in space and hasattr(builtins, name):
            if name in value_kinds.LOUD:
                self.by_call(f"{name}()", counted=name != "globals")
            self.entry(space, name, name)
            self.entry(vars(builtins), name, name)
        else:
            self.read(name, space, lifted, home)

    def _import(self, name: str) -> None:
        parts = name.split(".")
        for k in range(len(parts)):
            whole = ".".join(parts[: k + 1])
            if whole not in sys.modules:
                self.stop(f"the module {name}, which is imported by the call")
            self.entry(sys.modules, whole, whole)

    def builtin(self, function: Any, told: str, _lifted: bool) -> None:
        """Follow a function implemented in C, or record it as one that cannot be examined."""
        owner = function.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            if not value_kinds.is_quiet(function.__module__) or function.__name__ in value_kinds.LOUD:
                self.by_call(
                    f"{function.__module__}.{function.__name__}()", counted=function.__name__ not in IN_NAMESPACES
                )
            if function.__name__ in value_kinds.BY_NAME:
                self.every = True
        elif isinstance(owner, type):
            if not value_kinds.is_quiet(owner.__module__):
                self.by_call(f"{owner.__module__}.{owner.__qualname__}.{function.__name__}()")
        else:
            self.push(owner, told)

    def dispatched(self, function: Any, told: str, _lifted: bool) -> None:
        """Record a function of NumPy that others may implement for their arrays, unless it is known."""
        if not value_kinds.is_quiet(function.__module__) or function.__name__ in value_kinds.LOUD:
            self.by_call(f"{told} ({function.__module__}.{function.__name__})")

    def method(self, method: types.MethodType, told: str, _lifted: bool) -> None:
        """Follow a method, and its object."""
        self.push(method.__func__, told)
        self.push(method.__self__, told)

    # modules and classes

    def _module(self, module: types.ModuleType, told: str) -> None:
        if value_kinds.is_quiet(module.__name__):
            self._library(module, told)
            return
        space, users = vars(module), value_kinds.is_users_module(module)
        for name in sorted(self.stored - space.keys()) if users else ():
            self.entry(space, name, f"{told}.{name}")
        if self.every:
            self.stop(f"attributes of {told}, by names that are not in the code")
        # a method of a generator that the call makes (`rng.normal`) is no function of the module
        methods = self.names - self.asked if module is np.random and not self.held else set[str]()
        for name in sorted((self.names - methods) & space.keys()):
            inner = isinstance(space[name], types.ModuleType)
            if users or inner or value_kinds.is_constant(space[name]) or self._is_of_random(space[name]):
                self.entry(space, name, f"{told}.{name}")
            elif module is sys and name in value_kinds.STREAMS and self.fixed:
                self.entry(space, name, f"{told}.{name}", leads=False)  # writing to it is a matter of calls
                self.by_call(f"{told}.{name}")
            else:
                self.by_call(f"{told}.{name}", counted=value_kinds.is_called(space[name]))
                if isinstance(getattr(space[name], "__self__", None), random.Random):
                    self.push(space[name].__self__, told)
        if users and (self.asks or "__getattr__" in space):
            for name in sorted(self.names - space.keys()):
                self.entry(space, name, f"{told}.{name}")
            self.entry(space, "__getattr__", f"{told}.__getattr__")

    def _library(self, module: types.ModuleType, told: str) -> None:
        """Record the names of a known module, such as NumPy, in a single check."""
        space = vars(module)
        if module.__name__ not in _WATCHED:
            self.abstracts(module, told)
            return
        names = sorted(self.names & space.keys())
        for name in names:
            value = space[name]
            if isinstance(value, types.ModuleType):
                self.pending.append((value, f"{told}.{name}", False))
            elif not value_kinds.is_quiet(getattr(value, "__module__", None)):
                self.entry(space, name, f"{told}.{name}")
        if names:
            self.check("entries", space, tuple(names), tuple([space[n] for n in names]), f"{told}.{names[0]}")

    def _class(self, kind: type, told: str, *, called: bool = True) -> None:
        """Record a class; unless ``called``, only its objects are used, and its constructor is not followed."""
        if value_kinds.is_quiet_class(kind):
            self.abstract(kind, told)
            return
        if not value_kinds.is_pythons(kind) or not value_kinds.is_users_class(kind):
            self.by_call(f"{kind.__module__}.{kind.__qualname__}")
            return
        self.check("bases", kind, None, kind.__mro__, told)
        self.abstract(kind, told)
        if type(kind) is not type:
            self.push(type(kind), told)
        found: set[str] = set()
        for base in reversed(kind.__mro__):  # a name found in one class was looked for in the classes before it, too
            space = vars(base)
            own = {n for n in space if self._wanted(n) and (called or n not in value_kinds.MAKING)}
            if base is kind or value_kinds.is_users_class(base):
                # an attribute that an object lacks may come from its class
                self.check("names", space, len(space), tuple(space), f"the attributes of {base.__name__}", (base, None))
                for name in sorted(own | found):
                    self.entry(space, name, f"{base.__name__}.{name}", owner=base)
                found |= own
            else:
                self.push(base, told)
        if self.asks:
            for name in sorted(self.names - found):
                self.entry(vars(kind), name, f"{kind.__name__}.{name}", owner=kind)

    def _wanted(self, name: str) -> bool:
        if name.startswith("__") and name.endswith("__"):
            return name not in value_kinds.BORING
        return self.every or name in self.names

    # objects

    def _compared(self, value: Any, told: str) -> bool:
        """Record an object of a library whose whole state can be compared, and return True; return False for others."""
        if type(value) is random.Random:
            self.check("state", value, None, value.getstate(), told)
        elif type(value) in value_kinds.BUFFERS and not value.closed:
            self.check("buffer", value, None, (value.getvalue(), value.tell()), told)
        elif is_table(value):
            self.check("table", value, None, value.copy(), told)
        else:
            return False
        return True

    def _object(self, value: Any, told: str) -> None:
        kind = type(value)
        if not value_kinds.is_followed(kind):
            self.by_call(f"{told} ({kind.__module__}.{kind.__qualname__})", counted=self._changes_by_calls(value))
            held = [v for v in gc.get_referents(value) if is_container(v) or isinstance(v, np.ndarray)]
            self.pending += [(v, told, False) for v in held if self.passing]
            return
        self.check("type", value, None, kind, told)
        if self.makes or self.every or type(kind) is not type or value_kinds.is_partly_librarys(kind):
            self.push(kind, told)
        elif ("objects of", id(kind)) not in self.seen:
            self.seen["objects of", id(kind)] = kind
            self._class(kind, told, called=False)
        if isinstance(value, list | dict | set | frozenset | tuple | deque):
            self.items(value, told, False)
        of_class = {n for c in kind.__mro__ if c is not object for n in vars(c) if self._wanted(n) and n[:2] != "__"}
        inside, whole = getattr(value, "__dict__", None), value_kinds.is_partly_librarys(kind) or self.is_whole(kind)
        if isinstance(inside, dict):
            self.check("dict", value, None, inside, told)
            self._attributes(value, inside, of_class, told, whole=whole)
        for base in kind.__mro__:
            for name, slot in vars(base).items():
                if isinstance(slot, types.MemberDescriptorType) and (self._wanted(name) or base is not kind):
                    self.slot(value, slot.__get__, f"{told}.{name}", name)

    def _changes_by_calls(self, value: Any) -> bool:
        """Return whether nothing but calls of its methods changes an object of a library, as the code uses it."""
        held = {n: v for n in self.names if (v := inspect.getattr_static(value, n, MISSING)) is not MISSING}
        called = all(value_kinds.is_called(v) or value_kinds.is_atom(v) for v in held.values())
        return (
            called
            and not (self.stored & held.keys())
            and not any(hasattr(type(value), n) for n in value_kinds.CHANGING)
        )

    def _attributes(
        self, value: Any, inside: dict[str, Any], of_class: Iterable[str], told: str, *, whole: bool = False
    ) -> None:
        names = {n for n in inside if whole or self._wanted(n) or n in self.names} | set(of_class)
        names |= self.stored  # a call that stores these attributes again does so even if somebody has deleted them
        if self.every or self.fixed:
            self.check("names", inside, len(inside), tuple(inside), f"the attributes of {told}")
        if self.asks or (hasattr(type(value), "__getattr__") and not isinstance(value, types.FunctionType)):
            names |= self.names
        for name in sorted(names):
            self.entry(inside, name, f"{told}.{name}")
        for name in sorted(inside.keys() - names) if self.fixed else ():  # attributes that C functions may set
            self.entry(inside, name, f"{told}.{name}", leads=False)

    def items(self, items: Any, told: str, _lifted: bool) -> None:
        """Record and follow the items of a container, in their order."""
        if len(items) > _LONGEST:
            self.stop(f"the {len(items)} items of {told}")
        held = tuple(items) if isinstance(items, dict) else self.still(items, enumerate(items))
        if not isinstance(items, tuple | frozenset) or isinstance(items, dict):
            place = (items, None) if isinstance(items, list | deque) else None
            self.checks["items", id(items)] = Check("items", (items, len(held), held), told, place)
        for k, item in enumerate(held):
            self.push(item, f"{told}[{k}]")
        if isinstance(items, dict | types.MappingProxyType):
            held = self.still(items, items.items())
            place = (items, None) if isinstance(items, dict) else None
            self.checks["values", id(items)] = Check("items", (items.values(), len(held), held), told, place)
            for key, item in zip(items, held, strict=True):
                self.push(item, f"{told}[{key!r}]" if value_kinds.is_atom(key) else told)
        if isinstance(items, defaultdict):
            self.slot(items, lambda d: d.default_factory, f"{told}.default_factory")

    def namespace(self, value: types.SimpleNamespace, told: str, _lifted: bool) -> None:
        """Record and follow the attributes of a `SimpleNamespace`."""
        self._attributes(value, vars(value), (), told, whole=self.is_whole(types.SimpleNamespace))

    def lazy(self, value: Any, told: str, _lifted: bool) -> None:
        """Record a lazy value; raise Unfollowed unless what is read is fixed."""
        if self.fixed:
            self.slot(value, operator.attrgetter("node"), told)
            return
        found = Unfollowed(f"the lazy value {told}")
        found.lazy = told
        raise found

    def node(self, value: Node, told: str, _lifted: bool) -> None:
        """Record a lazy value; nothing in it changes."""


_LOOKS: dict[type, Callable[[_Walk, Any, str, bool], None]] = {
    types.FunctionType: _Walk.function,
    types.BuiltinFunctionType: _Walk.builtin,
    types.MethodType: _Walk.method,
    type(np.sum): _Walk.dispatched,
    types.SimpleNamespace: _Walk.namespace,
    types.MappingProxyType: _Walk.items,
    **WRAPPERS,
    Tensor: _Walk.lazy,
    Node: _Walk.node,
    **dict.fromkeys((list, dict, set, frozenset, tuple, deque, OrderedDict, defaultdict), _Walk.items),
}
