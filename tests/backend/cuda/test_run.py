"""Programs on a device give what NumPy gives, and copy no more than their inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.library.call import LIBRARY
from tensormagic.ir.errors import TensorError
from tensormagic.ir.type import hint
from tensormagic.ops.op import registry

_RNG = np.random.default_rng(7)
X, Y, W = _RNG.standard_normal((6, 4)), _RNG.standard_normal(6), _RNG.standard_normal(4)
A = _RNG.standard_normal((4, 4))
S = A @ A.T + 4 * np.eye(4)


def loop(x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[i].sum() * i
        if out[i] > 0:
            out[i] = np.sqrt(out[i])
    return out


def newton(a):
    z, target = 1.0, a.sum() ** 2
    while abs(z * z - target) > 1e-9:
        z = z - (z * z - target) / (2 * z)
    return z


def logreg(w, x, y):
    return np.mean(np.log(1 + np.exp(-y * (x @ w))))


def train(w, x, y):
    for _ in range(5):
        w = w - 0.5 * tm.grad(logreg)(w, x, y)
    return w


def stores(x):
    x = x.copy()
    x[1:3] += 1
    x[0, ::2] = 5
    x[x > 1] = 0
    return x


def rows(x):
    state = x[0] * 0
    for i in range(len(x)):
        state = np.tanh(state + x[i])
    return state.sum()


def growing(a):
    k = 0
    while (a * a).sum() < 100:
        a = a * 1.5
        k = k + 1
    return a.sum() * k


def added(x):
    z = np.zeros(4)
    np.add.at(z, np.array([0, 1, 0]), x[:3, 0])
    return z


def repeated(x):
    z = np.zeros(4)
    z[np.array([1, 2, 1, -3])] = x[:4, 0]
    return z


def collatz(x):
    n, steps = (np.abs(x[0, 0]) * 100).astype(int) + 5, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x: np.exp(-x * x) * 2 + np.sin(x) / (1 + np.abs(x)), (X,)),
    "float32": (lambda x: (x.astype(np.float32) * 2 + 1).mean(), (X,)),
    "integers": (lambda x: (x * 10).astype(int) // 3 % 5, (X,)),
    "complex": (lambda x: np.abs(np.exp(1j * x) + np.conj(x + 2j)), (X,)),
    "truth": (lambda x: ((x > 0) & ~(x > 1)).any(0), (X,)),
    "matmul": (lambda x, w: x @ w, (X, W)),
    "einsum": (lambda x, a: np.einsum("ij,jk,ik->i", x, a, x), (X, S)),
    "gram": (lambda x: x.T @ x, (X,)),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), (X,)),
    "logsumexp": (lambda x: np.log(np.sum(np.exp(x), 1)), (X,)),
    "moments": (lambda x: x.mean(0) + x.std() + x.max(), (X,)),
    "products": (lambda x: x.prod(0) + x.min(0), (X,)),
    "extremes": (lambda x: (x.argmax(1), x.argmin()), (X,)),
    "median": (np.median, (Y,)),
    "running": (lambda x: np.cumsum(x, 0) + np.maximum.accumulate(x, 0), (X,)),
    "sort": (lambda x: np.sort(x, 0)[::-1], (X,)),
    "order": (lambda x: np.take_along_axis(x, np.argsort(x, axis=1), 1), (X,)),
    "search": (lambda y: np.searchsorted(np.sort(y), y), (Y,)),
    "take": (lambda x: x[np.array([3, 1, -1])], (X,)),
    "mask": (lambda x: x[x > 0].sum(), (X,)),
    "interp": (lambda y: np.interp(y, np.arange(5.0), np.arange(5.0) ** 2), (Y,)),
    "concatenate": (lambda x: np.concatenate([x, x[::-1]], 1).T.reshape(-1), (X,)),
    "stores": (stores, (X,)),
    "add.at": (added, (X,)),
    "repeated places": (repeated, (X,)),
    "solve": (np.linalg.solve, (S, W)),
    "inverse": (np.linalg.inv, (S,)),
    "cholesky": (np.linalg.cholesky, (S,)),
    "eigenvalues": (lambda a: np.linalg.eigh(a)[0], (S,)),
    "singular values": (lambda a: np.linalg.svd(a)[1], (X,)),
    "fft": (lambda y: np.fft.ifft(np.fft.fft(y) * 2).real, (Y,)),
    "rfft": (lambda y: np.fft.irfft(np.fft.rfft(y), 6), (Y,)),
    "loop": (loop, (X,)),
    "newton": (newton, (Y,)),
    "collatz": (collatz, (X,)),
    "gradient": (tm.grad(logreg), (W, X, Y)),
    "training": (train, (W, X, Y)),
    "gradient of a loop": (tm.grad(rows), (X,)),
    "gradient of a while": (tm.grad(growing), (Y,)),
    "gradient of solve": (tm.grad(lambda a, b: np.linalg.solve(a, b).sum()), (S, W)),
    "gradient of eigh": (tm.grad(lambda a: (np.linalg.eigh(a)[1] ** 4).sum()), (S,)),
    "hessian": (tm.hessian(logreg), (W, X, Y)),
    "vmap": (tm.vmap(lambda r: np.sort(r)[::-1] * r.max()), (X,)),
}  # fmt: skip


def graph_of(function, args):
    traced = tm.trace(function, *args)
    return traced, session.executable(traced).graph


def moved(device: Device, args):
    return [device.put(a) if isinstance(a, np.ndarray) else a for a in args]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives(device: Device, name: str):
    function, args = PROGRAMS[name]
    traced, graph = graph_of(function, args)
    sizes = traced.bind([np.shape(a) for a in args])
    wanted = session.executable(traced).by_numpy(sizes, *args)
    found = cuda.run(graph, moved(device, args), device)
    for one, other in zip(found, wanted, strict=True):
        here = device.fetch(one) if device.is_array(one) else one
        assert np.shape(here) == np.shape(other)
        assert np.asarray(here).dtype == np.asarray(other).dtype
        single = np.asarray(here).dtype == np.float32
        np.testing.assert_allclose(here, other, rtol=1e-6 if single else 1e-9, atol=1e-12)
    assert all(device.is_array(v) or not np.ndim(v) for v in found)


def test_a_training_loop_copies_only_what_it_is_given(device: Device):
    args = W, X, Y
    _, graph = graph_of(train, args)
    values = moved(device, args)
    before = device.copied.to_device, device.copied.to_host, device.copied.reads
    with tm.config.using(tier="numpy"):  # by launches one flag is read
        (found,) = cuda.run(graph, values, device)
    assert (device.copied.to_device, device.copied.to_host, device.copied.reads) == before
    np.testing.assert_array_equal(device.fetch(values[0]), W)  # what it was given is as it was
    assert device.is_array(found)


def test_what_the_library_lacks_runs_on_the_host_and_is_known_before(device: Device):
    _, graph = graph_of(lambda y: scipy.special.spence(y * 2) + 1, (Y,))
    (offender,) = cuda.offenders(graph)
    assert offender.name == "spence()"
    assert hint(graph.parameters[0].type.size) is None or "spence" in str(offender)
    values = moved(device, [Y])
    copied = device.copied.to_host
    (found,) = cuda.run(graph, values, device)
    np.testing.assert_allclose(device.fetch(found), scipy.special.spence(Y * 2) + 1)
    assert device.copied.to_host - copied >= Y.nbytes


@pytest.mark.parametrize(
    ("function", "args", "error", "text"),
    [
        (lambda x, k: np.take(x, k), (Y, np.array([1, 9])), IndexError, "index 9 is out of bounds"),
        (lambda x: x / (x - x).astype(int)[0] if x[0] > 99 else x[:0].max(), (Y,), ValueError, "zero-size array"),
        (np.linalg.inv, (np.zeros((2, 2)),), np.linalg.LinAlgError, "."),
        (np.linalg.cholesky, (-S,), np.linalg.LinAlgError, "."),
        (lambda k: k ** (-k), (np.arange(1, 4),), ValueError, "Integers to negative integer powers"),
    ],
    ids=["index", "empty", "singular", "indefinite", "power"],
)
def test_errors_are_numpys_and_the_device_works_on(device: Device, function, args, error, text):
    _, graph = graph_of(function, args)
    with pytest.raises(error, match=text):
        cuda.run(graph, moved(device, args), device)
    _, fine = graph_of(PROGRAMS["matmul"][0], (X, W))
    (found,) = cuda.run(fine, moved(device, (X, W)), device)
    np.testing.assert_allclose(device.fetch(found), X @ W)


def test_arrays_of_the_host_and_of_the_device_are_never_mixed(device: Device):
    with pytest.raises(TypeError):
        device.library.add(device.put(X), X)
    with pytest.raises(TypeError):
        np.asarray(device.put(X))


def test_a_draw_is_numpys_and_goes_to_the_device(device: Device):
    def sample(x):
        return np.random.default_rng(3).normal(size=4) + x[:4]

    _, graph = graph_of(sample, (Y,))
    assert [o.name for o in cuda.offenders(graph)] == ["draw()"]
    (found,) = cuda.run(graph, moved(device, [Y]), device)
    np.testing.assert_allclose(device.fetch(found), np.random.default_rng(3).normal(size=4) + Y[:4], rtol=1e-14)


def test_a_machine_without_a_card_says_what_is_missing():
    from tensormagic.backend.cuda import device as devices

    why = devices.missing()
    if why is None:
        pytest.skip("this machine has a card")
    with pytest.raises(TensorError, match=why[0][:20]) as caught:
        devices.current()
    assert caught.value.hint


class _Driver:
    """A CUDA driver that says what it is told to say."""

    def __init__(self, status: int, version: int) -> None:
        self.status, self.version = status, version

    def cuInit(self, _flags: int) -> int:
        return self.status

    def cuDriverGetVersion(self, version: Any) -> None:
        version._obj.value = self.version


@pytest.mark.parametrize(
    ("driver", "package", "what", "mend"),
    [
        (None, None, "this machine has no CUDA driver", "--device cpu"),
        (_Driver(100, 0), None, "finds no GPU that works (error 100)", "nvidia-smi"),
        (_Driver(0, 11080), None, "the CUDA driver is for CUDA 11.8, and 12 or newer is needed", "Update"),
        (_Driver(0, 12040), None, "CuPy is not installed", "pip install 'tensormagic[gpu]'"),
        (_Driver(0, 13000), "broken", "CuPy does not find its libraries (ImportError: libnvrtc)", "pip install"),
        (_Driver(0, 13000), 0, "CUDA finds no GPU", "--device cpu"),
        (_Driver(0, 13000), 1, None, None),
    ],
)
def test_what_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch, driver, package, what, mend):
    from types import SimpleNamespace

    from tensormagic.backend.cuda import device as devices

    def loaded(_name: str) -> Any:
        if driver is None:
            raise OSError
        return driver

    def cupy() -> Any:
        if package == "broken":
            raise ImportError("libnvrtc")
        return SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: package)))

    monkeypatch.setattr(devices.ctypes, "CDLL", loaded)
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _name: None if package is None else True)
    monkeypatch.setattr(devices, "_cupy", cupy)
    found = devices._looked()
    if what is None:
        assert found is None
    else:
        assert what in found[0]
        assert mend in found[1]


def test_calls_of_the_library_are_of_ops_that_there_are():
    assert set(LIBRARY) <= set(registry)
