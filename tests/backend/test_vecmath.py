"""vecmath: edges, accuracy, vectorisation, and object code that needs nothing but itself."""

from __future__ import annotations

import array
import functools
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numba as nb
import numpy as np
import pytest
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from scipy import special

from tensormagic.backend.vecmath import functions
from tests.precise import FUNCTIONS, off

DTYPES = [np.float64, np.float32]
PAIRS = ["arctan2", "hypot", "logaddexp", "power"]
UNARY = sorted(set(functions.FUNCTIONS) - set(PAIRS))
BOUNDS = dict.fromkeys([*UNARY, "arctan2", "hypot"], 1.0) | {"erfc": 3.5, "softplus": 1.5}
EXTENDED = np.finfo(np.longdouble).nmant >= 63
INF, NAN, TINY = math.inf, math.nan, 5e-324


def loop_of(function: Any, dtype: type) -> Any:
    vector = types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    return nb.njit((vector, vector), error_model="numpy")(loop)


@functools.cache
def compiled(name: str, dtype: type) -> Any:
    return loop_of(functions.FUNCTIONS[name], dtype)


def evaluate(name: str, values: Any, dtype: type) -> np.ndarray:
    x = np.asarray(values, dtype)
    out = np.empty_like(x)
    compiled(name, dtype)(x, out)
    return out


def sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, x.dtype.type(1)) / (1 + small)


REFERENCES: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in UNARY if hasattr(np, name)},
    "sigmoid": sigmoid,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "erf": special.erf,
    "erfc": special.erfc,
}


def errors(out: np.ndarray, exact: np.ndarray) -> np.ndarray:
    rounded = exact.astype(out.dtype)
    spacing = np.spacing(np.abs(rounded)).astype(exact.dtype)
    return np.where(np.isfinite(rounded), np.abs(out.astype(exact.dtype) - exact) / spacing, 0).astype(float)


def samples(name: str, dtype: type, count: int = 100_000) -> np.ndarray:
    generator = np.random.default_rng(sum(map(ord, name)))
    parts = [
        generator.uniform(-3, 3, count),
        generator.uniform(-80, 80, count),
        10.0 ** generator.uniform(-30, 1, count) * generator.choice([-1, 1], count),
    ]
    x = np.concatenate(parts)
    if name == "arccosh":
        x = np.abs(x) + 1
    if name.startswith("log"):
        x = np.abs(x) if name != "log1p" else np.concatenate([np.abs(x), generator.uniform(-1, 1, count)])
        x = np.concatenate([x, generator.uniform(0.5, 2, count)])
    return x.astype(dtype)


EDGES: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125), (INF, INF), (-INF, 0.0), (5e3, INF), (-5e3, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0), (1e-30, 1e-30)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (2.0**-120, -120.0), (0.0, -INF), (-1.0, NAN), (INF, INF)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (1e10, 10.0), (0.0, -INF), (-1.0, NAN), (INF, INF)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (-INF, NAN), (INF, INF), (-1e-30, -1e-30)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (50.0, 1.0), (-50.0, -1.0), (1e-30, 1e-30)],
    "sigmoid": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (100.0, 1.0), (-1e4, 0.0)],
    "softplus": [(INF, INF), (-INF, 0.0), (1e30, 1e30), (-1e4, 0.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-30, 1e-30)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-30, 1e-30)],
    "arcsin": [(0.0, 0.0), (-0.0, -0.0), (1.0, np.pi / 2), (-1.0, -np.pi / 2), (1.5, NAN), (-INF, NAN), (1e-30, 1e-30)],
    "arccos": [(1.0, 0.0), (-1.0, np.pi), (0.0, np.pi / 2), (-0.0, np.pi / 2), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "arctan": [(0.0, 0.0), (-0.0, -0.0), (INF, np.pi / 2), (-INF, -np.pi / 2), (1e30, np.pi / 2), (1e-30, 1e-30)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF), (1e-30, 1e-30)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF), (-1e4, INF), (1e-30, 1.0)],
    "arcsinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-30, 1e-30)],
    "arccosh": [(1.0, 0.0), (0.5, NAN), (-3.0, NAN), (-INF, NAN), (INF, INF)],
    "arctanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (1e-30, 1e-30)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (8.0, 2.0), (-27.0, -3.0), (1e15, 1e5), (INF, INF), (-INF, -INF)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (9.0, 1.0), (-9.0, -1.0)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (40.0, 0.0), (-9.0, 2.0)],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_edges(name: str, dtype: type) -> None:
    arguments, expected = zip(*EDGES[name], (NAN, NAN), strict=True)
    out = evaluate(name, arguments, dtype)
    np.testing.assert_array_equal(out, np.array(expected, dtype))
    zero = out == 0
    np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(np.array(expected)[zero]))


