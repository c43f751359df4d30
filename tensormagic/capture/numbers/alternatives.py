"""One of several values without a common type, chosen by data: two strings, a number or a string; and strings that contain numbers.

An operation on such a value is done on each that it may be (:meth:`OneOf.mapped`); a function returns the one that it
is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse, refuse_python
from tensormagic.capture.hooks import run_time
from tensormagic.capture.numbers.deferred import Deferred, Opaque
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.staging.trials.trial import place_of, trial
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.modules import package_of
from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects.checks import require
from tensormagic.ops.effects.raising import put
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, constant, constant_value
from tensormagic.ops.scalars import scalar

MOST = 64  # values that one may be, at most
_FIXED = (str, bytes, Enum, FunctionType, BuiltinFunctionType, np.ufunc)
_NUMBERS = {bool, int, float}


def is_fixed(value: Any) -> bool:
    """Return whether a value cannot be in a graph, but may be one of several."""
    return value is None or (isinstance(value, _FIXED) and not isinstance(value, int | float))


def same(first: Any, second: Any) -> bool:
    """Return whether two such values are the same."""
    return first is second or (type(first) is type(second) and isinstance(first, str | bytes) and first == second)


class OneOf(Opaque):
    """Represents one of several values, chosen by data.

    Parameters
    ----------
    code
        The number of the chosen one.
    options
        The values; one that is not chosen may hold any numbers.
    said
        Its name, for messages.
    """

    __slots__ = ("code", "options", "said")
    code: Tensor
    options: tuple[Any, ...]

    def __init__(self, code: Tensor, options: Sequence[Any], said: str = "") -> None:
        if len(options) > MOST:
            refuse(
                f"{said or 'a value'} that is one of more than {MOST}, depending on the data,", "Give a number instead."
            )
        for name, value in (("code", code), ("options", tuple(options)), ("said", said)):
            object.__setattr__(self, name, value)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Return the code, and all options that are not fixed."""
        return self.code, *(v for v in self.options if not is_fixed(v))

    @property
    def form(self) -> Any:
        """Return the fixed options, and where others are among them."""
        return "one of", tuple([v if is_fixed(v) else ... for v in self.options])

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that makes such a value from other parts."""
        form, said = self.form[1], self.said

        def made(parts: Sequence[Any]) -> Any:
            code, *others = parts
            rest = iter(others)
            return one_of(code, [next(rest) if v is ... else v for v in form], said)

        return made

    def mapped(self, function: Callable[[Any], Any], reached: Sequence[Any] = ()) -> Any:
        """Return the result of a pure function for the value; ``reached`` is what the function may read."""
        return mapped(self, function, reached)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not any(isinstance(v, str | LazyText) for v in self.options) or not hasattr("", name):
            self._refused(f"the attribute {name!r} of")
        return lambda *args, **options: self.mapped(lambda v: getattr(v, name)(*args, **options))

    def __getitem__(self, key: Any) -> Any:
        return self.mapped(lambda v: v[key])

    def __eq__(self, other: object) -> Any:
        return self.mapped(lambda v: _with(other, lambda o: v == o))

    def __ne__(self, other: object) -> Any:
        return self.mapped(lambda v: _with(other, lambda o: v != o))

    def __add__(self, other: Any) -> Any:
        return self.mapped(lambda v: _with(other, lambda o: v + o))

    def __radd__(self, other: Any) -> Any:
        return self.mapped(lambda v: other + v)

    __hash__ = Opaque.__hash__


def _operator(function: Callable[..., Any], *, reflected: bool = False) -> Callable[[OneOf, Any], Any]:
    def operate(self: OneOf, other: Any) -> Any:
        return self.mapped(lambda v: _with(other, lambda o: function(o, v) if reflected else function(v, o)))

    return operate


for _name in ("sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge"):
    setattr(OneOf, f"__{_name}__", _operator(getattr(operator, f"__{_name}__")))
    if _name not in {"lt", "le", "gt", "ge"}:
        setattr(OneOf, f"__r{_name}__", _operator(getattr(operator, f"__{_name}__"), reflected=True))


def _with(other: Any, function: Callable[[Any], Any]) -> Any:
    return other.mapped(function) if isinstance(other, OneOf) else function(other)


def one_of(code: Any, options: Sequence[Any], said: str = "") -> Any:
    """Return the value numbered ``code`` among ``options``; immediately if the code is known or computed."""
    if not isinstance(code, Tensor):
        if np.ndim(code):
            raise CaptureError(
                "which of several values a function gives may differ between the elements of a batch",
                "Return a number instead.",
            )
        return options[int(code)]
    if code.ndim:
        raise CaptureError(
            "which of several values a function gives may differ between the elements of a batch",
            "Return a number instead.",
        )
    known = constant_value(code.node)
    return OneOf(code, options, said) if known is None else options[int(known)]


def mapped(value: OneOf, function: Callable[[Any], Any], reached: Sequence[Any] = ()) -> Any:
    """Return the result of a pure function for each of several options, with the same data-dependent choice."""
    if all(v is None or isinstance(v, str | bytes) for v in value.options):
        try:
            found = [function(v) for v in value.options]
        except (TypeError, ValueError, LookupError, AttributeError):  # these are data-dependent, too
            return applied(value, function, reached)
        if all(same(v, found[0]) for v in found) and is_fixed(found[0]):
            return found[0]
        if all(is_fixed(v) for v in found):
            return OneOf(value.code, found, value.said)
        if len({type(v) for v in found}) == 1 and type(found[0]) in _NUMBERS:
            return wrap(_number(value.code.node, found))
    return applied(value, function, reached)


def applied(value: OneOf, function: Callable[[Any], Any], reached: Sequence[Any] = ()) -> Any:
    """Return the result of a function for the chosen value, including its effects on the value and on what is ``reached``."""

    def given(k: int) -> Any:
        try:
            return function(value.options[k])
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            if trial() is None or isinstance(error, CaptureError) or place_of(error) is not None:
                raise
            raise run_time.raised(error) from None  # in the user's line

    def way(k: int) -> Callable[[], Any]:
        return lambda: given(k)

    def from_(k: int) -> Any:
        if k == len(value.options) - 1:
            return given(k)
        holds = to_form(scalar.equal(value.code.node, constant(k)), "python")
        ways = way(k), lambda: from_(k + 1)
        return run_time.choose(holds, ways, (*ways, *value.options, *reached))

    return from_(0)


def _number(code: Node, found: Sequence[Any]) -> Node:
    node = constant(found[-1])
    for k in range(len(found) - 2, -1, -1):
        node = scalar.where(scalar.equal(code, constant(k)), constant(found[k]), node)
    return to_form(node, "python")


class Indexed:
    """Represents a container whose items are read and stored by a possibly data-dependent index."""

    __slots__ = ("container",)

    def __init__(self, container: Any) -> None:
        self.container = container

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, OneOf):
            return key.mapped(lambda k: self.container[k], (self.container,))
        if isinstance(key, Tensor) and type(self.container) is not dict:
            return _item(self.container, key)
        return self.container[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice) and package_of(type(value)) == "tensormagic":
            value = list(value)  # a list would replace a refusal by an error of its own
        self.container[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.container[key]


def _item(container: Sequence[Any], key: Tensor) -> Any:
    """Return the item of a list or tuple; among fixed values, a choice of these."""
    count = len(container)
    fixed = 0 < count <= MOST and all(is_fixed(v) for v in container) and not key.ndim and key.dtype.kind in "iu"
    if not fixed or static_value(key.node) is not None or _counts(key.node):
        return container[key]  # type: ignore[call-overload]  (it asks for a value)
    node = key.node
    holds = scalar.logical_and(scalar.greater_equal(node, constant(-count)), scalar.less(node, constant(count)))
    node = require(node, holds, f"{type(container).__name__} index out of range", "index")
    code = scalar.where(scalar.less(node, constant(0)), scalar.add(node, constant(count)), node)
    options = [v for k, v in enumerate(container) if not any(same(v, w) for w in container[:k])]
    places = [next(k for k, w in enumerate(options) if same(v, w)) for v in container]
    if places != list(range(count)):
        code = _number(code, places)
    return one_of(wrap(to_form(code, "python")), options)


def _counts(node: Node) -> bool:
    """Return whether an index depends only on indices of loops that Python may run, so that the items are known then."""
    leaves = [n for n in topological([node]) if not n.needs and n.op is not CONSTANT]
    ends = [n.params.get("within") for n in leaves]
    return bool(ends) and all(w and isinstance(w[1], int) and w[1] <= MOST for w in ends)


# texts ----------------------------------------------------------------------------------------------------------------


def texts_among(value: Any) -> int:
    """Return how many texts with numbers in them a value may be."""
    return sum(isinstance(v, LazyText) for v in (value.options if isinstance(value, OneOf) else (value,)))


class LazyText(Opaque):
    """Represents a text with values that are not known yet.

    Parameters
    ----------
    pieces
        Texts, and values with their conversions and formats.
    """

    __slots__ = ("pieces", "said")
    pieces: tuple[Any, ...]

    def __init__(self, pieces: Sequence[Any], said: str = "") -> None:
        object.__setattr__(self, "pieces", tuple(pieces))
        object.__setattr__(self, "said", said or "a text")

    @property
    def parts(self) -> tuple[Any, ...]:
        """Return the values."""
        return tuple([p[0] for p in self.pieces if not isinstance(p, str)])

    @property
    def form(self) -> Any:
        """Return the constant texts, conversions and formats."""
        return "text", tuple([p if isinstance(p, str) else p[1:] for p in self.pieces])

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        """Return a function that makes such a text from other values."""
        form, said = self.form[1], self.said

        def made(parts: Sequence[Any]) -> Any:
            rest = iter(parts)
            return text_of([p if isinstance(p, str) else (next(rest), *p) for p in form], said)

        return made

    def __add__(self, other: Any) -> Any:
        if isinstance(other, str | LazyText):
            return LazyText([*self.pieces, *_pieces(other)], self.said)
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        return LazyText([*_pieces(other), *self.pieces], self.said) if isinstance(other, str) else NotImplemented

    def __getattr__(self, name: str) -> Any:
        if not hasattr(str, name) or name.startswith("__"):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        if name not in _TO_TEXTS:
            self._refused(f".{name} of")
        return partial(ChangedText, self, name)

    def __eq__(self, other: object) -> bool:
        self._refused("the comparison of")

    def __len__(self) -> int:  # noqa: PLE0303 (raises)
        self._refused("the length of")

    def __getitem__(self, key: Any) -> Any:
        self._refused("a part of")

    def __iter__(self) -> Any:  # (raises)
        self._refused("a loop over")

    def __contains__(self, key: Any) -> bool:
        self._refused("`in` of")

    __hash__ = Opaque.__hash__


_TO_TEXTS = {  # methods of texts that give texts
    *(
        "capitalize",
        "casefold",
        "center",
        "expandtabs",
        "ljust",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "replace",
    ),
    *("rjust", "rstrip", "strip", "swapcase", "title", "upper", "zfill"),
}


class ChangedText(LazyText):
    """Represents the result of a method of a text that is not known yet.

    Parameters
    ----------
    text
        The text.
    name, args
        The method, and its arguments.
    """

    __slots__ = ("args", "name", "text")
    text: LazyText
    name: str
    args: tuple[Any, ...]

    def __init__(self, text: LazyText, name: str, *args: Any) -> None:
        if not all(type(a) in {str, int, type(None)} for a in args):
            refuse_python(
                f".{name} of a text, which depends on data, with arguments that do,", "Do that outside the function."
            )
        super().__init__([(self, "", "")], text.said)
        for key, value in (("text", text), ("name", name), ("args", args)):
            object.__setattr__(self, key, value)

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.text,)

    @property
    def form(self) -> Any:
        return "changed", self.name, self.args

    @property
    def again(self) -> Callable[[Sequence[Any]], Any]:
        name, args = self.name, self.args
        return lambda parts: getattr(parts[0], name)(*args)


def _pieces(value: Any) -> Sequence[Any]:
    return value.pieces if isinstance(value, LazyText) else [value]


def text_of(pieces: Sequence[Any], said: str = "") -> Any:
    """Return a text; a string at once if all its values are known or computed."""
    told = [p if isinstance(p, str) or isinstance(p[0], Tensor | Deferred) else put(*p) for p in pieces]
    return joined_text(told) if all(isinstance(p, str) for p in told) else LazyText(told, said)


def joined_text(told: Sequence[str]) -> str:
    """Return the text of known pieces; a single piece keeps its class."""
    told = [p for p in told if p]
    return told[0] if len(told) == 1 else "".join(told)


def joined(join: Callable[[Sequence[str]], str], texts: Iterable[Any]) -> Any:
    """Return what ``separator.join(texts)`` gives."""
    held = list(texts)
    if not any(isinstance(v, Deferred) for v in held):
        return join(held)
    separator = join(["", ""])
    pieces = [p if isinstance(p, str | LazyText) else (p, "", "") for p in held]
    if not all(isinstance(v, str | LazyText | OneOf) for v in held):
        refuse_python("str.join of a value that is not a string for some data", "Convert it with str(...) first.")
    return text_of([q for k, p in enumerate(pieces) for q in ([separator] if k else []) + _joined(p)])


def _joined(piece: Any) -> list[Any]:
    return [piece] if isinstance(piece, tuple) else [*_pieces(piece)]


def unchanging(value: Any) -> Any:
    """Return a value for a text as it is now, unchanged by later stores. A number that depends on sizes alone becomes known."""
    if isinstance(value, Tensor) and (known := value.specialised()) is not None:
        return known
    leaves, build = flatten(value)
    return build(iter([wrap(v.node) if isinstance(v, Tensor) else v for v in leaves]))
