"""Stencils with stores into slices in a loop over time, in one to three dimensions, and sweeps along rows."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def jacobi_1d(steps, A, B):
    for _ in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_2d(steps, A, B):
    for _ in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def heat_3d(steps, A, B):
    for _ in range(1, steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, :-2])
            + B[1:-1, 1:-1, 1:-1]
        )


def seidel_2d(steps, n, A):
    for _ in range(steps - 1):
        for i in range(1, n - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


def fdtd_2d(steps, ex, ey, hz, source):
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def adi(steps, n, u):
    v = np.empty_like(u)
    p = np.empty_like(u)
    q = np.empty_like(u)
    a = -0.5
    b = 2.0
    c = -0.5
    for _ in range(1, steps + 1):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (0.5 * u[j, 0 : n - 2] + u[j, 1 : n - 1] + 0.5 * u[j, 2:n] - a * q[1 : n - 1, j - 1]) / (
                a * p[1 : n - 1, j - 1] + b
            )
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 0] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = u[1 : n - 1, 0]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (0.5 * v[0 : n - 2, j] + v[1 : n - 1, j] + 0.5 * v[2:n, j] - a * q[1 : n - 1, j - 1]) / (
                a * p[1 : n - 1, j - 1] + b
            )
        u[1 : n - 1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1 : n - 1, j] = p[1 : n - 1, j] * u[1 : n - 1, j + 1] + q[1 : n - 1, j]


def horizontal_diffusion(field, coefficient):
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    flx = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = np.where(flx * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, flx)
    fly = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = np.where(fly * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, fly)
    return field[2:-2, 2:-2] - coefficient * (flx[1:, :] - flx[:-1, :] + fly[:, 1:] - fly[:, :-1])


def vertical_advection(w, u, dt):
    levels = u.shape[2]
    c = np.zeros_like(u)
    d = np.zeros_like(u)
    for k in range(levels):
        if k == 0:
            gc = 0.25 * w[:, :, 1]
            c[:, :, 0] = gc / (1.0 / dt + gc)
            d[:, :, 0] = (u[:, :, 0] / dt - gc * (u[:, :, 1] - u[:, :, 0])) / (1.0 / dt + gc)
        elif k < levels - 1:
            ga = -0.25 * w[:, :, k]
            gc = 0.25 * w[:, :, k + 1]
            b = 1.0 / dt - ga - gc
            r = 1.0 / (b - c[:, :, k - 1] * ga)
            c[:, :, k] = gc * r
            d[:, :, k] = (u[:, :, k] / dt - ga * d[:, :, k - 1]) * r
        else:
            ga = -0.25 * w[:, :, k]
            d[:, :, k] = (u[:, :, k] / dt - ga * d[:, :, k - 1]) / (1.0 / dt - ga - c[:, :, k - 1] * ga)
    for k in range(levels - 2, -1, -1):
        d[:, :, k] -= c[:, :, k] * d[:, :, k + 1]
    return d


def deriche(alpha, image):
    k = (1 - np.exp(-alpha)) ** 2 / (1 + alpha * np.exp(-alpha) - np.exp(2 * alpha))
    a1 = a5 = k
    a2 = a6 = k * np.exp(-alpha) * (alpha - 1)
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1)
    a4 = a8 = -k * np.exp(-2 * alpha)
    b1 = 2 ** (-alpha)
    b2 = -np.exp(-2 * alpha)
    y1 = np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, image.shape[1]):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.empty_like(image)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[0, :] = a5 * out[0, :]
    y1[1, :] = a5 * out[1, :] + a6 * out[0, :] + b1 * y1[0, :]
    for i in range(2, image.shape[0]):
        y1[i, :] = a5 * out[i, :] + a6 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a7 * out[-1, :]
    for i in range(image.shape[0] - 3, -1, -1):
        y2[i, :] = a7 * out[i + 1, :] + a8 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


program(jacobi_1d, lambda n, r: (6, r.random(n), r.random(n)), 12, 2000)
program(jacobi_2d, lambda n, r: (5, r.random((n, n)), r.random((n, n))), 7, 150)
program(heat_3d, lambda n, r: (4, r.random((n, n, n)), r.random((n, n, n))), 5, 40)
program(seidel_2d, lambda n, r: (3, n, r.random((n, n))), 6, 60)
program(fdtd_2d, lambda n, r: (5, *(r.random((n, n + 1)) for _ in range(3)), r.random(5)), 6, 200)
program(adi, lambda n, r: (3, n, r.random((n, n))), 7, 100)
program(horizontal_diffusion, lambda n, r: (r.random((n, n + 1)), r.random((n - 4, n - 3))), 8, 256, (0, 1))
program(vertical_advection, lambda n, r: (r.random((n, n, n + 1)), r.random((n, n, n)), 3.0), 5, 60, (0, 1))
program(deriche, lambda n, r: (0.25, r.random((n, n + 1))), 6, 300, (1,))