SUBNORMAL: dict[Any, dict[str, list[float]]] = {
    np.float64: {
        "exp": [-708.5, -740.0, -745.1],
        "exp2": [-1040.5, -1074.0],
        "sigmoid": [-720.0, -744.0],
        "log": [TINY, 1e-310],
        "cbrt": [TINY, -1e-310],
    },
    np.float32: {
        "exp": [-88.0, -100.0, -103.9],
        "exp2": [-130.5, -149.0],
        "sigmoid": [-90.0, -103.0],
        "log": [1e-45, 1e-40],
        "cbrt": [1e-45, -1e-40],
    },
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(SUBNORMAL[np.float64]))
def test_subnormal_numbers(name: str, dtype: type) -> None:
    arguments = np.array(SUBNORMAL[dtype][name], dtype)
    exact = [FUNCTIONS[name](mpmath.mpf(float(v))) for v in arguments]
    spacing = np.spacing(np.abs(np.array([float(v) for v in exact])).astype(dtype))
    out = evaluate(name, arguments, dtype)
    assert all(abs(mpmath.mpf(float(a)) - b) <= float(s) for a, b, s in zip(out, exact, spacing, strict=True))


STRAIGHT = ["arcsin", "arcsinh", "arctan", "arctanh", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh"]


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_smallest_numbers_pass_unchanged_where_the_slope_is_one(name: str, dtype: type) -> None:
    smallest = np.finfo(dtype).smallest_subnormal * np.array([1, -1, 12345], dtype)
    expected = smallest if name != "erf" else np.round(smallest / smallest[0] * 2 / math.sqrt(math.pi)) * smallest[0]
    np.testing.assert_array_equal(evaluate(name, smallest, dtype), expected.astype(dtype))


@pytest.mark.parametrize("name", UNARY)
def test_float32_against_float64(name: str) -> None:
    x = samples(name, np.float32)
    with np.errstate(invalid="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
    assert errors(evaluate(name, x, np.float32), exact).max() <= BOUNDS[name]


@pytest.mark.skipif(not EXTENDED, reason="long double is no wider than float64 here")
@pytest.mark.parametrize("name", sorted(set(UNARY) - {"erf", "erfc"}))
def test_float64_against_long_double(name: str) -> None:
    x = samples(name, np.float64)
    with np.errstate(invalid="ignore"):
        exact = REFERENCES[name](x.astype(np.longdouble))
    assert errors(evaluate(name, x, np.float64), exact).max() <= BOUNDS[name]


def check_with_mpmath(name: str, x: np.ndarray) -> None:
    with mpmath.workdps(60):
        for a, b in zip(x.tolist(), evaluate(name, x, np.float64).tolist(), strict=True):
            exact = FUNCTIONS[name](mpmath.mpf(a))
            assert abs(mpmath.mpf(b) - exact) <= BOUNDS[name] * float(np.spacing(abs(float(exact)))), (name, a)


@pytest.mark.parametrize("name", UNARY)
def test_float64_against_mpmath(name: str) -> None:
    everything = samples(name, np.float64)
    with np.errstate(all="ignore"):
        everything = everything[np.isfinite(REFERENCES[name](everything))]
    check_with_mpmath(name, np.random.default_rng(1).choice(everything[np.abs(everything) < 25], 300))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_every_finite_argument_is_reduced(name: str) -> None:
    generator = np.random.default_rng(2)
    near_multiples = np.round(generator.uniform(1, 1e6, 100)) * (np.pi / 2)
    hard = [6381956970095103.0 * 2.0**797, 1e300, -1e300, 1e22, np.finfo(np.float64).max, 2.0**30, 2.0**30 - 2.0**-23]
    huge = 10.0 ** generator.uniform(9, 308, 200) * generator.choice([-1, 1], 200)
    check_with_mpmath(name, np.concatenate([near_multiples, hard, huge]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_every_finite_float32_argument_is_reduced(name: str) -> None:
    hard = [3.4028235e38, 65535.9, 65536.0, 52516.43359375]
    huge = np.concatenate([10.0 ** np.random.default_rng(3).uniform(4, 38, 100_000), hard])
    x = huge.astype(np.float32)
    assert errors(evaluate(name, x, np.float32), REFERENCES[name](x.astype(np.float64))).max() <= 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_large_lane_among_usual_ones(dtype: type) -> None:
    usual = np.linspace(-3, 3, 64).astype(dtype)
    mixed = usual.copy()
    mixed[13] = 1e30
    out = evaluate("sin", mixed, dtype)
    assert abs(out[13] - float(mpmath.sin(mpmath.mpf(float(mixed[13]))))) <= np.finfo(dtype).eps
    np.testing.assert_array_equal(np.delete(out, 13), np.delete(evaluate("sin", usual, dtype), 13))


@functools.cache
def compiled_pairs(name: str, dtype: type) -> Any:
    function = functions.FUNCTIONS[name]
    vector = types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x: Any, y: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            out[i] = function(x[i], y[i])

    return nb.njit((vector, vector, vector), error_model="numpy")(loop)


def evaluate_pairs(name: str, x: Any, y: Any, dtype: type) -> np.ndarray:
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    out = np.empty_like(x)
    compiled_pairs(name, dtype)(x, y, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_edges_of_pairs(name: str, dtype: type) -> None:
    smallest = float(np.finfo(dtype).smallest_subnormal)
    numbers = [0.0, 1.0, 2.0, 0.5, 2.5, 3.0, 1e30, 1e-40, INF, 2.0**24 + 2, 2.0**53 - 1, smallest]
    x, y = map(np.ravel, np.meshgrid([*numbers, *(-v for v in numbers), NAN], [*numbers, *(-v for v in numbers), NAN]))
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
        out = evaluate_pairs(name, x, y, dtype)
        ordinary = np.isfinite(expected) & (expected != 0)
        np.testing.assert_array_equal(out[~ordinary], expected[~ordinary])
        points = zip(out[ordinary], expected[ordinary], x[ordinary], y[ordinary], strict=True)
        assert not [p for p in points if p[0] != p[1] and off(name, p[0], p[2:], dtype) > 2]
    zero = expected == 0
    if name in ("arctan2", "power"):
        np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(expected[zero]))


def test_the_far_ends_of_inverse_hyperbolic_functions() -> None:
    for dtype in DTYPES:
        largest = np.finfo(dtype).max
        for name in ("arcsinh", "arccosh"):
            x = np.array([largest, largest / 3, 2.0**60, 2.0**60 * 1.001, 2.0**59], dtype)
            exact = [FUNCTIONS[name](mpmath.mpf(float(v))) for v in x]
            assert errors(evaluate(name, x, dtype), np.array([float(v) for v in exact])).max() <= 1.01


def test_hyperbolic_functions_reach_the_largest_number() -> None:
    for dtype, x in ((np.float64, [710.0, 710.4, -710.4]), (np.float32, [88.9, 89.4, -89.4])):
        for name in ("cosh", "sinh"):
            exact = np.array([float(FUNCTIONS[name](mpmath.mpf(float(v)))) for v in np.array(x, dtype)])
            assert np.isfinite(exact.astype(dtype)).all()
            assert errors(evaluate(name, x, dtype), exact).max() <= 1.01


@pytest.mark.parametrize("dtype", DTYPES if EXTENDED else DTYPES[1:])
@pytest.mark.parametrize("name", ["arctan2", "hypot"])
def test_points_of_the_plane_against_more_digits(name: str, dtype: type) -> None:
    generator = np.random.default_rng(7)
    signs, scales = generator.choice([-1, 1], (2, 100_000)), 10.0 ** generator.uniform(-18, 18, (2, 100_000))
    near = generator.uniform(-3, 3, (2, 100_000))
    x, y = np.concatenate([signs * scales, near, near * scales[0]], axis=1).astype(dtype)
    exact = getattr(np, name)(x.astype(wider(dtype)), y.astype(wider(dtype)))
    assert errors(evaluate_pairs(name, x, y, dtype), exact).max() <= BOUNDS[name]


def wider(dtype: type) -> Any:
    return np.float64 if dtype is np.float32 else np.longdouble


@pytest.mark.parametrize("dtype", DTYPES if EXTENDED else DTYPES[1:])
def test_power_against_more_digits(dtype: type) -> None:
    generator = np.random.default_rng(5)
    x = np.concatenate([generator.uniform(0, 10, 50_000), generator.uniform(0.9, 1.1, 50_000)]).astype(dtype)
    y = np.concatenate([generator.uniform(-30, 30, 50_000), generator.uniform(-700, 700, 50_000)]).astype(dtype)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(wider(dtype)), y.astype(wider(dtype)))
        assert errors(evaluate_pairs("power", x, y, dtype), exact).max() <= 1


@pytest.mark.parametrize("dtype", DTYPES if EXTENDED else DTYPES[1:])
def test_logaddexp_in_ulps_of_the_largest_of_result_and_operands(dtype: type) -> None:
    x, y = np.random.default_rng(6).uniform(-20, 20, (2, 100_000)).astype(dtype)
    exact = np.logaddexp(x.astype(wider(dtype)), y.astype(wider(dtype)))
    largest = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(exact).astype(dtype))
    assert (np.abs(evaluate_pairs("logaddexp", x, y, dtype) - exact) / np.spacing(largest)).max() <= 2


def widths(code: str, dtype: type) -> set[int]:
    element = "double" if dtype is np.float64 else "float"
    return {int(n) for n in re.findall(rf"<(\d+) x {element}>", code)}


def stored_bytes(code: str, dtype: type) -> int:
    stores = re.findall(rf"store <(\d+) x {'double' if dtype is np.float64 else 'float'}>", code)
    return max(map(int, stores), default=0) * np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_the_loop_is_vectorised(name: str, dtype: type) -> None:
    loop = compiled(name, dtype)
    (signature,) = loop.signatures
    code = loop.inspect_llvm(signature)
    assert stored_bytes(code, dtype) >= 16
    if name in ("sin", "cos", "tan"):
        assert re.search(rf"call <\d+ x \w+> @tensormagic\.{name}\.f\d\d\.v\d+\(", code)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_the_loop_over_pairs_is_vectorised(name: str, dtype: type) -> None:
    loop = compiled_pairs(name, dtype)
    assert stored_bytes(loop.inspect_llvm(loop.signatures[0]), dtype) >= 16


REDUCTIONS = [("add_reassoc", 0, np.sum), ("max_propagate", -INF, np.max), ("min_propagate", INF, np.min)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "start", "reference"), REDUCTIONS)
def test_reductions_are_vectorised(name: str, start: float, reference: Any, dtype: type) -> None:
    function, initial = functions.FOLDS[name], dtype(start)

    def fold(x: Any) -> Any:
        total = initial
        for i in range(x.shape[0]):
            total = function(total, x[i])
        return total

    run = nb.njit((types.Array(nb.from_dtype(np.dtype(dtype)), 1, "C"),))(fold)
    assert max(widths(run.inspect_llvm(run.signatures[0]), dtype), default=1) >= 2
    x = np.random.default_rng(0).uniform(-1, 1, 1003).astype(dtype)
    assert run(x) == pytest.approx(reference(x), rel=1e-4 if dtype is np.float32 else 1e-12)
    x[500] = NAN
    assert math.isnan(run(x))


def test_extrema_order_the_zeros() -> None:
    most, least = functions.FOLDS["max_propagate"], functions.FOLDS["min_propagate"]
    both = nb.njit(lambda x, y: (most(x, y), least(x, y)))
    for x, y in [(0.0, -0.0), (-0.0, 0.0)]:
        largest, smallest = both(x, y)
        assert (math.copysign(1, largest), math.copysign(1, smallest)) == (1, -1)


def test_integers_are_refused_by_name() -> None:
    exp = functions.FUNCTIONS["exp"]

    def call(x: Any) -> Any:
        return exp(x)

    with pytest.raises(TypingError, match=r"vecmath\.exp takes float64 or float32, all of one kind, not int64"):
        nb.njit((types.int64,))(call)


def test_both_functions_and_both_dtypes_share_a_kernel() -> None:
    sin, cos, exp = (functions.FUNCTIONS[name] for name in ("sin", "cos", "exp"))

    def loop(x: Any, y: Any, out: Any) -> None:
        for i in range(x.shape[0]):
            double_angles = sin(x[i]) * cos(x[i]) + cos(y[i]) * sin(y[i])
            out[i] = double_angles + exp(y[i])

    double, single = types.float64[::1], types.float32[::1]
    x = np.linspace(-5, 5, 101)
    y = x.astype(np.float32)
    out = np.empty_like(x)
    nb.njit((double, single, double))(loop)(x, y, out)
    np.testing.assert_allclose(out, np.sin(2 * x) + np.exp(x), rtol=1e-5, atol=1e-6)


@intrinsic
def doubles(_typing: Any, pointers: Any, _index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.load(builder.gep(arguments[0], [arguments[1]])), ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(pointers, types.intp), generate


KERNEL = types.void(types.CPointer(types.voidptr), types.CPointer(types.int64))

LOADER = """
import array, ctypes, sys
import llvmlite.binding as llvm
path, symbol = sys.argv[1:]
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
engine.add_object_file(llvm.ObjectFileRef.from_path(path))
engine.finalize_object()
x = array.array("d", [i / 8 + 0.25 for i in range(20)] + [1e300])
out = array.array("d", bytes(8 * len(x)))
pointers = (ctypes.c_void_p * 2)(x.buffer_info()[0], out.buffer_info()[0])
kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(symbol))
kernel(ctypes.addressof(pointers), ctypes.addressof(ctypes.c_int64(len(x))))
assert "numba" not in sys.modules
print(*map(float.hex, out))
"""


@pytest.mark.parametrize("name", UNARY)
def test_object_code_runs_where_there_is_no_numba(name: str, tmp_path: Path) -> None:
    function = functions.FUNCTIONS[name]

    def kernel(pointers: Any, sizes: Any) -> None:
        x, out = doubles(pointers, 0), doubles(pointers, 1)
        for i in range(sizes[0]):
            out[i] = function(x[i])

    compiled_kernel = nb.cfunc(KERNEL)(kernel)
    path = tmp_path / "kernel.o"
    path.write_bytes(compiled_kernel._library._get_compiled_object())
    command = [sys.executable, "-c", LOADER, str(path), compiled_kernel._wrapper_name]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    x = array.array("d", [i / 8 + 0.25 for i in range(20)] + [1e300])
    expected = evaluate(name, np.array(x), np.float64)
    np.testing.assert_array_equal([float.fromhex(v) for v in answer.split()], expected)


WITHOUT_FMA = """
import numpy as np, test_vecmath as tests
sine = tests.compiled("sin", np.float64)
assert "fma" not in sine.inspect_asm(sine.signatures[0])
with np.errstate(all="ignore"):
    for name in tests.UNARY:
        x = tests.samples(name, np.float32, 20_000)
        exact = tests.REFERENCES[name](x.astype(np.float64))
        print(name, tests.errors(tests.evaluate(name, x, np.float32), exact).max())
    tests.test_every_finite_argument_is_reduced("sin")
    tests.test_every_finite_argument_is_reduced("cos")
    tests.test_every_finite_argument_is_reduced("tan")
    for name in ("arctan2", "hypot", "power"):
        tests.test_edges_of_pairs(name, np.float64)
        tests.test_edges_of_pairs(name, np.float32)
    for name in ("arctan2", "hypot"):
        tests.test_points_of_the_plane_against_more_digits(name, np.float32)
    tests.test_power_against_more_digits(np.float32)
    for name in tests.UNARY:
        tests.test_edges(name, np.float64)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="every other machine has fma")
def test_a_machine_without_fma_is_as_accurate() -> None:
    here = Path(__file__)
    path = os.pathsep.join([str(here.parent), str(here.parents[2])])
    env = os.environ | {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "PYTHONPATH": path}
    command = [sys.executable, "-c", WITHOUT_FMA]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    measured = {name: float(error) for name, error in (line.split() for line in answer.splitlines())}
    assert set(measured) == set(UNARY)
    assert all(error <= 1.5 * BOUNDS[name] for name, error in measured.items())
