"""``tm.to_gpu`` and ``tm.to_host``: copies between the host and the GPU that the user asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.cuda.device import current
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.capture import context
from tensormagic.capture.inputs.door import check_dtype
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.python.usercode import user_frame, user_names
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.tensor import tensor
from tensormagic.ir.errors import DTypeError
from tensormagic.ops.leaf import input_node, open_type
from tensormagic.residence import Resident

_GPUS = frozenset({2, 13})  # DLPack's numbers of GPU memory, and of memory that both sides share


def to_gpu(value: Any, *, copy: bool = True) -> Any:
    """Copy a value to the GPU, to stay there: every run on the GPU reads it from there.

    Parameters
    ----------
    value
        An array, a lazy array, or a container of these (a list, a tuple, a dictionary, a dataclass). An array that another library
        has on the GPU (CuPy, PyTorch, JAX: what has ``__cuda_array_interface__`` or DLPack) does not pass through the host; it is given by
        itself, in no container.
    copy
        For such an array: whether it is copied on the GPU. Without a copy, the memory is shared, and a store into it changes the
        lazy array, too.

    Returns
    -------
    Tensor
        A lazy array whose value lies on the GPU; for a container, one like it.

    Raises
    ------
    DeviceError
        If there is no GPU; the message says what is missing.

    Examples
    --------
    >>> X = to_gpu(np.ones((1000, 30)))  # doctest: +SKIP
    """
    current()
    if _is_foreign(value):
        return _adopted(value, copy=copy)
    leaves, build = flatten(value)
    return build(iter(map(_there, leaves)))


def _is_foreign(value: Any) -> bool:
    """Return whether an array of another library lies on a GPU."""
    if isinstance(value, Tensor | np.ndarray):
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    where: Any = getattr(value, "__dlpack_device__", None)
    return where is not None and where()[0] in _GPUS


def _adopted(value: Any, *, copy: bool) -> Tensor:
    array = current().adopt(value)
    if array is None:
        raise DTypeError(f"a {type(value).__name__} is not an array on this device")
    held = user_names(user_frame()).items()
    name = next((n for n, v in held if v is value and not n.startswith("_")), "the data")
    check_dtype(array.dtype, name)
    with config.using(device="gpu"):
        source = Snapshot(name, Resident(device_array=array.copy() if copy else array))
        return wrap(input_node(source, open_type(source, array.dtype, array.shape)))


def _there(value: Any) -> Any:
    if not isinstance(value, Tensor | np.ndarray) or not np.ndim(value):
        return value
    with config.using(device="gpu"), asked_for():
        made = tensor(value)
        session.place(made.node)
        return made if made.placed[0] == "gpu" else made.copy()


def to_host(value: Any) -> Any:
    """Return the value on the host: a NumPy array or a number; for a container, one like it.

    Parameters
    ----------
    value
        A lazy array, or a container of these; values on the host are returned as they are.

    Returns
    -------
    array, number or container
        The same values, computed if they were not yet.

    Examples
    --------
    >>> to_host(tensor([1.0, 2.0]) * 2)
    array([2., 4.])
    """
    leaves, build = flatten(value)
    with asked_for():
        return build(iter([v.numpy() if isinstance(v, Tensor) else v for v in leaves]))


def _interface(self: Tensor) -> dict[str, Any]:
    array = None if context.current() is not None else session.device_array(self.node)
    if array is None:
        raise AttributeError("the value does not lie on the device", name="__cuda_array_interface__", obj=self)
    return array.__cuda_array_interface__


Tensor.__cuda_array_interface__ = property(_interface)  # type: ignore[attr-defined]
