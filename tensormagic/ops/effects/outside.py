"""Calls of functions that no graph can hold, made when the graph runs: once, in the order of the program, with arrays.

Knows how a call is made and what it has returned; not which functions are called so, nor what captured code does with
the results.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.errors import CaptureError, DifferentiationError, GuardError
from tensormagic.ir.modules import package_of
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type
from tensormagic.ops.op import Tangent, Value, as_form
from tensormagic.ops.opaque import Opaque

Form = tuple[Any, ...]  # how a structure is rebuilt from numbered parts and fixed values
ADVICE = "Call it outside of captured code, with arrays; or write it as NumPy code."
_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_NUMBERS = (bool, int, float, complex)


class Held:
    """A parameter compared by value if it is a Python number or text, by identity otherwise."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key: Any = (type(value), repr(value)) if type(value) in _ATOMS else id(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Result:
    """The result of a call.

    Parameters
    ----------
    values
        Arrays and numbers, each once.
    form
        How the values, and operands that are returned, are put together.
    stored
        The operands it has stored into, each with its new contents.
    object
        The returned object, if it is one of C: an address, or a holder of one.
    """

    values: tuple[Any, ...]
    form: Form
    stored: dict[int, np.ndarray[Any, Any]]
    object: Any = None

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the values."""
        return tuple(map(_type_of, self.values))


@dataclass(frozen=True)
class Outside:
    """A call of a Python function that is not captured.

    Parameters
    ----------
    name, maker
        For messages: the name of the function, and whose it is.
    form
        The call: the function, and how its arguments are put together from the operands.
    once
        The result, if the function is called only once; empty if each run calls it.
    """

    name: str
    maker: str
    form: Form
    once: list[Result] = field(default_factory=list[Result], compare=False)

    def __str__(self) -> str:
        return f"{self.name}, a function of {self.maker}," if self.maker else f"{self.name}()"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, operands: Sequence[Any]) -> Result:
        """Call the function on copies of the operands, which it may store into."""
        lent = [np.array(v, order="K") if isinstance(v, np.ndarray) else v for v in operands]
        given = put(self.form, lent)
        if _is_of_c(given):
            return Result((), ("is", Held(None)), {}, given)
        values: list[Any] = []
        form = _apart(self, given, lent, values, {})
        stored = {
            k: a
            for k, (a, before) in enumerate(zip(lent, operands, strict=True))
            if isinstance(a, np.ndarray) and not _same_bits(a, before)
        }
        return Result(tuple(values), form, stored)


def put(form: Form, parts: Sequence[Any], operands: Sequence[Any] = ()) -> Any:
    """Build the value that ``form`` describes from ``parts``, and from ``operands`` that are returned."""
    kind, what, *rest = form
    if kind == "part":
        return parts[what]
    if kind == "operand":
        return operands[what]
    if kind == "is":
        return what.value
    if kind == "get":
        return getattr(put(what, parts, operands), rest[0])
    if kind == "call":
        args, options = put(rest[0], parts, operands)
        return put(what, parts, operands)(*args, **options)
    inner = [put(f, parts, operands) for f in what]
    return dict(inner) if kind is dict else kind(inner)


def _is_of_c(value: Any) -> bool:
    return any(package_of(k) in {"_ctypes", "ctypes", "_cffi_backend"} for k in type(value).__mro__)


def _apart(call: Outside, value: Any, lent: Sequence[Any], values: list[Any], seen: dict[int, int]) -> Form:
    """Return the form of a returned value; its arrays and numbers are appended to ``values``."""
    if type(value) in {list, tuple}:
        return (type(value), tuple([_apart(call, v, lent, values, seen) for v in value]))
    if type(value) is dict:
        return (dict, tuple([_apart(call, pair, lent, values, seen) for pair in value.items()]))
    if isinstance(value, np.ndarray):
        return _apart_array(call, value, lent, values, seen)
    if isinstance(value, np.generic) or type(value) in _NUMBERS:
        _check_number(call, value)
        values.append(value)
        return ("part", len(values) - 1)
    if type(value) not in _ATOMS:
        raise CaptureError(
            f"{call} gives a {type(value).__name__}, which is not an array, a number or a text",
            "Call it outside, with arrays.",
        )
    return ("is", Held(value))


def _apart_array(call: Outside, value: Any, lent: Sequence[Any], values: list[Any], seen: dict[int, int]) -> Form:
    if id(value) in seen:
        return ("part", seen[id(value)])
    for k, array in enumerate(lent):
        if not isinstance(array, np.ndarray) or not np.may_share_memory(array, value):
            continue
        own = array.__array_interface__, array.strides
        if (value.__array_interface__, value.strides) == own:
            return ("operand", k)
        raise CaptureError(f"{call} returns a part of an array that it is given", "Let it return a copy.")
    if type(value) is not np.ndarray or value.dtype.kind not in "biufcO":
        raise CaptureError(
            f"{call} gives {type(value).__name__} of dtype {value.dtype}, which is not captured",
            "Let it return arrays of numbers.",
        )
    seen[id(value)] = len(values)
    values.append(value)
    return ("part", len(values) - 1)


def _check_number(call: Outside, value: Any) -> None:
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise CaptureError(f"{call} gives an integer of more than 64 bits", "Let it return a float.")
    if isinstance(value, np.generic) and value.dtype.kind not in "biufc":
        raise CaptureError(
            f"{call} gives a {type(value).__name__}, which is not captured", "Let it return arrays of numbers."
        )


def _type_of(value: Any) -> Type:
    if isinstance(value, np.ndarray):
        return Type(value.dtype, value.shape)
    return Type(np.asarray(value).dtype, (), "scalar" if isinstance(value, np.generic) else "python")


def _same_bits(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays, one a copy of the other, hold the same bits."""
    if left.dtype.kind == "O":
        return True
    return left.tobytes() == right.tobytes()


