"""Every name of version 2024.12 is there, with the standard's signature."""

import inspect
import math
import pickle

import pytest

import tensormagic as tm
import tensormagic.numpy as xp

MAIN = str.split(
    """
    __array_api_version__ __array_namespace_info__ e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32
    uint64 float32 float64 complex64 complex128 asarray arange empty empty_like eye from_dlpack full full_like linspace
    meshgrid ones ones_like tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type abs acos acosh
    add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift
    bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot
    imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or
    logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder round sign
    signbit sin sinh square sqrt subtract tan tanh trunc take take_along_axis matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile
    unstack argmax argmin count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse unique_values
    argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff linalg fft
    """
)
LINALG = str.split(
    """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer
    pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
    """
)
FFT = str.split(
    """
    fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
    """
)
METHODS = str.split(
    """
    dtype device mT ndim shape size T __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
    __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__
    __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__
    __truediv__ __xor__ to_device __iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __ipow__ __imod__ __imatmul__
    __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__
    __rmod__ __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__ __rrshift__ __array__ __iter__ __len__
    """
)
FUNCTIONS = [
    *((xp, n) for n in MAIN if inspect.isfunction(getattr(xp, n, None)) and not n.startswith("__")),
    *((xp.linalg, n) for n in LINALG),
    *((xp.fft, n) for n in FFT),
]
SENTINELS = {"astype": "device", "from_dlpack": "device copy"}  # where array-api-strict tells None from nothing


def test_names_are_those_of_the_standard_and_no_others():
    assert set(xp.__all__) == set(MAIN)
    assert set(xp.linalg.__all__) == set(LINALG)
    assert set(xp.fft.__all__) == set(FFT)
    assert all(hasattr(module, name) for module in (xp, xp.linalg, xp.fft) for name in module.__all__)


def test_it_is_tm_numpy():
    assert tm.numpy is xp
    assert xp.__array_api_version__ == "2024.12"


def test_constants():
    assert (xp.e, xp.inf, xp.pi, xp.newaxis) == (math.e, math.inf, math.pi, None)
    assert math.isnan(xp.nan)
    assert all(type(v) is float for v in (xp.e, xp.inf, xp.nan, xp.pi))


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str):
    assert getattr(xp.ones((2, 2)), name) is not None


def parameters(function: object, loose: str = "") -> list[tuple[str, object, object]]:
    """Names, kinds and defaults; of ``loose`` ones no default."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, None if p.name in loose.split() else p.default) for p in found]


def test_signatures_are_those_of_the_strict_implementation():
    strict = pytest.importorskip("array_api_strict")
    different: list[str] = []
    for module, name in FUNCTIONS:
        theirs = strict if module is xp else getattr(strict, module.__name__.rpartition(".")[2])
        loose = SENTINELS.get(name, "")
        if parameters(getattr(module, name), loose) != parameters(getattr(theirs, name), loose):
            different.append(name)
    assert different == ["expand_dims"]  # whose axis has a default here


@pytest.mark.parametrize(("module", "name"), FUNCTIONS, ids=lambda v: getattr(v, "__name__", v))
def test_functions_say_what_they_are(module: object, name: str):
    function = getattr(module, name)
    assert function.__name__ == name
    assert function.__doc__
    assert function.__module__.startswith("tensormagic.numpy")


def test_functions_made_by_a_table_are_pickled_by_name():
    for function in (xp.sin, xp.add):
        assert pickle.loads(pickle.dumps(function)) is function


def test_expand_dims_takes_its_axis_by_keyword_and_by_position():
    (x, axis) = inspect.signature(xp.expand_dims).parameters.values()
    assert (x.kind, axis.kind, axis.default) == (x.POSITIONAL_ONLY, axis.POSITIONAL_OR_KEYWORD, 0)
    assert xp.expand_dims(xp.ones(3), 1).shape == xp.expand_dims(xp.ones(3), axis=1).shape == (3, 1)
