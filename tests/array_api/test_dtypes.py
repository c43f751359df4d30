"""Data types: what is asked about them, what they promote to, and what the namespace says it can do."""

import itertools

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, agree, data, values

KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


def test_limits_of_floats_are_python_floats():
    for dtype in (xp.float32, xp.float64, xp.complex64, xp.complex128):
        for given in (dtype, xp.zeros(2, dtype=dtype)):
            info, want = xp.finfo(given), np.finfo(dtype)
            for name in ("bits", "eps", "max", "min", "smallest_normal", "dtype"):
                assert getattr(info, name) == getattr(want, name)
            assert {type(v) for v in (info.eps, info.max, info.min, info.smallest_normal)} == {float}
    assert xp.finfo(xp.complex64).dtype == xp.float32


def test_limits_of_integers():
    for dtype in (d for d in DTYPES if d.kind in "iu"):
        info, want = xp.iinfo(xp.ones(1, dtype=dtype)), np.iinfo(dtype)
        assert (info.bits, info.max, info.min, info.dtype) == (want.bits, want.max, want.min, dtype)
        assert {type(v) for v in (info.bits, info.max, info.min)} == {int}


@pytest.mark.parametrize(
    ("ask", "dtype"), [(xp.finfo, xp.int8), (xp.iinfo, xp.float32), (xp.finfo, xp.bool), (xp.iinfo, xp.bool)]
)
def test_limits_of_the_other_kind(ask, dtype):
    with pytest.raises(TypeError):
        ask(dtype)


def test_kinds():
    for dtype, kind in itertools.product(
        DTYPES, [*KINDS, *DTYPES, ("bool", "integral"), (), (xp.int8, "real floating")]
    ):
        assert xp.isdtype(dtype, kind) is np.isdtype(dtype, kind)
    with pytest.raises(ValueError, match="kinds are"):
        xp.isdtype(xp.int8, "integer")


def test_what_types_promote_to():
    for one, other in itertools.product(DTYPES, DTYPES):
        want = np.result_type(one, other)
        assert xp.result_type(one, other) == xp.result_type(xp.ones(2, dtype=one), other) == want
        assert xp.result_type(xp.ones((), dtype=one), np.ones(2, other)) == want
        assert xp.can_cast(one, other) is xp.can_cast(xp.ones(2, dtype=one), other) is np.can_cast(one, other)
    assert xp.result_type(xp.float32, 1.5) == xp.result_type(xp.ones(2, dtype=xp.float32), 2) == xp.float32
    assert xp.result_type(xp.int8, 1.5) == np.result_type(np.int8, 1.5)
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()


def test_astype():
    for one, other in itertools.product(DTYPES, DTYPES):
        if other.kind == "c" or one.kind != "c":
            x = np.abs(data((2, 3), one)).astype(one)
            agree("astype", x, other)
    x = xp.ones(2)
    assert xp.astype(x, xp.float64, copy=False) is x
    copied = xp.astype(x, xp.float64)
    copied[0] = 5.0
    assert float(x[0]) == 1.0
    with pytest.raises(ValueError, match="device"):
        xp.astype(x, xp.float32, device="gpu")


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.devices() == [info.default_device()] == [xp.ones(1).device]
    assert info.default_dtypes() == {
        "real floating": xp.asarray(1.0).dtype,
        "complex floating": xp.asarray(1j).dtype,
        "integral": xp.asarray(1).dtype,
        "indexing": xp.argmax(xp.ones(2)).dtype,
    }
    assert info.default_dtypes(device="cpu") == info.default_dtypes()


@pytest.mark.parametrize("kind", [*KINDS, ("bool", "integral"), None])
def test_types_by_kind(kind):
    found = xp.__array_namespace_info__().dtypes(kind=kind)
    assert found == {d.name: d for d in DTYPES if kind is None or xp.isdtype(d, kind)}
    assert found == np.__array_namespace_info__().dtypes(kind=kind)


def test_kinds_and_devices_that_are_not_there():
    info = xp.__array_namespace_info__()
    with pytest.raises(ValueError, match="kinds are"):
        info.dtypes(kind="integer")
    with pytest.raises(ValueError, match="device"):
        info.dtypes(device="gpu")
    with pytest.raises(ValueError, match="device"):
        info.default_dtypes(device="gpu")


def test_types_are_values_and_attributes_of_arrays():
    for name, dtype in xp.__array_namespace_info__().dtypes().items():
        assert getattr(xp, name) == dtype == values(xp.ones(2, dtype=dtype)).dtype
        assert hash(getattr(xp, name)) == hash(xp.ones(2, dtype=dtype).dtype)
