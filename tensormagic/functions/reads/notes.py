"""The findings of a search for all that code may read: names in the code, checks, and values still to be examined.

What a value leads to is determined in ``footprint.py``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tensormagic.functions.reads import value_kinds
from tensormagic.functions.reads.name_reads import CellSpace, place_of
from tensormagic.functions.reads.record import ANYTHING, MISSING, Check

LARGEST = 2048  # bytes of an array that is compared at each call


class Unfollowed(Exception):  # noqa: N818 (no error: an answer)
    """Raised if a found object cannot be checked later."""

    lazy = ""


def _filled(get: Callable[[Any], Any], value: Any) -> Any:
    """Return the content of a slot of an object, or ``MISSING`` if it is empty."""
    try:
        return get(value)
    except AttributeError:
        return MISSING


def _is_beside(value: Any, home: Any) -> bool:
    """Return whether a value is a function over these globals."""
    return isinstance(value, types.FunctionType) and value.__globals__ is home


class Notes:
    """The state of a search: names in the code, checks, and values still to be examined."""

    def __init__(self, noted: set[Any], inputs: set[int], is_moving: Callable[[Any], bool], *, fixed: bool) -> None:
        self.fixed = fixed
        self.noted = noted
        self.inputs = inputs  # identities of arrays inside containers and objects
        self.is_moving = is_moving
        self.names: set[str] = set()
        self.builtins: set[str] = set()  # globals that code reads, with the builtins among them
        self.stored: set[str] = set()  # attributes that code stores or deletes, which objects need not have
        self.every = False  # whether attributes may be read by names that are not in the code
        self.asks = False  # whether code asks which attributes an object has
        self.generators = True
        self.ahead = False
        self.most = math.inf  # objects that it may find
        self.passing = False  # whether it goes past what cannot be looked into: it is asked what is there alone
        self.largest: float | None = LARGEST  # None where it is only asked where something is held
        self.moving: set[tuple[int, Any]] = set()  # places in containers and objects whose values are inputs
        self.typed = False  # whether code asks for types
        self.makes = False  # whether code can get from an object to its class, and call that
        self.unstaged = False  # whether Python runs code as it is written
        self.asked: set[str] = set()  # those of the names that a module may be asked for
        self.held = False  # whether anything but NumPy leads to its module of random numbers
        self.random = ""  # the name of code that makes generators, or draws from NumPy's own
        self.users: list[types.FunctionType] = []
        self.begin()

    def begin(self) -> None:
        """Start examining everything anew, with the names that are known so far."""
        self.partial = False  # whether elements of arrays are not compared, as these may become inputs
        self.room = self.largest or 0  # bytes of arrays that may still be compared
        self.checks: dict[Any, Check] = {}
        self.seen: dict[Any, Any] = {}
        self.called = ""
        self.pending: list[tuple[Any, str, bool]] = []

    def is_typed(self) -> bool:
        """Return whether code that Python runs as written may ask for the types of what it reads."""
        return self.typed and self.is_unstaged()

    def is_unstaged(self) -> bool:
        """Return whether Python runs some of the code as it is written."""
        return self.unstaged or any(map(value_kinds.is_unstaged, self.users))

    def known(self) -> tuple[object, ...]:
        """Return what determines the attributes examined; as long as it grows, the search is repeated."""
        return (
            len(self.names),
            len(self.builtins),
            len(self.stored),
            len(self.asked),
            self.every,
            self.asks,
            self.makes,
            self.held,
        )

    def by_call(self, told: str, *, counted: bool = True) -> None:
        """Record an object that cannot be examined; if ``counted``, only counted calls change it."""
        if not (self.fixed and counted):
            self.stop(told)
        self.called = self.called or told

    def stop(self, told: str) -> None:
        """Raise Unfollowed for something that no check can be made for, unless such things are skipped."""
        if not self.passing:
            raise Unfollowed(told)

    def check(self, kind: str, a: Any, b: Any, c: Any, told: str, place: tuple[Any, Any] | None = None) -> None:
        """Add a check of a value."""
        self.checks.setdefault((kind, id(a)), Check(kind, (a, b, c), told, place))

    def entry(
        self,
        space: Mapping[str, Any],
        name: Any,
        told: str,
        *,
        lifted: bool = False,
        owner: Any = None,
        leads: bool = True,
    ) -> None:
        """Record a dictionary's entry and, if it ``leads`` further, its value; ``owner`` is the class of a class dictionary."""
        owner = space if owner is None else owner
        if (id(owner), name) in self.moving:
            return
        value = space.get(name, MISSING)
        kind = "entry value" if value_kinds.is_atom(value) else "entry"
        key = "entry", id(space), name
        if key not in self.checks:
            self.checks[key] = Check(kind, (space.get, name, value), told, (owner, name))
            self.seen[id(space), "space"] = space
        if leads:
            self.push(value, told, lifted=lifted)

    def push(self, value: Any, told: str, *, lifted: bool = False) -> None:
        """Add a value that is to be examined."""
        if value is not MISSING and value is not ANYTHING and not value_kinds.is_atom(value):
            self.held |= value is np.random
            self.pending.append((value, told, lifted))

    def read(self, name: str, space: Mapping[str, Any], lifted: bool, home: Any = None) -> None:
        """Record a name that code reads; if it becomes an input (``lifted``), its value does not matter.

        Functions over the globals ``home`` are captured as the code is.
        """
        value = space.get(name, MISSING)
        if lifted and value is not MISSING and self.is_moving(value) and place_of((name, space)) in self.noted:
            return
        lifted = lifted and (type(value) is np.ndarray or _is_beside(value, home))
        if not isinstance(space, CellSpace):
            self.entry(space, name, name, lifted=lifted)
            return
        if value is MISSING:
            self.stop(f"{name}, which has no value yet")
        if (id(space.cell), None) in self.moving:
            return
        kind = "cell value" if value_kinds.is_atom(value) else "cell"
        self.checks.setdefault((kind, id(space.cell)), Check(kind, (space.cell, None, value), name, (space.cell, None)))
        self.push(value, name, lifted=lifted)

    def slot(self, value: Any, get: Callable[[Any], Any], told: str, name: str = "") -> None:
        """Record what an object holds outside of a dictionary, and follow it."""
        if (id(value), name) in self.moving:
            return
        try:
            held = get(value)
        except AttributeError:
            get, held = partial(_filled, get), MISSING
        kind = "holds value" if value_kinds.is_atom(held) else "holds"
        self.checks[kind, id(value), told] = Check(kind, (get, value, held), told, (value, name) if name else None)
        self.push(held, told)

    def still(self, holder: Any, entries: Iterable[tuple[Any, Any]]) -> tuple[Any, ...]:
        """Return the contents of a container, without the inputs of the trace."""
        return tuple([ANYTHING if self.moving and (id(holder), k) in self.moving else v for k, v in entries])
