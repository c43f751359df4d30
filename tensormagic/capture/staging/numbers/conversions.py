"""``float``, ``int``, ``bool``, ``round``, ``tolist`` of captured values: a float stays in the graph; others where there are no values."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MethodType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.numbers.alternatives import LazyText, OneOf
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.staging.calls import object_texts, special_methods
from tensormagic.capture.staging.calls.foreign_functions import with_arrays
from tensormagic.capture.staging.loops.ranges import len_
from tensormagic.capture.staging.messages import value_texts
from tensormagic.capture.staging.numbers.truth import truth
from tensormagic.capture.staging.trials.trial import trial
from tensormagic.capture.tables.labelled import Labelled
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.size import nodes_of
from tensormagic.ops.effects.checks import require
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.complex_parts import from_parts

LARGEST = 2.0**63


def waits() -> bool:
    """Return whether code is captured without values."""
    capture = context.current()
    return capture is not None and (capture.abstract or capture.inputs.standing > 0)


def _stays(number: Any) -> bool:
    """Return whether a converted number stays in the graph: where code is captured without values, or on trial as a region.

    A number that may become an integer of more than 64 bits is left to Python, where that can run the code.
    """
    capture = context.current()
    if capture is None or not isinstance(number, Tensor):
        return False
    kind = number.dtype
    return waits() or (bool(capture.heap.trials) and (kind.kind in "bi" or (kind.kind == "u" and kind.itemsize < 8)))


def _is_number(args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether a single real captured number is converted."""
    given = args[0] if len(args) == 1 and not options else None
    if context.current() is None or not isinstance(given, Tensor) or given.node.op is CONSTANT:
        return False
    return not given.ndim and given.dtype.kind != "c"


def _own(args: tuple[Any, ...], options: dict[str, Any], name: str) -> Callable[[], Any] | None:
    """Return the special method of the one user object that is converted; None for anything else."""
    return special_methods.method_of(args[0], name) if len(args) == 1 and not options else None


def float_(*args: Any, **options: Any) -> Any:
    """Return what ``float`` gives."""
    if (own := _own(args, options, "__float__")) is not None:
        return float_(special_methods.converted_result(own, float))
    if not _is_number(args, options):
        return float(*args, **options)
    return wrap(to_form(astype(args[0].node, float), "python"))


def int_(*args: Any, **options: Any) -> Any:
    """Return what ``int`` gives."""
    if (own := _own(args, options, "__int__")) is not None:
        return int_(special_methods.converted_result(own, int))
    if not (_is_number(args, options) and _stays(args[0])):
        return int(*args, **options)
    return whole_number(args[0])


def whole_number(number: Tensor) -> Tensor:
    """Return a real number truncated to an integer; the graph raises an error if 64 bits do not hold it."""
    node = number.node
    if node.type.dtype.kind == "f":
        node = to_form(astype(node, float), "scalar")
        node = require(node, scalar.logical_not(scalar.isnan(node)), "cannot convert float NaN to integer")
        finite = scalar.logical_not(scalar.isinf(node))
        node = require(node, finite, "cannot convert float infinity to integer", "overflow")
        fits = scalar.less(scalar.absolute(node), LARGEST)
        node = require(node, fits, "cannot convert a float that is larger than 64 bits hold to an integer", "wide")
    elif node.type.dtype.kind == "u":
        node = require(
            node,
            scalar.less(to_form(astype(node, float), "scalar"), LARGEST),
            "an unsigned integer does not fit 64 bits",
            "wide",
        )
    return wrap(to_form(astype(node, int), "python"))


def bool_(*args: Any, **options: Any) -> Any:
    """Return what ``bool`` gives."""
    if (own := _own(args, options, "__bool__")) is not None:
        return bool_(special_methods.converted_result(own, bool))
    if _own(args, options, "__len__") is not None:
        return bool_(len_(args[0]))
    truths = waits() or trial() is not None
    asked = len(args) == 1 and (isinstance(args[0], Deferred) or (isinstance(args[0], Tensor) and not args[0].ndim))
    if not (truths and asked):
        return bool(*args, **options)
    found = truth(args[0])
    return found if isinstance(found, bool) else wrap(found)


def round_(number: Any, ndigits: int | None = None) -> Any:
    """Return what ``round`` gives, with NumPy's rules for NumPy's numbers."""
    if isinstance(number, Labelled):
        return round(number, *_given(ndigits))
    if isinstance(number, Tensor) and (number.type.form == "array" or _is_numpys_bool(number)):
        raise TypeError(
            f"type {'numpy.ndarray' if number.type.form == 'array' else 'numpy.bool'} doesn't define __round__ method"
        )
    return _rounded(number, ndigits) if _is_number((number,), {}) else round(number, *_given(ndigits))


def _given(ndigits: Any) -> tuple[Any, ...]:
    return () if ndigits is None else (ndigits,)


