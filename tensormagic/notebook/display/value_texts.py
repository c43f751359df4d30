"""Values and gradients as one line of text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.capture.values.summary import is_on_device
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.plain_texts import holds_users, plain_text
from tensormagic.ir.type import hint
from tensormagic.notebook.pictures.labels import clean

MOST_COPIED = 1 << 16  # bytes of a value on the device that are copied to be shown


_FEW = 4  # elements of a gradient that are written out


def value_text(value: Any, most: int = 72, digits: int = 10) -> str:
    """Return a value on one line: numbers with ten ``digits``, arrays with their first and last elements."""
    if isinstance(value, np.ndarray) and value.ndim and not (value.dtype.hasobject and holds_users(value)):
        for edge in (3, 2, 1) if value.ndim == 1 else (2, 1):
            if len(text := _array_text(value, edge)) <= most:
                return text
        first, last = (value_text(v[0], digits=6) for v in (value.flat[:1], value.flat[-1:]))
        return clean(f"{'[' * value.ndim}{first}, …, {last}{']' * value.ndim}", most)
    plain = np.asarray(value)[()] if isinstance(value, np.ndarray) else value
    if isinstance(plain, np.generic):
        plain = plain.item()
    if type(plain) in {float, complex}:
        return f"{plain:.{digits}g}"
    return clean(plain_text(plain), most)


def _array_text(value: np.ndarray[Any, Any], edge: int) -> str:
    """Return an array with so many elements at each end of an axis."""
    text = np.array2string(
        value, separator=", ", precision=6, threshold=2 * edge, edgeitems=edge, max_line_width=10_000
    )
    return re.sub(r"(?<=\[) | (?=[,\]])", "", re.sub(r"\s+", " ", text)).replace("...", "…")


def extremes(value: Any) -> str:
    """Return the minimum and maximum of an array that is not shown in full, and the number of nans.

    >>> extremes(np.array([3.0, np.nan, -1.0]))
    'min -1, max 3, nan: 1'
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or not value.size:
        return ""
    missing = int(np.isnan(value).sum()) if value.dtype.kind == "f" else 0
    if missing == value.size:
        return "all nan"
    low, high = (value_text(f.reduce(value, axis=None), digits=6) for f in (np.fmin, np.fmax))
    return f"min {low}, max {high}" + (f", nan: {missing}" if missing else "")


def actual_type(value: Any) -> str:
    """Return the type of a computed value: ``float64[569, 30]``."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return str(value.dtype) if isinstance(value, np.generic) else type(value).__name__


def norm_text(value: Any) -> str:
    """Return the shape of a gradient in NumPy's notation, and its Euclidean norm."""
    array = np.asarray(value)
    shape = f"shape {array.shape}, " if array.shape else ""
    with np.errstate(all="ignore"):
        return f"{shape}norm {np.linalg.norm(array.ravel()):.5g}"


def seen(value: Tensor) -> Any:
    """Return the value on the host, which who has it shown has asked for."""
    with asked_for():
        return value.numpy()


def stays_away(value: Tensor) -> bool:
    """Return whether a value on the device is not copied to be shown: it is large, or nothing may be copied."""
    if not is_on_device(value):
        return False
    size = hint(value.type.size)
    return value.placed[1] == "refuse" or size is None or size * value.dtype.itemsize > MOST_COPIED


def norm_of(gradient: Tensor) -> str:
    """Return :func:`norm_text` of a gradient, computed on the device if it lies there."""
    if not is_on_device(gradient):
        return norm_text(gradient.numpy())
    if gradient.placed[1] == "refuse":
        return repr(gradient).removeprefix("Tensor(").removesuffix(")")
    shape = f"shape ({', '.join(map(str, gradient.shape))}{',' * (gradient.ndim == 1)}), " if gradient.ndim else ""
    with gradient.leveled():
        return f"{shape}norm {session.norm_of(gradient.node):.5g}"


def gradient_text(gradient: Tensor) -> str:
    """Return ``= -2`` for a scalar gradient, ``= [-2, 1]`` for one with few elements, else the shape and the norm."""
    away = is_on_device(gradient)  # of an array there no more than its norm is copied
    few = not gradient.ndim or (not away and 0 < (hint(gradient.type.size) or 0) <= _FEW)
    if not few or (away and gradient.placed[1] == "refuse"):
        return norm_of(gradient)
    return f"= {value_text(seen(gradient), digits=6)}"
