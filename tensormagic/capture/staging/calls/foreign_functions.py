"""Functions that captured code calls as they are: Numba's, C functions of ctypes and cffi, and ufuncs that are not NumPy's.

They get arrays and numbers, and may store into the arrays. In a cell they are called at once. In a function that is
being captured they are called with the values of the call that it is captured for, which says of what types the
results are, and from then on whenever the graph runs, in the order of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import needs_value, refuse, values_are_there
from tensormagic.capture.foreign import side_effects
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import door
from tensormagic.capture.inputs.call_values import value_here
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.trials.trial import fail_trial
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError, GuardError, MissingAttributeError
from tensormagic.ir.node import Node
from tensormagic.ops.effects.outside import (
    ADVICE,
    Form,
    Held,
    Outside,
    Result,
    converted,
    outside,
    put,
    result_of,
)
from tensormagic.ops.opaque import item


def with_arrays(function: Callable[..., Any], maker: str = "") -> Callable[..., Any]:
    """Return ``function`` to be called with arrays in place of its lazy arguments."""
    if maker != "C" and values_are_there():
        return on_values(function, maker)

    def call(*args: Any, **options: Any) -> Any:
        made = isinstance(function, type) and values_are_there() and not _with_addresses((*args, *options.values()))
        return on_values(function, maker)(*args, **options) if made else _called(function, maker, args, options)

    return call


def _with_addresses(values: Sequence[Any]) -> bool:
    """Return whether a value holds the address of an array: objects made of addresses are built when C receives them."""
    return any(isinstance(v, Deferred) or (type(v) in {list, tuple} and _with_addresses(v)) for v in values)


class Deferred:
    """Represents a C argument made from an array (an address, or its holder), built when it is passed to a C function."""

    made_by = "C"

    def __init__(self, form: Form, name: str) -> None:
        self._form = form
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_ADDRESSES:
            raise MissingAttributeError(f"{self.__name__}.{name}, of an object of C, is not captured", ADVICE)
        return Deferred(("get", self._form, name), f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        inner = _with_tensors((args, options))
        return Deferred(("call", self._form, inner), self.__name__)

    def _refused(self, *_args: Any) -> Any:
        refuse(
            f"{self.__name__}, which gives an array's address, for anything but an argument of a C function",
            "Pass it to that function directly.",
        )

    __add__ = __radd__ = __sub__ = __int__ = __index__ = __bool__ = __str__ = __repr__ = __eq__ = __hash__ = _refused
    __getitem__ = __len__ = __iter__ = __format__ = _refused


_OF_ADDRESSES = {"data", "data_as", "shape_as", "strides_as", "shape", "strides"}


def address_of(tensor: Tensor) -> Deferred:
    """Return what ``ndarray.ctypes`` stands for, deferred."""
    return Deferred(("get", ("lazy", tensor), "ctypes"), ".ctypes")


hooks.address_of = address_of

# arguments ------------------------------------------------------------------------------------------------------------


def _with_tensors(value: Any) -> Form:
    """Return a description of how a value is put together from lazy ones."""
    if isinstance(value, Tensor):
        return ("lazy", value)
    if isinstance(value, Deferred):
        return object.__getattribute__(value, "_form")
    if type(value) in {list, tuple}:
        return (type(value), tuple(map(_with_tensors, value)))
    if type(value) is dict:
        return (dict, tuple(map(_with_tensors, value.items())))
    owner = getattr(value, "__self__", None)
    if callable(value) and not isinstance(owner, ModuleType | None) and not isinstance(value, type):
        return ("get", ("is", Held(owner)), value.__name__)  # a bound method is another object each time
    return ("is", Held(value))


def _numbered(form: Form, lent: list[Tensor]) -> Form:
    """Return the description with the numbers of operands in place of lazy values: one for each array."""
    kind, *what = form
    if kind == "lazy":
        found = next((k for k, t in enumerate(lent) if t is what[0]), len(lent))
        lent += [what[0]] if found == len(lent) else []
        return ("part", found)
    if kind == "get":
        return (kind, _numbered(what[0], lent), what[1])
    if kind == "call":
        return (kind, *(_numbered(f, lent) for f in what))
    return form if kind == "is" else (kind, tuple([_numbered(f, lent) for f in what[0]]))


def _called(function: Any, maker: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    capture = context.current()
    lent: list[Tensor] = []
    given = _with_tensors((args, options))
    own = _with_tensors(function)
    form = ("call", _numbered(own, lent), _numbered(given, lent))
    if capture is None or (not lent and not capture.abstract):
        return function(*args, **options)
    name = getattr(function, "__name__", type(function).__name__)
    call = Outside(name, maker, form)
    if capture.heap.trials:
        raise fail_trial(f"{call} is called in a data-dependent branch", ADVICE)
    try:
        if capture.abstract:
            if not isinstance(function, type):
                side_effects.count_call()
            return _as_node(call, lent, capture, ("call", own, given))
        for tensor in lent:
            needs_value(f"{call}", ADVICE, tensor.node)
        return _store_results(call([t.numpy() for t in lent]), lent, (), ("call", own, given))
    except GuardError:  # where derivatives are taken in a cell, of values that are not computed
        if capture.abstract:
            raise
    return _as_node(replace(call, once=[]), lent, capture, ("call", own, given))


def _as_node(call: Outside, lent: Sequence[Tensor], capture: context.Capture, own: Form) -> Any:
    """Return the result of a call that becomes a node of the graph."""
    values = [value_here(t.node, str(call)) for t in lent]
    result = result_of(call, values)
    if result.object is not None:
        return Deferred(own, call.name)
    if not capture.abstract:
        call.once.append(result)
    for tensor in lent:
        for size in tensor.type.shape:
            capture.specialise(size)
    node = outside(node_of(raising.noted()), [t.node for t in lent], call, result)
    first = item(node, 0)
    raising.note(wrap(context.record(first)))
    parts = [context.record(item(node, 1 + k)) for k in range(len(node.types) - 1)]
    capture.inputs.values.update(zip((first, *parts), (0, *result.values, *result.stored.values()), strict=True))
    return _store_results(result, lent, parts, own)


def _store_results(result: Result, lent: Sequence[Tensor], parts: Sequence[Node], own: Form) -> Any:
    """Return the result of a call for captured code, after making its stores."""
    if result.object is not None:
        return Deferred(own, type(result.object).__name__)
    if result.stored:
        _refuse_overlaps(result, lent)
    values: Sequence[Any] = list(map(_lazy, parts[: len(result.values)])) or result.values
    stored = list(map(wrap, parts[len(result.values) :])) or list(result.stored.values())
    for k, value in zip(result.stored, stored, strict=True):
        lent[k][...] = value
    return put(result.form, values, lent)


def _lazy(node: Node) -> Any:
    return Objects(node) if node.type.dtype == object else wrap(node)


class Objects:
    """Represents an array of Python objects that a call in a function returned: it can only be converted."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def astype(self, dtype: Any, *_options: Any, **_others: Any) -> Tensor:
        """Return the array converted, as ``ndarray.astype`` does."""
        door.check_dtype(np.dtype(dtype), "the array")
        return wrap(context.record(converted(self.node, np.dtype(dtype))))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _of_objects()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = lambda self, _other: (
        _of_objects()
    )
    __getitem__ = __array__ = __pow__ = __rpow__ = lambda self, *_others: _of_objects()
    __neg__ = __len__ = __iter__ = lambda self: _of_objects()
    __array_ufunc__ = __array_function__ = lambda self, *_args, **_options: _of_objects()


def _of_objects() -> NoReturn:
    refuse("an array of Python objects", "Convert it where it is made: .astype(float).")


def _refuse_overlaps(result: Result, lent: Sequence[Tensor]) -> None:
    for k in result.stored:
        for other, tensor in enumerate(lent):
            own = lent[k].place.buffer
            if other != k and tensor.ndim and (tensor.place.buffer is own or own.alias.depends or own.shared):
                raise CaptureError(
                    "an uncaptured function stores into an array, and another argument is a part of the same array",
                    "Pass copies.",
                )