def _rounded(number: Tensor, ndigits: Any) -> Any:
    """Return what ``round`` gives for a real captured number."""
    stays, real, pythons = _stays(number), number.dtype.kind == "f", number.type.form == "python"
    if stays and number.dtype.kind in "bi" and _leaves_whole(number, ndigits):
        return whole_number(number)
    if ndigits is None:
        return int_(wrap(scalar.rint(number.node))) if stays and real else round(number)
    if pythons and real and waits():
        return with_arrays(round, "Python")(number, ndigits)  # this rounds the decimal text
    return round(number, ndigits) if pythons else number.round(ndigits)


def _leaves_whole(number: Tensor, ndigits: Any) -> bool:
    """Return whether rounding gives a Python integer, or one of NumPy's."""
    return ndigits is None or (number.type.form == "python" and type(ndigits) is int and ndigits >= 0)


def complex_(*args: Any, **options: Any) -> Any:
    """Return what ``complex`` gives."""
    if (own := _own(args, options, "__complex__")) is not None:
        return complex_(special_methods.converted_result(own, complex))
    given = [v for v in args if isinstance(v, Tensor)]
    if len(args) == 1 and not options and given and not given[0].ndim and given[0].dtype.kind == "c":
        return wrap(to_form(astype(given[0].node, complex), "python"))
    if not given or options or not all(_is_number((v,), {}) or type(v) in {int, float} for v in args):
        return complex(*args, **options)
    real, imag = [node_of(float_(v)) for v in (*args, 0.0)[:2]]
    return wrap(to_form(from_parts(real, imag), "python"))


def _is_numpys_bool(number: Tensor) -> bool:
    return number.dtype.kind == "b" and number.type.form == "scalar"


def _alone(value: Tensor) -> Tensor:
    try:
        return value.reshape(())
    except ValueError:
        raise ValueError("can only convert an array of size 1 to a Python scalar") from None


def item(value: Tensor, *index: Any) -> Any:
    """Return what ``ndarray.item`` gives."""
    place = index[0] if len(index) == 1 else index
    whole = (
        value if isinstance(place, tuple) or value.ndim == 1 else value.reshape(-1)
    )  # a single index counts in C order
    found = whole[place] if index else _alone(value)
    lazy = found.dtype.kind in "fc" and not found.ndim and found.node.op is not CONSTANT
    return wrap(to_form(found.node, "python")) if lazy else value.item(*index)


_LONGEST = 10_000  # elements of the lists that an array becomes, at most


def to_list(value: Tensor) -> Any:
    """Return what ``ndarray.tolist`` gives: nested lists of lazy numbers, where sizes are known."""
    capture = context.current()
    shape = [s if capture is None or nodes_of(s) else capture.specialise(s) for s in value.type.shape]
    lengths = [s for s in shape if isinstance(s, int)]
    if not waits() or len(lengths) < len(shape) or math.prod(lengths) > _LONGEST:
        return value.tolist()

    def listed(part: Tensor, rest: list[int]) -> Any:
        return [listed(part[k], rest[1:]) for k in range(rest[0])] if rest else wrap(to_form(part.node, "python"))

    return listed(value, lengths)


METHODS = {"item": item, "tolist": to_list}
"""Methods of lazy arrays that stand for these, by name: a method may be wrapped after this file has been read."""


def own_method(function: MethodType) -> Callable[..., Any] | None:
    """Return our replacement for a method of a lazy array; None for other classes or names."""
    found = METHODS.get(function.__name__)
    return found if found is not None and function.__func__ is getattr(Tensor, function.__name__) else None


def str_(*args: Any, **options: Any) -> Any:
    """Return what ``str`` gives: of a captured value, a text that is put together when the graph has run."""
    if not (waits() and len(args) == 1 and not options and _is_lazy_text(args[0])):
        return str(*args, **options)
    if isinstance(args[0], LazyText):
        return args[0]
    return args[0].mapped(str_) if isinstance(args[0], OneOf) else _text(args[0], "s")


def repr_(value: Any, /) -> Any:
    """Return what ``repr`` gives: of a captured value, a text that is put together when the graph has run."""
    if not (waits() and _is_lazy_text(value)):
        return repr(value)
    return value.mapped(repr_) if isinstance(value, OneOf) else _text(value, "r")


def _text(value: Any, conversion: str) -> Any:
    own = object_texts.own_text(value, conversion, "")
    return value_texts.text((value, conversion, "")) if own is None else value_texts.text(*own)


def format_(value: Any, spec: str = "", /) -> Any:
    """Return what ``format`` gives: of a captured value, a text that is put together when the graph has run."""
    if not (waits() and _is_lazy_text(value)) or isinstance(value, OneOf) or type(spec) is not str:
        return format(value, spec)
    return value_texts.text((value, "", spec))


def _is_lazy_text(value: Any) -> bool:
    return isinstance(value, Tensor | Deferred) or value_texts.is_put_together(value)


CONVERSIONS: dict[Any, Callable[..., Any]] = {
    float: float_, int: int_, bool: bool_, round: round_, complex: complex_, str: str_, repr: repr_,
    format: format_,
}  # fmt: skip
