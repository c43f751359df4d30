"""Programs whose inputs come in, and whose values go out, on streams of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import transfers
from tests.backend.cuda.orders import Traced

A, B, C = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0.5, 2, 3), np.arange(12.0).reshape(4, 3)
LARGE = np.linspace(-1, 1, 50_000)


def _one_by_one() -> list[Any]:
    a, b, c = tm.tensor(A), tm.tensor(B), tm.tensor(C)
    d = np.sum(np.exp(a) * 3.0, axis=0)
    return [np.cumsum(d * b) + np.sum(c, axis=0)]


def _gradient() -> list[Any]:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return np.mean((np.tanh(x @ w) - y) ** 2)

    return [tm.grad(loss)(tm.tensor(B), tm.tensor(A), tm.tensor(C[:, 0].copy()))]


def _steps() -> list[Any]:
    x, y = tm.tensor(A), tm.tensor(C)
    w = tm.tensor(np.ones(3))
    for _ in range(4):
        w = w - 0.1 * (x.T @ (x @ w - y[:, 0]))
    return [w, np.sort(y, axis=0)]


def _on_the_host() -> list[Any]:
    """What the device does not do goes to the host and back."""
    x, y = tm.tensor(A), tm.tensor(B)
    return [np.convolve(np.exp(x[:, 0]), y) + np.sum(x * y)]


def _twice() -> list[Any]:
    """The results of a run are the inputs of the next, beside new ones."""
    first = np.exp(tm.tensor(A))
    tm.session.have([first.node])
    second = np.sum(first * tm.tensor(C) + tm.tensor(B), axis=1)
    return [first, second]


def _critical() -> list[Any]:
    """The large input is read first, and most depends on the small one."""
    large, w = tm.tensor(LARGE), tm.tensor(B)
    total = np.sum(np.exp(large))
    for _ in range(6):
        w = np.tanh(w * 0.5) + w[::-1]
    return [total * w]


PROGRAMS: dict[str, Callable[[], list[Any]]] = {
    "inputs one by one": _one_by_one,
    "a gradient": _gradient,
    "steps": _steps,
    "a part on the host": _on_the_host,
    "one run behind another": _twice,
    "a critical path": _critical,
}


def traced(program: Callable[[], list[Any]], tier: str = "numpy") -> Traced:
    """A device that has run a program, with the values fetched."""
    device = Traced()
    devices.use(device)
    with transfers.asked_for(), tm.config.using(device="gpu", tier=tier):
        for value in program():
            value.numpy()
    return device
