"""Plans on a device: kernels where they are compiled, the library for the rest, with the same values."""

from importlib import metadata

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.planned import Execution, Planned, planned
from tensormagic.ops.interpret import bind
from tests.backend.cuda.test_run import PROGRAMS, graph_of, moved


def stored(x):
    acc = np.zeros(5)
    acc[1:] += x * x
    acc[::2] *= x[0]
    return acc


PROGRAMS = PROGRAMS | {"second derivative of stores": (tm.hessian(stored), (np.arange(1.0, 5.0),))}
COMPILED = ("softmax", "gradient")
MOST = (
    "pointwise",
    "softmax",
    "moments",
    "stores",
    "repeated places",
    "gradient",
    "eigenvalues",
    "mask",
    "concatenate",
    "second derivative of stores",
    "interp",
    "vmap",
    "truth",
)


def _has_compiler() -> bool:
    try:
        metadata.version("numba-cuda")
    except metadata.PackageNotFoundError:
        return False
    return True


def compared(device: Device, found, function, args):
    wanted = tm.tensor(function)(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip(found, wanted, strict=True):
        here = device.fetch(one) if device.is_array(one) else one
        assert np.shape(here) == np.shape(other)
        single = np.asarray(here).dtype == np.float32
        np.testing.assert_allclose(here, other, rtol=1e-6 if single else 1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MOST)
def test_what_has_no_kernel_the_library_runs(device: Device, name: str):
    function, args = PROGRAMS[name]
    _, graph = graph_of(function, args)
    plan = Planned(graph)
    plan.launches = dict.fromkeys(plan.launches)
    values = moved(device, args)
    with device.errors():
        runner = cuda.Runner(device)
        found = Execution(plan, device, runner.computed).run(bind(graph, values), values)
    assert found is not None
    compared(device, found, function, args)


@pytest.mark.skipif(not _has_compiler(), reason="needs numba-cuda, which compiles kernels")
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_and_library_together(device: Device, monkeypatch: pytest.MonkeyPatch, name: str):
    """On the fake device the emulator runs the compiled kernels."""
    if device.name.startswith("a device without") and name not in COMPILED:
        pytest.skip("on a card only: each takes the compiler a second")
    function, args = PROGRAMS[name]
    _, graph = graph_of(function, args)
    monkeypatch.setattr(tm.config, "tier", "numba")
    planned.cache_clear()
    found = cuda.run(graph, moved(device, args), device)
    monkeypatch.setattr(tm.config, "tier", "numpy")
    compared(device, found, function, args)
    if name in {"softmax", "gradient", "matmul"}:
        assert device.copied.launches > 0
