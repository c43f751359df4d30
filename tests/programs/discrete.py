"""Dynamic programming, graphs, bits and counts: integers, branches, and indices that data give."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def nussinov(n, seq):
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def edit_distance(a, b):
    table = np.zeros((a.size + 1, b.size + 1), np.int64)
    table[:, 0] = np.arange(a.size + 1)
    table[0, :] = np.arange(b.size + 1)
    for i in range(1, a.size + 1):
        for j in range(1, b.size + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[-1, -1]


def crc16(data):
    crc = 0xFFFF
    for k in range(data.shape[0]):
        b = data[k]
        cur = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (cur & 0x0001):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            cur >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


def histogram_weights(radius, data, bins):
    edges = np.linspace(0.0, radius.max(), bins + 1)
    result = np.zeros(bins)
    for k in range(bins):
        inside = np.logical_and(edges[k] <= radius, radius < edges[k + 1])
        result[k] = data[inside].mean()
    return result


def histogram(data, bins):
    counts = np.zeros(bins, np.int64)
    width = (data.max() - data.min()) / bins
    place = np.minimum(((data - data.min()) / width).astype(np.int64), bins - 1)
    np.add.at(counts, place, 1)
    return counts


def bubble_sort(x):
    n = x.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]


def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i < n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return prime


def binary_search(x, value):
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def trace_tanh(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def clipped_sum(a, b, low, high, x, y, z):
    return np.clip(a, low, high) * x + b * y + z


def life(grid, steps):
    for _ in range(steps):
        around = np.zeros_like(grid)
        for i in range(-1, 2):
            for j in range(-1, 2):
                if i != 0 or j != 0:
                    around += np.roll(np.roll(grid, i, 0), j, 1)
        grid[:] = (around == 3) | ((grid == 1) & (around == 2))


program(floyd_warshall, lambda n, r: (r.integers(1, 100, (n, n)),), 6, 200)
program(nussinov, lambda n, r: (n, r.integers(0, 4, n)), 8, 80)
program(edit_distance, lambda n, r: (r.integers(0, 4, n), r.integers(0, 4, n + 2)), 7, 300)
program(crc16, lambda n, r: (r.integers(0, 256, n, dtype=np.uint8),), 9, 20_000)
program(histogram_weights, lambda n, r: (r.random(n), r.random(n), 5), 60, 200_000)
program(histogram, lambda n, r: (r.random(n), 10), 60, 200_000)
program(bubble_sort, lambda n, r: (r.random(n),), 7, 300)
program(sieve, lambda n, r: (n,), 50, 50_000)
program(binary_search, lambda n, r: (np.sort(r.random(n)), 0.4), 20, 100_000)
program(trace_tanh, lambda n, r: (r.standard_normal((n, n)),), 5, 1000, (0,))
program(
    clipped_sum,
    lambda n, r: (r.random((n, n)), r.random((n, n)), 0.2, 0.8, 2.0, 3.0, r.random((n, n))),
    5,
    1000,
)
program(life, lambda n, r: (r.integers(0, 2, (n, n)), 3), 8, 100)
