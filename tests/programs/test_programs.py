"""Each program, captured as it is, computes and stores what NumPy does, on either tier, and differentiates where it is smooth."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.printing import kernel_source
from tensormagic.backend.running import threads
from tests.programs import discrete, matrices, nets, physics, solvers, stencils
from tests.programs.program import PROGRAMS, Program

COLLECTIONS = (matrices, solvers, stencils, discrete, physics, nets)


def test_the_collection_is_all_of_it() -> None:
    assert len(PROGRAMS) >= 54
    assert {p.function.__module__ for p in PROGRAMS.values()} == {m.__name__ for m in COLLECTIONS}


def run(function: Any, arguments: tuple[Any, ...]) -> list[Any]:
    """What a call returns, and what its arguments are after it."""
    arguments = copy.deepcopy(arguments)
    result = function(*arguments)
    returned = result if isinstance(result, tuple) else (result,)
    return [*returned, *arguments]


def assert_equal(ours: list[Any], numpys: list[Any]) -> None:
    """Same types, shapes and values, these up to rounding in another order of sums."""
    assert len(ours) == len(numpys)
    for a, b in zip(ours, numpys, strict=True):
        if b is None:
            assert a is None
            continue
        x, y = np.asarray(a), np.asarray(b)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if y.dtype.kind in "fc":
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(y), initial=0)))
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.share(3)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.name)
def test_it_computes_what_numpy_does(program: Program, tier: str) -> None:
    arguments = program.make(program.small)
    with np.errstate(all="ignore"):
        expected = run(program.function, arguments)
        assert_equal(run(tm.tensor(program.function), arguments), expected)
    longer = program.make(program.small + 1, seed=1)
    with np.errstate(all="ignore"):
        assert_equal(run(tm.tensor(program.function), longer), run(program.function, longer))


@pytest.mark.share(6)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.name)
def test_the_numpy_tier_has_numpys_bits(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", "exact")
    arguments = program.make(program.small)
    with np.errstate(all="ignore"):
        found, expected = (run(f, arguments) for f in (tm.tensor(program.function), program.function))
    assert [v is None or np.asarray(v).tobytes() for v in found] == [
        v is None or np.asarray(v).tobytes() for v in expected
    ]


@pytest.mark.skipif(not threads.available(), reason="no threads that share loops here")
@pytest.mark.share(6)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.name)
def test_any_number_of_threads_gives_the_same_bits(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numba")
    monkeypatch.setattr(tm.config, "threads", 1)
    monkeypatch.setattr(threads, "_least", 0)
    monkeypatch.setattr(kernel_source, "INSIDE", 1 << 10)
    arguments, ours = program.make(program.large), tm.tensor(program.function)
    found: list[Any] = []
    for count in (1, 2, 3, 16):
        tm.config.threads = count
        with np.errstate(all="ignore"):
            found.append([None if v is None else np.asarray(v).tobytes() for v in run(ours, arguments)])
    assert all(f == found[0] for f in found)


def total(program: Program, weights: list[Any], arguments: tuple[Any, ...]) -> Any:
    """The weighted sum of what a program returns."""
    result = program.function(*arguments)
    parts = result if isinstance(result, tuple) else (result,)
    return sum((w * p).sum() for w, p in zip(weights, parts, strict=True))


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("program", "position"),
    [pytest.param(p, k, id=f"{p.name}-{k}") for p in PROGRAMS.values() for k in p.derivative],
)
def test_its_gradient_is_that_of_finite_differences(program: Program, position: int) -> None:
    rng = np.random.default_rng(3)
    arguments = program.make(program.small)
    result = program.function(*copy.deepcopy(arguments))
    weights = [rng.standard_normal(np.shape(p)) for p in (result if isinstance(result, tuple) else (result,))]

    def along(x: Any) -> Any:
        others = copy.deepcopy(arguments)  # the program may store into them
        return total(program, weights, (*others[:position], x, *others[position + 1 :]))

    start = arguments[position]
    direction = rng.standard_normal(np.shape(start))
    step = 1e-5

    def moved(h: float) -> float:
        return float(along(np.array(start + h * direction) if np.ndim(start) else start + h * float(direction)))

    slope = (8 * (moved(step) - moved(-step)) - (moved(2 * step) - moved(-2 * step))) / (12 * step)
    found = float(np.sum(tm.grad(along)(copy.deepcopy(start)) * direction))  # which the program may store into
    assert found == pytest.approx(slope, rel=1e-6, abs=1e-7)
