"""A function of the namespace held against NumPy's: value, dtype, shape, and whether both raise the same kind of error."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tensormagic as tm
import tensormagic.numpy as xp

DTYPES = list(xp.__array_namespace_info__().dtypes().values())
FLOATING = [d for d in DTYPES if d.kind in "fc"]
SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 1, 3)]
KINDS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, np.linalg.LinAlgError)


def data(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Numbers of a dtype, the same ones each time."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(-100 if dtype.kind == "i" else 0, 100, shape).astype(dtype)
    values = rng.normal(size=shape) * 3 + (1j * rng.normal(size=shape) if dtype.kind == "c" else 0)
    return np.asarray(values).astype(dtype)


def lazy(value: Any) -> Any:
    """Arguments for the namespace: lazy arrays for arrays."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    return type(value)(map(lazy, value)) if type(value) in {list, tuple} else value


def values(result: Any) -> Any:
    """What a function of the namespace gave, as arrays; all that are arrays are lazy."""
    if isinstance(result, tuple | list):
        return [values(v) for v in result]
    assert isinstance(result, tm.Tensor), type(result)
    array = np.asarray(result)
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    return array


def outcome(compute: Callable[[], Any]) -> Any:
    """What ``compute`` gives, or the error that it raises; NumPy's warnings about empty slices and lost parts are not compared."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            return compute()
        except KINDS as error:
            return error


def agree(
    name: str, *args: Any, tolerance: float = 0.0, numpy: Callable[..., Any] | None = None, **options: Any
) -> None:
    """Hold ``xp.name`` (``linalg.name``, ``fft.name``) against NumPy's function of the same name."""
    ours, theirs = xp, np
    for part in name.split("."):
        ours = getattr(ours, part)
        theirs = numpy or getattr(theirs, part)
    want = outcome(lambda: theirs(*args, **options))
    got = outcome(lambda: values(ours(*lazy(args), **{k: lazy(v) for k, v in options.items()})))
    about = f"{name}{tuple(map(_shown, args))} {options}"
    if isinstance(want, Exception) or isinstance(got, Exception):
        common = [k for k in KINDS if isinstance(want, k) and isinstance(got, k)]
        assert common, f"{about}: NumPy gives {want!r}, the namespace {got!r}"
    else:
        _same(got, want, tolerance, about)


def _shown(value: Any) -> str:
    return f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _same(got: Any, want: Any, tolerance: float, about: str) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want), about
        for one, other in zip(got, want, strict=True):
            _same(one, other, tolerance, about)
        return
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), about
    if tolerance and want.dtype.kind in "fc":
        size = np.max(np.abs(want[np.isfinite(want)]), initial=0)
        limit = tolerance * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=limit, atol=limit * size, err_msg=about)
    else:
        np.testing.assert_array_equal(got, want, err_msg=about)
        _same_signs(got, want, about)


def _same_signs(got: np.ndarray, want: np.ndarray, about: str) -> None:
    for part in (np.real, np.imag) if want.dtype.kind == "c" else (np.asarray,) if want.dtype.kind == "f" else ():
        known = ~np.isnan(part(want))
        np.testing.assert_array_equal(np.signbit(part(got))[known], np.signbit(part(want))[known], err_msg=about)
