"""Loops inside loops on a device: launches that are bound once, with one look at a flag for faults at the end of all."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.device import Device
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.test_loops import compared, entropy, graph_of, launched, no_loop_is_small

pytestmark = compiles
__all__ = ["no_loop_is_small"]  # a fixture that all tests here have
_RNG = np.random.default_rng(6)
A, X, V = _RNG.normal(size=(4, 4)), _RNG.normal(size=(6, 4)), _RNG.normal(size=6)
LABELS = np.arange(6) % 3


def product(a, b):
    out = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            total = 0.0
            for k in range(4):
                total = total + a[i, k] * b[k, j]
            out[i, j] = total
    return out


def epochs(w, x, labels):
    for _ in range(3):
        for k in range(2):
            w = w - 0.5 * tm.grad(entropy)(w, x[3 * k : 3 * k + 3], labels[3 * k : 3 * k + 3])
        w = w * 0.99
    return w


def decayed(w, x, y):
    rate = 0.1
    for _ in range(4):
        for _ in range(5):
            w = w - rate * (x.T @ (x @ w - y)) / 6
        rate = rate * 0.5
    return w, rate


def centres(x):
    c = x[:2] * 1.0
    for _ in range(3):
        nearest = ((x[:, None] - c) ** 2).sum(-1).argmin(1)
        for j in range(2):
            own = nearest == j
            c[j] = (x * own[:, None]).sum(0) / np.maximum(own.sum(), 1)
    return c


def roots(v):
    out = np.zeros(6)
    for i in range(6):
        z, target = 1.0, v[i] ** 2 + 1
        while abs(z * z - target) > 1e-9:
            z = z - (z * z - target) / (2 * z)
        out[i] = z
    return out


def heated(u):
    for _ in range(40):
        for _ in range(3):
            u = u + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u)
        u = u * 0.99
    return u


def swapped(a, b):
    for _ in range(5):
        for _ in range(3):
            a, b = b, a * 0.5 + 1
        a, b = b, a
    return a, b


def triangle(v):
    out = np.zeros(6)
    for i in range(6):
        for j in range(i):
            out[i] = out[i] + v[j] * i
    return out


def three_levels(v):
    total = v * 0
    for i in range(2):
        for j in range(2):
            for k in range(3):
                total = total + np.sin(v * (i + 1) + j) * k
            total = total * 0.5
    return total


def while_in_while(v):
    outer = 0
    while np.abs(v).sum() > 1 and outer < 5:
        inner = 0
        while np.abs(v).max() > 0.5 and inner < 3:
            v = v * 0.8
            inner = inner + 1
        v = v * 0.9
        outer = outer + 1
    return v, outer


def counted_within(v):
    steps = 0
    for _ in range(3):
        z = v.sum() ** 2 + 2
        while z > 1:
            z = z * 0.5
            steps = steps + 1
        v = v * 1.5 + steps
    return v, steps


def in_a_branch(v):
    for _ in range(3):
        if v.sum() > 0:
            for _ in range(2):
                v = v - 0.1
        else:
            v = v + 1
    return v


def two_side_by_side(v, w):
    for _ in range(3):
        for _ in range(2):
            v = v * 0.5 + w.sum()
        for _ in range(3):
            w = w - 0.1 * v
    return v, w


def with_the_index_around(v):
    for a in range(3):
        for i in range(4):
            v = v.copy()
            v[a] = v[i] * 0.1 + a
        v = v * 0.5 + v[a]
    return v


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {  # with how often the host may read
    "product": (product, (A, A.T @ A), 1),
    "epochs": (epochs, (_RNG.normal(size=(4, 3)), X, LABELS), 1),
    "decayed": (decayed, (A[0], X, V), 1),
    "centres": (centres, (X,), 1),
    "roots": (roots, (V,), 20),
    "heated": (heated, (V,), 1),
    "swapped": (swapped, (V, V + 3), 1),
    "triangle": (triangle, (V,), 1),
    "three levels": (three_levels, (V,), 1),
    "while in while": (while_in_while, (V,), 30),
    "counted within": (counted_within, (V,), 16),
    "in a branch": (in_a_branch, (V,), 6),
    "with the index around": (with_the_index_around, (V,), 1),
    "two side by side": (two_side_by_side, (V, V + 1), 1),
}


@pytest.mark.share(7)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_in_a_loop_copies_no_array(device: Device, name: str):
    function, args, reads = PROGRAMS[name]
    traced, graph = graph_of(function, args)
    before = device.copied.to_host, device.copied.reads
    found = launched(device, graph, args)
    assert device.copied.to_host == before[0]
    assert device.copied.reads - before[1] <= reads
    compared(device, found, traced, args)


def test_one_that_is_the_same_each_time_is_recorded_with_what_is_around_it(device: Device):
    _, graph = graph_of(heated, (V,))
    launched(device, graph, (V,))
    assert device.copied.replays > 0
    assert device.copied.launches < 60  # of some 200 in all


def test_a_long_one_is_recorded_once(device: Device):
    def run(v, w):
        for i in range(3):
            for _ in range(150):
                v = v * 0.5 + w
            w = w * i
        return v

    traced, graph = graph_of(run, (V, V + 1))
    found = launched(device, graph, (V, V + 1))
    compared(device, found, traced, (V, V + 1))
    assert device.copied.replays >= 3
    assert device.copied.launches < 150  # of more than 450


def test_an_index_out_of_bounds_within_is_numpys(device: Device):
    def run(v, at):
        for _ in range(2):
            for k in range(3):
                v = v + v[at[k]]
        return v

    args = V, np.array([0, 1, 9])
    _, graph = graph_of(run, args)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        launched(device, graph, args)
