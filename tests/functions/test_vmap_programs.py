"""The programs of the collection under ``tm.vmap``, against NumPy called on each example."""

# tests named elsewhere

import copy
from collections import Counter

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import GuardError, ShapeError, TensorError
from tests.programs import (
    discrete,  # noqa: F401 (they enter the collection)
    errors_of_programs,
    matrices,  # noqa: F401
    nets,  # noqa: F401
    physics,  # noqa: F401
    random_programs,
    solvers,  # noqa: F401
    stencils,  # noqa: F401
)
from tests.programs.growing import compiled
from tests.programs.program import PROGRAMS
from tests.programs.random_programs import arguments

COUNT = 3
REFUSED = {"histogram_weights", "spmv", "kmeans", "mandelbrot_compressed"}  # sizes that depend on data
FIXED = {"sieve"}  # takes a size alone


def stacked(program):
    """Arguments of which those that are arrays or floats of one shape are stacked, and where."""
    made = [program.make(program.small, seed=k) for k in range(COUNT)]
    arguments, axes = [], []
    for values in zip(*made, strict=True):
        moving = all(isinstance(v, np.ndarray | float) and np.shape(v) == np.shape(values[0]) for v in values)
        arguments.append(np.stack(values) if moving else values[0])
        axes.append(0 if moving else None)
    return arguments, tuple(axes)


def found_and_stored(function, arguments, axes):
    """What a call returns, and what it leaves in the arrays that are stacked."""
    arguments = copy.deepcopy(arguments)
    result = function(*arguments)
    returned = [v for v in (result if isinstance(result, tuple) else (result,)) if v is not None]
    return returned + [a for a, axis in zip(arguments, axes, strict=True) if axis == 0 and isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in FIXED])
def test_it_does_what_numpy_does_for_each_example(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    program = PROGRAMS[name]
    arguments, axes = stacked(program)
    mapped = tm.vmap(program.function, in_axes=axes)
    if name in REFUSED:
        with pytest.raises(ShapeError, match=r"differs within the batch|each element of a batch"):
            mapped(*copy.deepcopy(arguments))
        return
    with np.errstate(all="ignore"):
        each = [
            found_and_stored(
                program.function, [a[k] if x == 0 else a for a, x in zip(arguments, axes, strict=True)], axes
            )
            for k in range(COUNT)
        ]
        found = found_and_stored(
            mapped, arguments, [x if np.ndim(a) > 1 else None for a, x in zip(arguments, axes, strict=True)]
        )
    for stack, parts in zip(found, zip(*each, strict=True), strict=True):
        expected = np.stack(parts)
        assert (stack.dtype, stack.shape) == (expected.dtype, expected.shape)
        room = 1e-9 * (1 + np.max(np.abs(expected), initial=0)) if expected.dtype.kind in "fc" else 0
        np.testing.assert_allclose(stack, expected, rtol=1e-9, atol=room)


STACKED = ("x", "y", "z", "e", "s")  # of the arguments of random programs


def random_lanes(seed):
    """Arguments of a random program, of which some hold other values for each example."""
    r = np.random.default_rng(seed)
    base = arguments(seed, 0, shared=False)
    lanes = []
    for k in range(COUNT):
        lane = copy.deepcopy(base)
        for n in STACKED if k else ():
            v = np.asarray(lane[n])
            moved = (r.permuted(v.ravel()).reshape(v.shape) * (1 if v.dtype.kind == "b" else k)).astype(v.dtype)
            lane[n] = moved if isinstance(lane[n], np.ndarray) else moved.item()
        lanes.append(lane)
    return lanes


def compared(seed):
    """How a random program ends: as NumPy does for each example, refused, or with NumPy's error."""
    made = random_programs.program(seed, function=True)
    lanes = random_lanes(seed)
    space = {"np": np}
    exec(compiled(made.helpers + "\n\n" + made.function(tuple(lanes[0])), f"stacked program {seed}"), space)
    given = [np.stack([np.asarray(a[n]) for a in lanes]) if n in STACKED else lanes[0][n] for n in lanes[0]]
    given = copy.deepcopy(given)
    axes = tuple(0 if n in STACKED else None for n in lanes[0])
    try:
        each = [errors_of_programs.quiet(lambda a=a: space["f"](*a.values())) for a in lanes]
    except Exception:  # noqa: BLE001 (which error it is does not matter here)
        return "error"
    try:
        found = errors_of_programs.quiet(lambda: tm.vmap(space["f"], in_axes=axes)(*given))
    except GuardError:  # a stand-in that got out
        raise
    except (TensorError, ValueError):
        return "refused"
    for stack, parts in zip(found, zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(stack, np.stack(parts), rtol=1e-9, atol=1e-9)
    for n, stack in zip(lanes[0], given, strict=True):
        if n in STACKED and np.ndim(lanes[0][n]):
            np.testing.assert_allclose(stack, np.stack([a[n] for a in lanes]), rtol=1e-9, atol=1e-9)
    return "same"


def test_a_share_of_random_programs(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(tm.config, "math", "exact")
    ended = Counter(compared(seed) for seed in range(40))
    assert ended["same"] >= 0.3 * ended.total(), ended
