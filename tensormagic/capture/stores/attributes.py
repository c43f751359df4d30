"""Assigned attributes of an array: ``x.shape = …`` and the parts of complex numbers; others are refused by name."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import show_deprecations
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.python import usercode
from tensormagic.capture.stores.place import reshapes_in_place
from tensormagic.capture.values.live_values import held
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.type import hint
from tensormagic.ops.leaf import INPUT


def _set_shape(self: Tensor, shape: Any) -> None:
    if self.type.form == "scalar":
        raise AttributeError("attribute 'shape' of 'numpy.generic' objects is not writable")
    if self.type.form == "python":
        raise AttributeError(f"'{self.type}' object has no attribute 'shape'")
    if self.place.parent is None and self.place.buffer.array is not None:
        name = self.place.buffer.name
        refuse(
            f"a new shape of the notebook's {name}",
            f"Write {name} = {name}.reshape(...), which makes a new array of that name.",
        )
    others = self.place.buffer.alias.others(whole=self.place.parent is None) + ["another array"] * _others_may_be(self)
    if others:
        refuse(
            f"a new shape of an array that may be {' or '.join(dict.fromkeys(others))}, depending on the data,",
            "Use x = x.reshape(...), which makes a new array of that name.",
        )
    _may_reshape(self)
    show_deprecations(_reshape)
    reshaped = self.reshape(shape)
    in_place = reshapes_in_place(self.place, reshaped.type.shape)
    capture = context.current()
    if capture is not None:
        capture.stored()  # the argument's layout decides whether this is an error
    if self.ndim and hint(self.type.size) != 0:
        if in_place is None:
            refuse(
                "a new shape of an array whose layout is not known",
                "Use x = x.reshape(...), which makes a new array of that name.",
            )
        if not in_place:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
            )
    self.place = replace(reshaped.place, own=not self.place.is_view)


def _others_may_be(x: Tensor) -> bool:
    """Return whether it is data-dependent if another live array is ``x``."""

    def found() -> bool:
        return any(isinstance(one, Tensor) and _may_be(one, x) for one in held())

    if not found():
        return False
    frame = usercode.user_frame()
    while frame is not None:  # frames whose variables were read: a frame caches them, and so holds their former values
        frame.f_locals  # noqa: B018
        frame = frame.f_back
    gc.collect()  # what remains of a branch may hold its values in a reference cycle
    return found()


def _reshape() -> None:
    setattr(np.zeros(1), "shape", (1, 1))  # noqa: B010 (types say deprecated, too)


def _may_be(one: Tensor, x: Tensor) -> bool:
    """Return whether it is data-dependent if an array is ``x``, whose shape it then has."""
    buffer = one.place.buffer
    if one is x or one.place.parent is not None or buffer is x.place.buffer:
        return False
    return buffer.alias.may_be(buffer, x.place)


def _may_reshape(x: Tensor) -> None:
    """Raise for a new shape of an argument, whose owner would not see it, and for one that would have to be undone."""
    capture, buffer = context.current(), x.place.buffer
    if capture is None:
        return
    if capture.heap.trials:
        refuse("a new shape of an array in a loop or a branch that depends on data", "Use x = x.reshape(...).")
    if capture.abstract and buffer.first.op is INPUT and x.place.parent is None:
        name = buffer.name or "x"
        refuse(
            f"a new shape of the argument {name}",
            f"Write {name} = {name}.reshape(...), which makes a new array of that name.",
        )


def _set_part(name: str) -> Any:
    def stored(self: Tensor, value: Any) -> None:
        if name == "imag" and self.dtype.kind != "c":
            raise DTypeError("array does not have imaginary part to set")
        getattr(self, name)[...] = value

    return stored


def _refused(name: str) -> Any:
    def stored(self: Tensor, value: Any) -> None:
        del value
        if self.type.form != "array":
            raise AttributeError(f"attribute {name!r} of 'numpy.generic' objects is not writable")
        refuse(f"another {name} of the same elements", f"Use y = x.{_INSTEAD[name]}, which makes a new array of them.")

    return stored


_INSTEAD = {"dtype": "view(dtype)", "strides": "reshape(shape), or y = x.transpose(axes)"}
Tensor.shape = Tensor.shape.setter(_set_shape)  # type: ignore[attr-defined]
Tensor.real = Tensor.real.setter(_set_part("real"))  # type: ignore[attr-defined]
Tensor.imag = Tensor.imag.setter(_set_part("imag"))  # type: ignore[attr-defined]
Tensor.dtype = Tensor.dtype.setter(_refused("dtype"))  # type: ignore[attr-defined]
Tensor.strides = property(lambda self: self.__getattr__("strides"), _refused("strides"))  # type: ignore[attr-defined]
