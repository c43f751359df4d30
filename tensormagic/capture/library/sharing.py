"""Arrays in memory: windows by strides, and whether two arrays share memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_python
from tensormagic.capture.names import implements
from tensormagic.capture.stores.lent import lent
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.stores.windows import window
from tensormagic.capture.values import strides_and_flags
from tensormagic.capture.values.arguments import shape_of, tensor
from tensormagic.capture.values.value import Tensor, read_only
from tensormagic.ir.type import hint


@implements(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Any = None, strides: Any = None, *, subok: bool = False, writeable: bool = True
) -> Tensor:
    """Implement ``as_strided``: a view, where it stays within the elements of ``x``.

    It can be stored into where no element is there twice.
    """
    del subok
    array = tensor(x)
    lies = strides_and_flags.layout(array, "strides")
    extents = lies.shape if shape is None else tuple(_extent(s) for s in shape_of(shape))
    steps = lies.strides if strides is None else tuple(map(operator.index, strides))
    if len(extents) != len(steps):
        raise ValueError("mismatch in length of strides and shape")
    found = window(array, lies, steps, extents)
    return found if writeable else read_only(found)


def _extent(size: Any) -> int:
    capture = context.current()
    found = capture.specialise(size) if capture is not None else hint(size)
    if found is None:
        refuse("as_strided with a shape that depends on data", "Take elements by indices.")
    return found


class _At:
    """An array of which only the memory address is known."""

    def __init__(self, address: int, lies: np.ndarray[Any, Any]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": lies.shape,
            "strides": lies.strides,
            "typestr": f"|V{lies.itemsize}",
            "data": (address, True),
        }


def _placed(value: Any, other: Any) -> np.ndarray[Any, Any]:
    """Return an array at the address of ``value``, where each buffer has addresses of its own: it must not be read."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    if context.current() is None and not isinstance(other, Tensor):
        array = np.asarray(value)  # which libraries are given; plain code may store into the one that it is lent
        given = other is None or np.may_share_memory(array, np.asarray(other))
        return array if given else lent(value.place, array)
    lies = strides_and_flags.layout(value, "ctypes.data")
    own, there = value.place.buffer, value.place.layout()
    base = own.layout()
    alone = other is None and isinstance(own.array, np.ndarray)  # its real address, whatever else is there
    if there is None or base is None or (not alone and _may_be_part(own, other)):
        refuse_python(
            "whether arrays share memory, if captured code does not know how they were made,",
            "Ask outside the function, or in a separate cell.",
        )
    begins = own.array.__array_interface__["data"][0] if isinstance(own.array, np.ndarray) else own.born << _ROOM
    return np.asarray(_At(begins + (_address(there) - _address(base)) * lies.itemsize, lies))


_ROOM = 40  # bits of an address that count bytes within one array


def _may_be_part(own: Buffer, other: Any) -> bool:
    """Return whether an array may be a view of another's memory, which captured code treats as separate."""
    buffer = other.place.buffer if isinstance(other, Tensor) else None
    if buffer is own:
        return False
    unknown = not own.alias.alone or (own.writeable is False and own.array is None)
    return unknown or (own.argument and (buffer is None or buffer.argument))


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def interface(value: Tensor) -> dict[str, Any]:
    """Implement ``ndarray.__array_interface__``, with an address that tells it from other arrays, and must not be read."""
    known = _placed(value, None).__array_interface__
    data = (known["data"][0], value.place.writeable is False)
    return {**known, "data": data, "typestr": value.dtype.str, "descr": [("", value.dtype.str)]}


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Implement ``np.may_share_memory``."""
    return bool(np.may_share_memory(_placed(a, b), _placed(b, a), max_work))


@implements(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = -1) -> bool:
    """Implement ``np.shares_memory``."""
    return bool(np.shares_memory(_placed(a, b), _placed(b, a), max_work))