# what is called while one call of a captured function runs ------------------------------------------------------------


@dataclass(eq=False)
class Log:
    """The calls made during one call of a captured function, so that capturing or running again does not repeat them."""

    done: list[tuple[Outside, Result]] = field(default_factory=list[tuple[Outside, Result]])
    place: int = 0

    def of(self, call: Outside, operands: Sequence[Any]) -> Result:
        """Return the result of the next call: the logged one if it was already made."""
        if self.place < len(self.done) and self.done[self.place][0] == call:
            self.place += 1
            return self.done[self.place - 1][1]
        result = call(operands)
        if result.object is None:  # an address is determined anew by the call that receives it
            del self.done[self.place :]
            self.done.append((call, result))
            self.place += 1
        return result


_log: ContextVar[Log | None] = ContextVar("log", default=None)


class Changed(GuardError, told_as=GuardError):  # noqa: N818 (says what happened)
    """Raised if something has changed since the function was captured; ``log`` has the calls made so far."""

    log: Log | None = None


@contextmanager
def logged(log: Log | None = None) -> Generator[Log]:
    """Log outside calls within the block, from the first entry on: in ``log``, else in the current log, else in a new one."""
    own = log or _log.get() or Log()
    before, own.place = _log.set(own), 0
    try:
        yield own
    except Changed as changed:
        changed.log = own
        raise
    finally:
        _log.reset(before)


def result_of(call: Outside, operands: Sequence[Any]) -> Result:
    """Return the result of ``call``, from the log if there is one."""
    if call.once:
        return call.once[0]
    log = _log.get()
    return call(operands) if log is None else log.of(call, operands)


# the operation --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class _Call(Opaque):
    """The op of a call of a function that is not captured: see ``OUTSIDE``."""

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        call: Outside = node["call"]
        result = result_of(call, values[1:])
        if (result.form, result.types, tuple(result.stored)) != (node["form"], node["given"], node["stores"]):
            now, then = ([str(t) for t in types] for types in (result.types, node["given"]))
            raise Changed(
                f"{call} gives {', '.join(now) or 'nothing'}, and stores into {len(result.stored)} arrays, "
                f"where it gave {', '.join(then) or 'nothing'} and stored into {len(node['stores'])}"
            )
        parts = [np.array(v) if isinstance(v, np.ndarray) else v for v in (*result.values, *result.stored.values())]
        return (values[0], *(v if t.shape else as_form(v, t.form) for v, t in zip(parts, node.types[1:], strict=True)))

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent | tuple[Tangent, ...]:
        if all(t is None for t in tangents):
            return tuple(None for _ in node.types)
        raise DifferentiationError(
            f"the derivative of {str(node['call']).rstrip(',')}, is not known",
            "Define it with tm.custom_gradient, or write the function as NumPy code.",
        )

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        raise CaptureError(
            f"{node['call']} is called in a function that is batched, with arrays of one element each",
            "Call it with the whole batch, outside of tm.vmap.",
        )


def _types(args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[Type, ...]:
    return (args[0].type, *params["given"], *(args[1 + k].type for k in params["stores"]))


OUTSIDE = _Call(
    name="outside",
    plainly="a call of a function of Python's",
    types=_types,
    numpy=lambda *_values, **_params: (),
    doc="The first operand, and the results of a function that is called with the others when the graph runs.",
)


def outside(token: Node, operands: Sequence[Node], call: Outside, result: Result) -> Node:
    """Return the node of a call: ``token``, the results, and the new contents of the operands it stores into.

    Parameters
    ----------
    token
        Orders it after earlier checks, prints and calls: a number without a meaning.
    operands, call
        The operands, and the call.
    result
        A result for such operands, which gives the types.
    """
    return make(
        OUTSIDE,
        (token, *operands),
        call=call,
        form=result.form,
        given=result.types,
        stores=tuple(result.stored),
    )


def _converted(value: Value, dtype: np.dtype[Any]) -> Value:
    return np.asarray(value).astype(dtype)


CONVERTED = Opaque(
    name="converted",
    types=lambda args, params: Type(params["dtype"], args[0].type.shape),
    numpy=_converted,
    doc="An array of Python objects, as numbers.",
)


def converted(objects: Node, dtype: np.dtype[Any]) -> Node:
    """Return an array of Python objects converted to numbers."""
    return make(CONVERTED, (objects,), dtype=dtype)
