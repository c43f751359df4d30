"""Networks, recurrences and transforms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.programs.program import program


def relu(x):
    return np.maximum(x, 0)


def softmax_rows(x):
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def mlp(x, w1, b1, w2, b2, w3, b3):
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax_rows(x @ w3 + b3)


def conv2d(image, weights):
    k = weights.shape[0]
    height = image.shape[1] - k + 1
    width = image.shape[2] - k + 1
    out = np.empty((image.shape[0], height, width, weights.shape[3]), dtype=image.dtype)
    for i in range(height):
        for j in range(width):
            out[:, i, j, :] = np.sum(
                image[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out


def conv2d_bias(image, weights, bias):
    return conv2d(image, weights) + bias


def max_pool(x):
    out = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def small_net(image, w1, b1, w2, b2):
    x = max_pool(relu(conv2d_bias(image, w1, b1)))
    x = np.reshape(x, (x.shape[0], -1))
    return x @ w2 + b2


def batch_norm(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def residual_block(image, w1, w2):
    padded = np.zeros((image.shape[0], image.shape[1] + 2, image.shape[2] + 2, w1.shape[3]))
    padded[:, 1:-1, 1:-1, :] = relu(batch_norm(conv2d(image, w1)))
    return relu(batch_norm(conv2d(padded, w2)) + image)


def rnn(xs, h, wx, wh, b):
    states = np.zeros((xs.shape[0], h.shape[0]))
    for t in range(xs.shape[0]):
        h = np.tanh(wx @ xs[t] + wh @ h + b)
        states[t] = h
    return states


def fft_by_hand(x):
    n = x.shape[0]
    if n == 1:
        return x
    even = fft_by_hand(x[::2])
    odd = fft_by_hand(x[1::2])
    turn = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turn, even - turn])


def stockham(levels, x):
    n = 2**levels
    y = x.astype(np.complex128)
    for k in range(levels):
        half, groups = 2 ** (levels - k - 1), 2**k
        y = y.reshape(2, half * groups) if half * groups else y
        turn = np.exp(-2j * np.pi * np.repeat(np.arange(half), groups) * groups / n)
        top = y[0] + y[1]
        low = (y[0] - y[1]) * turn
        y = np.stack([top.reshape(half, groups), low.reshape(half, groups)], axis=1).reshape(n)
    return y


def dft_matrix(x):
    n = x.shape[0]
    k = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(k, k) / n) @ x


def contour_integral(matrices, points, weights, y):
    total0 = np.zeros(y.shape, dtype=np.complex128)
    total1 = np.zeros(y.shape, dtype=np.complex128)
    for z, weight in zip(points, weights):  # noqa: B905 (as programs have it)
        tz = np.zeros(matrices.shape[1:], dtype=np.complex128)
        for n in range(matrices.shape[0]):
            tz += np.power(z, matrices.shape[0] / 2 - n - 1) * matrices[n]
        x = np.linalg.solve(tz, y)
        total0 += weight * x
        total1 += weight * z * x
    return total0, total1


def self_energy(neighbours, distance, green, coupling):
    sigma = np.zeros_like(green)
    for k in range(green.shape[0]):
        for a in range(green.shape[1]):
            for b in range(neighbours.shape[1]):
                other = neighbours[a, b]
                left = coupling[a, b] @ green[k, other]
                sigma[k, a] += distance[a, b] * left @ coupling[other, b]
    return sigma


def kmeans(points, centres, steps):
    for _ in range(steps):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = np.argmin(distance, axis=1)
        for k in range(centres.shape[0]):
            own = nearest == k
            if own.sum() > 0:
                centres[k] = points[own].mean(axis=0)
    return nearest


def _net(n, r):
    sizes = [n, n + 3, n + 2, 5]
    parts = [r.standard_normal((4, n))]
    for a, b in pairwise(sizes):
        parts += [r.standard_normal((a, b)), r.standard_normal(b)]
    return tuple(parts)


def _small_net(n, r):
    m = ((n - 2) // 2) ** 2 * 3
    return r.random((2, n, n, 2)), r.standard_normal((3, 3, 2, 3)), r.random(3), r.standard_normal((m, 4)), r.random(4)


def _energy(n, r):
    return (
        r.integers(0, n, (n, 2)),
        r.random((n, 2)),
        r.random((3, n, 2, 2)) + 1j * r.random((3, n, 2, 2)),
        r.random((n, 2, 2, 2)) + 0j,
    )


program(softmax_rows, lambda n, r: (r.standard_normal((n, n + 1)),), 5, 1000, (0,))
program(mlp, _net, 4, 200, (1, 2, 5))
program(conv2d_bias, lambda n, r: (r.random((2, n, n, 2)), r.random((3, 3, 2, 3)), r.random(3)), 5, 24, (0, 1, 2))
program(small_net, _small_net, 6, 16, (1, 3))
program(
    residual_block,
    lambda n, r: (r.random((2, n, n, 3)), r.random((1, 1, 3, 2)), r.random((3, 3, 2, 3))),
    4,
    12,
)
program(
    rnn,
    lambda n, r: (
        r.standard_normal((n, 3)),
        np.zeros(4),
        0.5 * r.standard_normal((4, 3)),
        0.5 * r.standard_normal((4, 4)),
        r.standard_normal(4),
    ),
    6,
    2000,
    (0, 1, 2, 3, 4),
)
program(fft_by_hand, lambda n, r: (r.standard_normal(2**n),), 3, 8)
program(stockham, lambda n, r: (n, r.standard_normal(2**n)), 3, 12)
program(dft_matrix, lambda n, r: (r.standard_normal(n),), 6, 300)
program(
    contour_integral,
    lambda n, r: (
        r.random((3, n, n)) + 0j,
        r.random(4) + 1j * r.random(4),
        r.random(4) + 0j,
        r.random((n, 2)) + 0j,
    ),
    4,
    60,
)
program(self_energy, _energy, 4, 20)
program(kmeans, lambda n, r: (r.random((n, 2)), r.random((3, 2)), 3), 20, 2000)
