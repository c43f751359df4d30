"""Plans on a device: kernels where they are compiled, the library for the rest, with the same values."""

import os

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels.launch import Array
from tensormagic.backend.cuda.planned import Execution, Planned, planned
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.interpret import bind
from tests.backend.cuda.emulated import compiles
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


@compiles
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_and_library_together(device: Device, monkeypatch: pytest.MonkeyPatch, name: str):
    """On the fake device the emulator runs the compiled kernels."""
    if (
        device.name.startswith("a device without")
        and name not in COMPILED
        and "TENSORMAGIC_TESTS_CACHE" not in os.environ
    ):
        pytest.skip("on a GPU only: each takes the compiler a second")
    function, args = PROGRAMS[name]
    _, graph = graph_of(function, args)
    monkeypatch.setattr(tm.config, "tier", "numba")
    planned.cache_clear()
    found = cuda.run(graph, moved(device, args), device)
    monkeypatch.setattr(tm.config, "tier", "numpy")
    compared(device, found, function, args)
    if name in {"softmax", "gradient", "matmul"}:
        assert device.copied.launches > 0


def rows_of(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


EPILOGUES = {
    "tanh": lambda x, w, b: np.tanh(x @ w + b),
    "relu": lambda x, w, b: np.maximum(x @ w + b, 0),
    "einsum": lambda x, w, b: np.maximum(np.einsum("ij,jk->ik", x, w) + b, 0) * 2,
    "transposed": lambda x, w, b: np.tanh((w.T @ x.T).T + b),
    "residual": lambda x, w, b: x[:, :5] + np.exp(-((x @ w + b) ** 2)),
    "softmax": lambda x, w, b: rows_of(x @ w + b),
}


@compiles
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EPILOGUES)
def test_what_follows_a_product_is_one_kernel_on_its_result(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str, dtype: str
):
    """The bias and the function of a layer: a call of the library and one launch, and no array between them."""
    function = EPILOGUES[name]
    args = [np.random.default_rng(k).normal(size=s).astype(dtype) for k, s in enumerate([(33, 7), (7, 5), (5,)])]
    _, graph = graph_of(function, args)
    found = planned(graph)
    assert found is not None
    library, kernel = found.plan.steps
    assert getattr(library, "op", None) is CONTRACT
    assert isinstance(kernel, Kernel)
    (launch,) = found.launches[kernel] or ()
    assert library in [p.node for p in launch.parameters if isinstance(p, Array) and not p.written]
    monkeypatch.setattr(tm.config, "tier", "numba")
    before = device.copied.launches
    (there,) = cuda.run(graph, moved(device, args), device)
    assert device.copied.launches == before + 1
    wide = function(*(a.astype(np.float64) for a in args))
    digits = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(device.fetch(there), wide, rtol=10 * digits, atol=digits)
