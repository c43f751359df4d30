"""The functions of `vecmath` as a GPU computes them: compiled PTX in the emulator, against the real numbers, within documented bounds."""

# tests named elsewhere

import re
from pathlib import Path

import numpy as np
import pytest

from tensormagic.backend.cuda.compiling.compiler import compiled
from tensormagic.backend.cuda.kernels.launch import Count, Launch, Scratch
from tensormagic.backend.vecmath import functions
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.emulator import launch, parse
from tests.backend.test_vecmath import BOUNDS, EDGES, INF, NAN, PAIRS, SUBNORMAL, UNARY
from tests.precise import FUNCTIONS, off

pytestmark = compiles
THREADS = 64
NUMBERS = [0.0, 1.0, 2.0, 0.5, 2.5, 3.0, 1e30, 1e-40, INF, 2.0**24 + 2, 2.0**53 - 1, 5e-324]
RESULTS = Path(__file__).parents[3] / "benchmarks/results/vecmath.md"


def computed(name: str, dtype: str, *operands: np.ndarray) -> np.ndarray:
    """What a kernel gives for elements, each computed by a thread."""
    count, names = operands[0].size, [f"x{k}" for k in range(len(operands))]
    places = ", ".join(f"{n}[i]" for n in names)
    source = f"""def kernel({", ".join(names)}, out, count):
    i = block() * {THREADS} + thread()
    if i < count:
        out[i] = {name}({places})
"""
    arrays = [Scratch(n, count, dtype, written=n == "out") for n in (*names, "out")]
    one = Launch(name, source, source, (*arrays, Count(count)), -(-count // THREADS), THREADS)
    out = np.zeros(count, dtype)
    given = [*(x.view(np.uint8) for x in operands), out.view(np.uint8), np.int64(count)]
    report = launch(parse(compiled(one).data.decode()), -(-count // THREADS), THREADS, 0, given)
    assert not report.issues
    return out


def drawn(name: str, dtype: str, count: int) -> np.ndarray:
    """Arguments where the function has a value."""
    rng = np.random.default_rng(sum(map(ord, name)))
    found = np.concatenate(
        [
            rng.uniform(-3, 3, count),
            rng.uniform(-20, 20, count),
            10.0 ** rng.uniform(-30, 1, count) * rng.choice([-1, 1], count),
            *(
                [10.0 ** rng.uniform(3, 38, count) * rng.choice([-1, 1], count)]
                if name in {"sin", "cos", "tan"}
                else []
            ),
        ]
    )
    if name in {"arcsin", "arccos", "arctanh"}:
        found = found[np.abs(found) < 1]
    if name == "arccosh":
        found = 1 + np.abs(found)
    if name.startswith("log"):
        found = np.abs(found) if name != "log1p" else np.concatenate([np.abs(found), rng.uniform(-1, 1, count)])
        found = np.concatenate([found, rng.uniform(0.5, 2, count)])
    return found.astype(dtype)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: str):
    edges, wanted = zip(*EDGES[name], (NAN, NAN), strict=True)
    small = SUBNORMAL[np.dtype(dtype).type].get(name, [])
    x = np.concatenate([np.array([*edges, *small]).astype(dtype), drawn(name, dtype, 60)])
    out = computed(name, dtype, x)
    np.testing.assert_array_equal(out[: len(edges)], np.array(wanted, dtype))
    assert not [v for v, w in zip(out, wanted, strict=False) if w == 0 and np.signbit(v) != np.signbit(w)]
    rest = zip(out[len(edges) :].tolist(), x[len(edges) :].tolist(), strict=True)
    assert not [(a, b) for b, a in rest if np.isfinite(b) and off(name, b, [a], dtype) > BOUNDS[name]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers(name: str, dtype: str):
    """Zeros, infinities and nans as NumPy has them; other values by the real number."""
    numbers = np.array([*NUMBERS, *(-v for v in NUMBERS), NAN])
    rng = np.random.default_rng(5)
    x, y = (np.concatenate([v.ravel(), rng.uniform(0.1, 9, 80)]).astype(dtype) for v in np.meshgrid(numbers, numbers))
    out = computed(name, dtype, x, y)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x, y)
    ordinary = np.isfinite(wanted) & (wanted != 0)
    np.testing.assert_array_equal(out[~ordinary], wanted[~ordinary])
    if name in {"arctan2", "power"}:
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(out[zero]), np.signbit(wanted[zero]))
    points = zip(out[ordinary], wanted[ordinary], x[ordinary], y[ordinary], strict=True)
    assert not [p for p in points if p[0] != p[1] and off(name, p[0], p[2:], dtype) > 2]


def test_every_function_has_a_documented_bound():
    """Those of the processor's: the formulas are the same; no documented error is larger than what the tests allow."""
    rows = re.findall(r"^\| (\w+) \| (\w+) \| ([\d.]+) \|", RESULTS.read_text(encoding="utf-8"), re.MULTILINE)
    told = {(name, dtype): float(error) for name, dtype, error in rows}
    assert {name for name, _ in told} >= set(functions.FUNCTIONS)
    assert set(FUNCTIONS) >= set(functions.FUNCTIONS)
    for (name, _), error in told.items():
        assert error <= BOUNDS.get(name, 2.0)
