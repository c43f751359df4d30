"""NumPy's functions that only compute from their arguments, grouped by what rules for accuracy may know of their results.

Functions that contain a difference themselves, as ``np.diff`` and ``np.cross``, are not among them: it could not be
examined. Neither are functions that lose digits elsewhere than where a logarithm does (``arcsin`` near 1, ``log1p``
near -1), that take functions, or that store.
"""

from __future__ import annotations

import inspect
import math
from functools import lru_cache
from typing import Any

import numpy as np

EXPONENTIALS = {"exp", "exp2", "sinh", "cosh"}
LOGARITHMS = {"log", "log2", "log10"}
IN_SUMS = {"sin", "cos", "tan", "tanh", "arctan", "arctan2", "angle"}
"""Functions that rules know in sums, beside logarithms and exponentials."""

_LINALG = {
    "inv", "det", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "svd", "qr", "norm", "pinv", "lstsq", "matrix_power", "cond",
    "matrix_rank", "solve",
}  # fmt: skip
_FFT = {
    "fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "fftshift", "ifftshift", "fftfreq", "rfftfreq",
}  # fmt: skip
CENTRES = {"mean", "nanmean", "median", "average"}
"""Functions that give what lies among numbers: no rule is about such a one less what is no quotient, root or the like."""

_POWERS = {"sqrt", "power", "square", "cbrt", "hypot"}
_MEANS = CENTRES | {
    "std", "var", "percentile", "quantile", "nanstd", "nanvar", "nanmedian", "cov", "corrcoef",
    "interp", "polyfit", "prod", "cumprod", "histogram", "logspace", "geomspace", "convolve", "correlate",
}  # fmt: skip
QUOTIENTS = _POWERS | _MEANS | _LINALG | _FFT
"""Functions that give roots, powers, means, or anything that rules may know as such."""

FOLDS = {
    "dot",
    "matmul",
    "sum",
    "outer",
    "inner",
    "vdot",
    "tensordot",
    "einsum",
    "trace",
    "cumsum",
    "nansum",
    "bincount",
}
"""Functions that add up: no rule sees through them."""

_PARTS = {
    "zeros", "ones", "empty", "full", "linspace", "eye", "identity", "zeros_like", "ones_like", "empty_like", "full_like", "arange",
    "array", "asarray", "copy", "where", "maximum", "minimum", "abs", "absolute", "add", "multiply", "negative", "positive", "min", "max",
    "amin", "amax", "any", "all", "argmin", "argmax", "logical_and", "logical_or", "logical_not", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "roll", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack",
    "transpose", "reshape", "expand_dims", "squeeze", "clip", "sign", "signbit", "copysign", "floor", "ceil", "rint", "round", "around",
    "trunc", "fix", "nonzero", "flatnonzero", "count_nonzero", "argwhere", "isnan", "isfinite", "isinf", "isclose", "allclose",
    "array_equal", "sort", "argsort", "searchsorted", "digitize", "unique", "isin", "tril", "triu", "diag", "diagonal", "remainder", "mod",
    "floor_divide", "fabs", "fmax", "fmin", "flip", "fliplr", "flipud", "rot90", "swapaxes", "moveaxis", "ravel", "repeat", "tile", "pad",
    "append", "delete", "insert", "split", "array_split", "hsplit", "vsplit", "atleast_1d", "atleast_2d", "broadcast_to", "meshgrid",
    "indices", "tril_indices", "triu_indices", "take", "take_along_axis", "kron", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "real", "imag", "conj", "conjugate", "nanmin", "nanmax", "radians", "degrees", "deg2rad", "rad2deg", "ndarray", "int8",
    "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128", "bool_", "intp",
}  # fmt: skip

KEYWORDS = {
    "axis", "axes", "axis1", "axis2", "dtype", "keepdims", "copy", "k", "start", "bins", "range", "weights", "density", "minlength",
    "decimals", "side", "kind", "stable", "ord", "mode", "indexing", "repeats", "rowvar", "bias", "ddof", "n", "endpoint", "num", "base",
    "full_matrices", "compute_uv", "hermitian", "rcond", "UPLO", "left", "right", "period", "shift", "source", "destination", "shape",
    "newshape", "min", "max", "a_min", "a_max", "rtol", "atol", "equal_nan", "return_index", "return_inverse", "return_counts", "deg",
    "offset", "d", "s", "method", "constant_values", "fill_value", "sparse",
}  # fmt: skip
"""Options of these functions: none has them store into what they are given."""

FUNCTIONS = {getattr(np, name) for name in _POWERS | _MEANS | FOLDS | _PARTS | EXPONENTIALS | LOGARITHMS | IN_SUMS}
CONSTANTS = {"pi", "e", "inf", "nan", "newaxis", "mgrid"}
OF_MODULES = {"linalg": _LINALG, "fft": _FFT}

_IN_MATH = (
    "floor", "ceil", "trunc", "fabs", "gcd", "isqrt", "factorial", "comb", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "exp",
    "log", "log2", "log10", "hypot", "copysign", "degrees", "radians", "isnan", "isinf",
    "isfinite",
)  # fmt: skip
MATH = {getattr(math, name) for name in _IN_MATH}

NAMES = QUOTIENTS | FOLDS | _PARTS | EXPONENTIALS | LOGARITHMS | IN_SUMS | {*_IN_MATH}
"""What these functions are called, imported by name as well."""

NEW = NAMES - {
    "array", "asarray", "ndarray", "transpose", "reshape", "expand_dims", "squeeze", "swapaxes", "moveaxis", "ravel", "flip", "fliplr",
    "flipud", "rot90", "diag", "diagonal", "atleast_1d", "atleast_2d", "broadcast_to", "split", "array_split", "hsplit", "vsplit",
    "meshgrid", "real", "imag", "conj", "conjugate", "round", "around", "einsum", "matrix_power", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128", "bool_", "intp", "histogram", "fft2", "fftn",
    "ifft2", "ifftn",
}  # fmt: skip
"""Those whose results never share memory with what they are given."""

_ANY = 2**10  # arguments

INTO_OF_ONE = {
    "logical_not", "negative", "absolute", "sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "rint", "sign", "conjugate",
}  # fmt: skip
"""Functions of one array that may be given a second one, which they store into."""


def is_in_module(dotted: str, count: int = 0) -> bool:
    """Return whether ``dotted`` is a known function of a NumPy module, as ``linalg.inv``, that only reads so many positional arguments."""
    module, _, name = dotted.partition(".")
    return name in OF_MODULES.get(module, ()) and count <= most_read(getattr(getattr(np, module), name))


@lru_cache(maxsize=256)
def most_read(function: Any) -> int:
    """Return how many positional arguments a function only reads: the next one is where its result is stored."""
    if isinstance(function, np.ufunc):
        return function.nin
    if "out" not in (getattr(function, "__text_signature__", None) or "out"):
        return _ANY  # parsing the text as a signature takes milliseconds the first time
    try:
        given = inspect.signature(function).parameters
    except ValueError:  # NumPy does not say
        return 2
    by_position = [name for name, p in given.items() if p.kind is not p.KEYWORD_ONLY]
    return by_position.index("out") if "out" in by_position else _ANY
