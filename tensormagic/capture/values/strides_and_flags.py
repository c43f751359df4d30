"""The strides and flags of lazy arrays, as NumPy would have them, or as they are once computed.

A function knows which arguments it is captured for: where it asks about layout, it is captured anew for arguments
with another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import needs_value, refuse
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.stores.lent import lent
from tensormagic.ir.node import Node
from tensormagic.ir.type import hint
from tensormagic.ops.opaque import ITEM

if TYPE_CHECKING:
    from tensormagic.capture.values.value import Tensor


def needs_memory(name: str) -> None:
    """Raise for a property in which arrays of the same type and shape differ, if code is captured for all of them."""
    capture = context.current()
    if capture is not None and (capture.abstract or capture.heap.trials):
        refuse_layout(name)


def refuse_layout(name: str) -> NoReturn:
    """Raise for the memory layout of a computed array, which differs from NumPy's in machine code."""
    raise NeedsPython(
        f".{name} depends on the memory layout of an array, which captured code does not know before it runs",
        "Read it outside the function or the loop; or run the cell with --plain.",
    )


def layout(value: Tensor, name: str) -> Any:
    """Return an array that lies in memory as the lazy one does, with elements of the same size."""
    known = value.place.layout() if not context.trying() else None
    capture = context.current()
    if capture is not None and capture.abstract and known is not None:
        capture.layouts.asked = True
        for size in value.type.shape:
            capture.specialise(size)
    if known is None and capture is not None and not _is_of_library(value.place.buffer.first):
        refuse_layout(name)
    if known is None or any(hint(s) is None for s in value.type.shape):
        needs_value(f".{name}", node=value.node)
        return np.asarray(value.numpy())
    room = np.empty(0, f"V{value.itemsize}")
    return np.lib.stride_tricks.as_strided(room, known.shape, [s * value.itemsize for s in known.strides])


def _is_of_library(node: Node) -> bool:
    """Return whether NumPy or SciPy makes an array, also in machine code."""
    return (node.args[0] if node.op is ITEM else node).op.kind == "opaque"


def strides(value: Tensor) -> tuple[int, ...]:
    """Return ``ndarray.strides``."""
    return layout(value, "strides").strides


def data(value: Tensor) -> memoryview[Any]:
    """Return ``ndarray.data``: a read-only copy of the present value; in plain code the memory itself."""
    needs_value(".data", node=value.node)
    found = np.asarray(value.numpy())
    return (lent(value.place, found) if context.current() is None else found).data


class Flags:
    """Represents ``ndarray.flags``."""

    def __init__(self, tensor: Tensor) -> None:
        object.__setattr__(self, "_tensor", tensor)

    def _read(self, name: str) -> Any:
        tensor: Tensor = object.__getattribute__(self, "_tensor")
        place = tensor.place
        if name == "writeable":
            needs_memory(f"flags.{name}")
            if place.writeable is None:
                needs_value(".flags", node=tensor.node)
            return place.writeable is not False
        if name == "owndata":
            needs_memory(f"flags.{name}")
            own = place.buffer.array
            return not place.is_view and (own is None or own.flags.owndata)
        if name == "aligned":
            return True
        return getattr(layout(tensor, "flags").flags, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(_NONE, name):
            raise AttributeError(f"'numpy._core.multiarray.flagsobj' object has no attribute {name!r}")
        return self._read(name)

    def __getitem__(self, name: str) -> Any:
        return self._read(_SHORT.get(name, name).lower())

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "writeable" or value:
            refuse(f"setting .flags.{name} to {value}", "Work on a copy, which is writeable.")
        place = object.__getattribute__(self, "_tensor").place
        if place.parent is not None or place.buffer.array is not None:
            refuse("setting .flags.writeable of a view, or of the notebook's own array,", "Set it outside the cell.")
        place.buffer.writeable = False

    def __repr__(self) -> str:
        rows = ["C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY"]
        return "".join(f"  {name} : {self[name]}\n" for name in rows)


_NONE = np.empty(0).flags
_SHORT = {
    "C": "C_CONTIGUOUS",
    "F": "F_CONTIGUOUS",
    "O": "OWNDATA",
    "W": "WRITEABLE",
    "A": "ALIGNED",
    "CA": "CARRAY",
    "FA": "FARRAY",
}
ATTRIBUTES: dict[str, Callable[[Tensor], Any]] = {"strides": strides, "flags": Flags, "data": data}
