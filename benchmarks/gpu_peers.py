"""What other libraries take on a card for the programs of `gpu.py` and `device_cells.py`: microseconds, data and results on the card.

Run on a machine with a card: ``python benchmarks/gpu_peers.py``. Medians of 20 by the host's clock with synchronisation; each of jax,
PyTorch and CuPy that is installed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("JAX_ENABLE_X64", "1")

Make = Callable[[Callable[..., Any], list[np.ndarray], "int | None"], Callable[[], Any]]
N = 1 << 26


def cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    return xp.mean(xp.log(1 + xp.exp(-abs(x))) + xp.clip(x, 0, None) - x * y)


def elementwise(xp: Any, x: Any, y: Any) -> Any:
    return xp.exp(-x * x) * y + x


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.amax(x, 1)[:, None])
    return e / xp.sum(e, 1)[:, None]


def layer_norm(xp: Any, x: Any, g: Any, b: Any) -> Any:
    m = xp.mean(x, 1)[:, None]
    v = xp.mean((x - m) ** 2, 1)[:, None]
    return (x - m) / xp.sqrt(v + 1e-5) * g + b


def logistic(xp: Any, x: Any, y: Any, w: Any) -> Any:
    return xp.mean(xp.log(1 + xp.exp(-y * (x @ w))))


def black_scholes(xp: Any, s: Any, k: Any, t: Any) -> Any:
    d1 = (xp.log(s / k) + (0.02 + 0.045) * t) / (0.3 * xp.sqrt(t))
    d2 = d1 - 0.3 * xp.sqrt(t)
    return s / (1 + xp.exp(-1.702 * d1)) - k * xp.exp(-0.02 * t) / (1 + xp.exp(-1.702 * d2))


def perceptron(xp: Any, w1: Any, w2: Any, x: Any) -> Any:
    z = xp.tanh(x @ w1) @ w2
    z = z - xp.amax(z, 1)[:, None]
    return -xp.mean((z - xp.log(xp.sum(xp.exp(z), 1))[:, None])[:, 3])


def stencil(xp: Any, u: Any) -> Any:
    pad = import_module("torch").nn.functional.pad if xp.__name__ == "torch" else None
    for _ in range(20):
        c = u[1:-1, 1:-1]
        v = c + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c) + 0.01 * c * (1 - c)
        u = pad(v, (1, 1, 1, 1)) if pad is not None else xp.pad(v, 1)
    return u


def running(xp: Any, x: Any) -> Any:
    return xp.cumsum(x, 0)


PROGRAMS: dict[
    str, tuple[Callable[..., Any], list[tuple[int, ...]], int | None]
] = {  # and of which argument there is a gradient
    "elementwise 2^26": (elementwise, [(N,)] * 2, None),
    "cross entropy 2^26": (cross_entropy, [(N,)] * 2, None),
    "cross entropy 10^6": (cross_entropy, [(10**6,)] * 2, None),
    "softmax 32768x2048": (softmax, [(32768, 2048)], None),
    "layer norm 32768x2048": (layer_norm, [(32768, 2048), (2048,), (2048,)], None),
    "Black-Scholes 2^24": (black_scholes, [(N // 4,)] * 3, None),
    "logistic 2000000x30": (logistic, [(2_000_000, 30), (2_000_000,), (30,)], 2),
    "perceptron 4096x784x1024x10": (perceptron, [(784, 1024), (1024, 10), (4096, 784)], 0),
    "20 steps of a 4096x4096 stencil": (stencil, [(4096, 4096)], None),
    "running sum 2^26": (running, [(N,)], None),
    "four elements": (elementwise, [(4,)] * 2, None),
}


def peers() -> Iterator[tuple[str, Make, Callable[[], None]]]:
    """The name of each that is installed, what makes a call, and what waits for the card."""
    if find_spec("jax") is not None:
        jax, jnp = import_module("jax"), import_module("jax.numpy")

        def by_jax(f: Callable[..., Any], args: list[np.ndarray], wrt: int | None) -> Callable[[], Any]:
            own = jax.jit(jax.value_and_grad(lambda *a: f(jnp, *a), wrt) if wrt is not None else lambda *a: f(jnp, *a))
            given = [jax.device_put(a) for a in args]
            return lambda: jax.block_until_ready(own(*given))

        yield "jax.jit", by_jax, lambda: None
    if find_spec("torch") is not None:
        torch = import_module("torch")
        torch.backends.cuda.matmul.allow_tf32 = False

        def by_torch(f: Callable[..., Any], args: list[np.ndarray], wrt: int | None) -> Callable[[], Any]:
            torch._dynamo.reset()  # noqa: SLF001
            own, given = torch.compile(lambda *a: f(torch, *a)), [torch.from_numpy(a).cuda() for a in args]
            if wrt is None:
                return lambda: own(*given)
            given[wrt].requires_grad_(True)
            return lambda: torch.autograd.grad(own(*given), given[wrt])

        yield "torch.compile", by_torch, torch.cuda.synchronize
    if find_spec("cupy") is not None:
        cupy = import_module("cupy")

        def by_cupy(f: Callable[..., Any], args: list[np.ndarray], wrt: int | None) -> Callable[[], Any]:
            if wrt is not None:
                raise TypeError("CuPy has no gradients")
            given = [cupy.asarray(a) for a in args]
            return lambda: f(cupy, *given)

        yield "CuPy", by_cupy, lambda: cupy.cuda.Device().synchronize()


def median(run: Callable[[], Any], wait: Callable[[], None], repeat: int = 20) -> float:
    """Microseconds of a call, waited for."""
    found: list[float] = []
    for number in range(repeat + 3):
        begin = time.perf_counter()
        run()
        wait()
        found += [time.perf_counter() - begin] if number >= 3 else []
    return statistics.median(found) * 1e6


def main() -> None:
    """Measure everything that is installed."""
    rng = np.random.default_rng(0)
    for name, make, wait in peers():
        for dtype in ("float32", "float64"):
            for label, (function, shapes, wrt) in PROGRAMS.items():
                args = [rng.uniform(0.5, 2, s).astype(dtype) for s in shapes]
                try:
                    run = make(function, args, wrt)
                    begin = time.perf_counter()
                    run()
                    wait()
                    first = time.perf_counter() - begin
                    print(f"{name} | {label} {dtype}: {median(run, wait):.0f} us, first {first:.2f} s", flush=True)
                except Exception as error:  # noqa: BLE001 (the others are measured all the same)
                    print(f"{name} | {label} {dtype}: {type(error).__name__}: {str(error)[:100]}", flush=True)


if __name__ == "__main__":
    main()
