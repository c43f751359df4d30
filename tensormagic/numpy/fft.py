"""The standard's extension for Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.values.value import Tensor
from tensormagic.numpy.calling import call, check_device
from tensormagic.numpy.dtypes import REAL

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _along_axis(name: str, about: str) -> Callable[..., Tensor]:
    def transform(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return call(getattr(np.fft, name), x, n, axis, norm)

    return _named(transform, name, about)


def _along_axes(name: str, about: str) -> Callable[..., Tensor]:
    def transform(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        if s is not None and axes is None:  # the standard's default: the last axes, as many as there are sizes
            axes = tuple(range(-len(s), 0))
        return call(getattr(np.fft, name), x, s, axes, norm)

    return _named(transform, name, about)


def _named(transform: Any, name: str, about: str) -> Any:
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = about
    return transform


fft = _along_axis("fft", "The discrete Fourier transform along an axis.")
ifft = _along_axis("ifft", "The inverse of ``fft``.")
rfft = _along_axis("rfft", "The Fourier transform of real elements: the half that is not redundant.")
irfft = _along_axis("irfft", "The inverse of ``rfft``.")
hfft = _along_axis("hfft", "The Fourier transform of half of a Hermitian signal: real elements.")
ihfft = _along_axis("ihfft", "The inverse of ``hfft``.")
fftn = _along_axes("fftn", "The Fourier transform along several axes.")
ifftn = _along_axes("ifftn", "The inverse of ``fftn``.")
rfftn = _along_axes("rfftn", "The Fourier transform of real elements along several axes.")
irfftn = _along_axes("irfftn", "The inverse of ``rfftn``.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the elements that ``fft`` gives."""
    check_device(device)
    return _of_dtype(call(np.fft.fftfreq, n, d), dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the elements that ``rfft`` gives."""
    check_device(device)
    return _of_dtype(call(np.fft.rfftfreq, n, d), dtype)


def _of_dtype(found: Tensor, dtype: Any) -> Tensor:
    if dtype is None:
        return found
    if np.dtype(dtype) not in REAL.values():
        raise TypeError(f"frequencies are real floating-point numbers, not {np.dtype(dtype)}")
    return found.astype(dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Return frequency zero in the middle."""
    return call(np.fft.fftshift, x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Return the inverse of ``fftshift``."""
    return call(np.fft.ifftshift, x, axes)
