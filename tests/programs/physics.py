"""Bodies, fractals and flows: pairs, masks, and iterations that stop under data-dependent conditions."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def _acceleration(position, mass, softening):
    x = position[:, 0:1]
    y = position[:, 1:2]
    z = position[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inverse = dx**2 + dy**2 + dz**2 + softening**2
    inverse[inverse > 0] = inverse[inverse > 0] ** (-1.5)
    return np.hstack(((dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass))


def n_body(mass, position, velocity, steps, dt, softening):
    velocity -= np.mean(mass * velocity, axis=0) / np.mean(mass)
    acceleration = _acceleration(position, mass, softening)
    kinetic = np.ndarray(steps + 1, dtype=np.float64)
    kinetic[0] = 0.5 * np.sum(mass * velocity**2)
    for i in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = _acceleration(position, mass, softening)
        velocity += acceleration * dt / 2.0
        kinetic[i + 1] = 0.5 * np.sum(mass * velocity**2)
    return kinetic


def mandelbrot(xmin, xmax, ymin, ymax, n, most, horizon):
    x = np.linspace(xmin, xmax, n, dtype=np.float64)
    y = np.linspace(ymin, ymax, n, dtype=np.float64)
    c = x + y[:, None] * 1j
    iterations = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for k in range(most):
        inside = np.less(abs(z), horizon)
        iterations[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    iterations[iterations == most - 1] = 0
    return z, iterations


def mandelbrot_compressed(xmin, xmax, ymin, ymax, n, most, horizon):
    xi, yi = np.mgrid[0:n, 0:n]
    x = np.linspace(xmin, xmax, n)[xi]
    y = np.linspace(ymin, ymax, n)[yi]
    c = x + y * 1j
    iterations = np.zeros(c.shape, dtype=np.int64)
    z_end = np.zeros(c.shape, dtype=np.complex128)
    xi.shape = yi.shape = c.shape = n * n
    z = np.zeros(c.shape, np.complex128)
    for k in range(most):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > horizon
        iterations[xi[gone], yi[gone]] = k + 1
        z_end[xi[gone], yi[gone]] = z[gone]
        stays = ~gone
        z = z[stays]
        c = c[stays]
        xi = xi[stays]
        yi = yi[stays]
    return z_end, iterations


def escape_time(c_real, c_imag, most):
    zr, zi, k = 0.0, 0.0, 0
    while k < most and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + c_real, 2.0 * zr * zi + c_imag
        k += 1
    return k


def _pressure(p, dx, dy, b, iterations):
    for _ in range(iterations):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def cavity_flow(steps, iterations, u, v, p, dt, dx, dy, rho, nu):
    b = np.zeros_like(u)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        du = (u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)
        dv = (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)
        cross = (u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * ((du + dv) / dt - du**2 - 2 * cross - dv**2)
        _pressure(p, dx, dy, b, iterations)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def channel_flow(u, v, force, dt, dx, nu):
    change = 1.0
    steps = 0
    while change > 0.05:
        un = u.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - v[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            + nu * dt / dx**2 * (un[1:-1, 2:] + un[1:-1, 0:-2] + un[2:, 1:-1] + un[0:-2, 1:-1] - 4 * un[1:-1, 1:-1])
            + force * dt
        )
        u[:, 0] = u[:, -2]
        u[:, -1] = u[:, 1]
        u[0, :] = 0
        u[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps


def arc_distance(theta1, phi1, theta2, phi2):
    half = np.sin((theta2 - theta1) / 2) ** 2 + np.cos(theta1) * np.cos(theta2) * np.sin((phi2 - phi1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(half), np.sqrt(1 - half))


def pendulum(angle, speed, steps, dt):
    path = np.zeros((steps, 2))
    for k in range(steps):
        speed = speed - dt * np.sin(angle)
        angle = angle + dt * speed
        path[k, 0], path[k, 1] = angle, speed
    return path


def newton_root(x):
    step = 1.0
    while abs(step) > 1e-12:
        step = (x * x - 2.0) / (2.0 * x)
        x = x - step
    return x


def _bodies(n, rng):
    return rng.random((n, 1)) + 0.5, rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), 4, 0.01, 0.1


def _flow(n, rng):
    return 4, 3, *(0.1 * rng.random((n, n)) for _ in range(3)), 0.001, 0.1, 0.1, 1.0, 0.1


program(n_body, _bodies, 5, 100)
program(mandelbrot, lambda n, r: (-2.0, 0.5, -1.25, 1.25, n, 12, 2.0), 9, 150)
program(mandelbrot_compressed, lambda n, r: (-2.0, 0.5, -1.25, 1.25, n, 12, 2.0), 9, 150)
program(escape_time, lambda n, r: (-0.74, 0.12, n), 50, 100_000)
program(cavity_flow, _flow, 7, 61)
program(channel_flow, lambda n, r: (np.zeros((n, n)), np.zeros((n, n)), 1.0, 0.01, 0.2, 0.1), 7, 61)
program(arc_distance, lambda n, r: tuple(r.random(n) for _ in range(4)), 9, 200_000, (0, 1, 2, 3))
program(pendulum, lambda n, r: (1.0, 0.0, n, 0.05), 8, 20_000, (0, 1))
program(newton_root, lambda n, r: (1.0 + r.random(),), 1, 1, (0,))
