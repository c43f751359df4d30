"""A quick key of a call's arguments: arrays, numbers and plain containers of them, by class, type and shape.

Calls with equal keys have equal full keys of :mod:`tensormagic.functions.calls.call_inputs`; arguments of other kinds
have no quick key.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

NUMBERS = {float, complex, np.float64, np.float32}  # inputs that are used as they are, like arrays
_FIXED = {int, bool, str, bytes, type(None)}  # classes of arguments whose value is part of the key
_NAMES = {str, int}


def known_by(first: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return a key that begins with ``first``, and the inputs among normalised arguments; raise KeyError if there is no key."""
    key: list[Any] = [first]
    values: list[Any] = []
    glance(args, key, values)
    if options:
        glance((options,), key, values)
    return tuple(key), values


def glance(items: Iterable[Any], key: list[Any], values: list[Any]) -> None:
    """Append a key of ``items`` to ``key``, and the inputs among them to ``values``, in order.

    Raises
    ------
    KeyError
        For anything else: objects, named containers, or subclasses.
    """
    for item in items:
        kind = item.__class__
        if kind is np.ndarray:
            key += (kind, item.dtype, item.shape)
            values.append(item)
        elif kind in NUMBERS:
            key.append(kind)
            values.append(item)
        elif kind in _FIXED:
            key += (kind, item)
        elif kind is list or kind is tuple:
            key += (kind, len(item))
            glance(item, key, values)
        elif kind is dict and all(type(name) in _NAMES for name in item):
            key += (kind, tuple([(type(name), name) for name in item]))
            glance(item.values(), key, values)
        else:
            raise KeyError(kind)


# the same form as the last call ----------------------------------------------------------------------------------------


class Seen(dict[Any, Any]):
    """Programs by the keys of their calls; ``last`` is the last one called, with a test for such calls."""

    last: tuple[Callable[[tuple[Any, ...]], tuple[Any, ...] | None], Any, Any] | None = None

    def clear(self) -> None:
        """Forget all programs."""
        self.last = None
        super().clear()

    def drop(self, key: Any) -> None:
        """Forget one program."""
        self.last = None
        self.pop(key, None)


def matcher(args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...] | None] | None:
    """Return a function that returns the inputs among arguments of the form of ``args``, and None for other forms.

    It is the key of :func:`glance` written out as comparisons. None for dictionaries, for which there is no such
    function.
    """
    lines: list[str] = []
    values: list[str] = []
    space: dict[str, Any] = {}
    if len(args) > _WRITTEN_OUT or not all(_match(f"a{k}", a, lines, values, space) for k, a in enumerate(args)):
        return None
    unpacked = "".join(f"a{k}, " for k in range(len(args)))
    text = [f"if len(args) != {len(args)}: return None", *([f"{unpacked}= args"] if args else []), *lines]
    text.append(f"return ({''.join(f'{v}, ' for v in values)})")
    exec(_compiled("def match(args):\n" + "".join(f"    {line}\n" for line in text)), space)  # noqa: S102 (our own text)
    return space["match"]


_WRITTEN_OUT = 40  # items that a generated function compares


@lru_cache(maxsize=128)
def _compiled(text: str) -> CodeType:
    return compile(text, "<tensormagic form>", "exec")


def _match(name: str, item: Any, lines: list[str], values: list[str], space: dict[str, Any]) -> bool:
    """Append the comparisons for one item called ``name``; return False if it cannot be compared."""
    kind = item.__class__
    space[f"k{name}"] = kind
    test = f"{name}.__class__ is not k{name}"
    if kind is np.ndarray:
        space[f"d{name}"], space[f"s{name}"] = item.dtype, item.shape
        test += f" or {name}.dtype is not d{name} or {name}.shape != s{name}"
    elif kind in _FIXED:
        space[f"v{name}"] = item
        test += f" or {name} != v{name}"
    elif kind is list or kind is tuple:
        test += f" or len({name}) != {len(item)}"
    elif kind not in NUMBERS:
        return False
    lines.append(f"if {test}: return None")
    if kind is not list and kind is not tuple:
        values += [] if kind in _FIXED else [name]
        return True
    parts = [f"{name}_{k}" for k in range(len(item))]
    lines += [f"{', '.join(parts)}, = {name}"] if parts else []
    few = len(item) + len(lines) <= _WRITTEN_OUT
    return few and all(_match(part, v, lines, values, space) for part, v in zip(parts, item, strict=True))


# calls of compiled functions -------------------------------------------------------------------------------------------

_CALLS = 128  # forms of calls that are kept


@dataclass(eq=False)
class Call:
    """A form of arguments seen before: its test, the inputs, their sizes, and machine code for these."""

    match: Callable[[tuple[Any, ...]], Any]
    sizes: dict[Any, int]
    bound: Callable[[Sequence[Any]], list[Any] | None] | None = None


def no_form(_args: tuple[Any, ...]) -> None:
    """Return None: no function is known that recognises the form."""


class Calls(dict[Any, Call]):
    """Calls by their form; ``last`` is the one that was called last."""

    last = Call(no_form, {})

    def known(self, args: tuple[Any, ...]) -> tuple[Call, Sequence[Any]]:
        """Return the call with the form of these arguments, and the inputs among them; raise KeyError for a new form."""
        key, values = known_by(None, args, {})
        self.last = self[key]
        return self.last, values

    def note(self, args: tuple[Any, ...], values: Sequence[Any], sizes: dict[Any, int]) -> None:
        """Remember a form of arguments, if it has just these inputs."""
        try:
            key, found = known_by(None, args, {})
        except (KeyError, TypeError):
            return
        if len(found) == len(values) and all(map(operator.is_, found, values)):
            while len(self) >= _CALLS:
                del self[next(iter(self))]
            self[key] = self.last = Call(matcher(args) or no_form, sizes)


# arguments by name -----------------------------------------------------------------------------------------------------

Completing = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


class ByPosition:
    """Normalises arguments to positional ones, as a function takes them."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._known: tuple[Any, inspect.Signature] | None = None  # what the signature was made of, and the signature
        self._orders: dict[Any, tuple[Any, list[int], list[tuple[str, int]]]] = {}

    def __call__(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments in their normal form."""
        function = self._function
        now = function.__code__, function.__defaults__, tuple(function.__kwdefaults__ or ())
        if self._known is None or self._known[0] != now:
            self._known = now, inspect.signature(function, follow_wrapped=False)
        try:
            bound = self._known[1].bind(*args, **options)
        except TypeError:
            function(*args, **options)  # raises in Python's own words, before anything runs
            raise
        return bound.args, bound.kwargs

    def quickly(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the normal form, faster if the same number of positional arguments and the same names were given before."""
        given, function = (len(args), tuple(options)), self._function
        now = function.__code__, function.__defaults__, function.__kwdefaults__
        order = self._orders.get(given)
        if order is None or not all(map(operator.is_, order[0], now)):
            order = self._orders[given] = (now, *self._order(*given))
        items = (*args, *options.values())
        return tuple([items[k] for k in order[1]]), {name: items[k] for name, k in order[2]}

    def _order(self, count: int, names: tuple[str, ...]) -> tuple[list[int], list[tuple[str, int]]]:
        """Return the order of arguments by position, and of those by name, as indices into those given."""
        given = [object() for _ in range(count + len(names))]
        args, options = self(tuple(given[:count]), dict(zip(names, given[count:], strict=True)))
        return [given.index(item) for item in args], [(name, given.index(item)) for name, item in options.items()]
