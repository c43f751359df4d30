"""Cells as courses in numerical methods have them: time stepping, relaxation, sieves, counting. Each leaves its result in ``h``."""

START = """
import math

import numpy as np
"""

CELLS = {
    "phugoid": """
zt, g = 100.0, 9.81
z0, b0 = 100.0, 10.0
T = 100.0
steps = np.array([0.1, 0.05, 0.01, 0.005])
curves = []
for dt in steps:
    N = int(T / dt) + 1
    t = np.linspace(0.0, T, num=N)
    u = np.array([z0, b0])
    z = np.zeros(N)
    z[0] = z0
    for n in range(1, N):
        rhs = np.array([u[1], g * (1 - u[0] / zt)])
        u = u + dt * rhs
        z[n] = u[0]
    curves.append(z)
h = [float(c[-1]) for c in curves]
""",
    "phugoid one": """
zt, g = 100.0, 9.81
T, dt = 100.0, 0.01
N = int(T / dt) + 1
u = np.array([100.0, 10.0])
z = np.zeros(N)
for n in range(1, N):
    u = u + dt * np.array([u[1], g * (1 - u[0] / zt)])
    z[n] = u[0]
h = z
""",
    "phugoid function": """
C_D, v_t, g = 1 / 40, 30.0, 9.8
def f(u):
    v, theta, x, y = u
    return np.array([-g*np.sin(theta) - C_D*g/v_t**2*v**2, -g*np.cos(theta)/v + g/v_t**2*v, v*np.cos(theta), v*np.sin(theta)])
def euler(u, f, dt):
    return u + dt * f(u)
T, dt = 100.0, 0.01
N = int(T/dt) + 1
u = np.empty((N, 4))
u[0] = np.array([30.0, 0.0, 0.0, 1000.0])
for n in range(N-1):
    u[n+1] = euler(u[n], f, dt)
h = u
""",
    "heat implicit 2d": """
nx = ny = 11
dx = dy = 0.01 / (nx - 1)
alpha = 1e-4
dt = 0.25 * dx**2 / alpha
sigma = alpha * dt / dx**2
T = np.ones((ny, nx)) * 20.0
T[0, :] = 100.0
T[:, 0] = 100.0
def lhs(M, N, sigma):
    n = (M - 2) * (N - 2)
    A = np.zeros((n, n))
    for j in range(N - 2):
        for i in range(M - 2):
            I = j * (M - 2) + i
            A[I, I] = 1 / sigma + 4
            if i > 0:
                A[I, I - 1] = -1
            if i < M - 3:
                A[I, I + 1] = -1
            else:
                A[I, I] -= 1
            if j > 0:
                A[I, I - M + 2] = -1
            if j < N - 3:
                A[I, I + M - 2] = -1
            else:
                A[I, I] -= 1
    return A
def rhs(T, M, N, sigma):
    n = (M - 2) * (N - 2)
    b = np.zeros(n)
    for j in range(1, N - 1):
        for i in range(1, M - 1):
            I = (j - 1) * (M - 2) + (i - 1)
            b[I] = T[j, i] / sigma
            if i == 1:
                b[I] += T[j, i - 1]
            if j == 1:
                b[I] += T[j - 1, i]
    return b
def back(T, x, M, N):
    for j in range(1, N - 1):
        for i in range(1, M - 1):
            I = (j - 1) * (M - 2) + (i - 1)
            T[j, i] = x[I]
    T[-1, :] = T[-2, :]
    T[:, -1] = T[:, -2]
    return T
A = lhs(nx, ny, sigma)
for n in range(10):
    b = rhs(T, nx, ny, sigma)
    x = np.linalg.solve(A, b)
    T = back(T, x, nx, ny)
    if T[ny // 2, nx // 2] >= 70.0:
        break
h = T
""",
    "laplace while": """
nx = ny = 41
p = np.zeros((ny, nx))
x = np.linspace(0, 1, nx)
p[-1, :] = np.sin(1.5 * np.pi * x / x[-1])
iters = 0
diff = 1.0
conv = []
while diff > 1e-5:
    pn = p.copy()
    p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1])
    p[1:-1, -1] = p[1:-1, -2]
    diff = np.sqrt(np.sum((p - pn)**2) / np.sum(pn**2))
    conv.append(diff)
    iters += 1
h = p, iters, conv[-1]
""",
    "laplace gauss seidel": """
nx = ny = 21
p = np.zeros((ny, nx))
p[-1, :] = np.sin(np.linspace(0, np.pi, nx))
diff = 1.0
iters = 0
while diff > 1e-4 and iters < 150:
    pn = p.copy()
    for j in range(1, ny - 1):
        for i in range(1, nx - 1):
            p[j, i] = 0.25 * (p[j, i-1] + p[j, i+1] + p[j-1, i] + p[j+1, i])
    diff = np.sqrt(np.sum((p - pn)**2) / np.sum(pn**2 + 1e-30))
    iters += 1
h = p, iters
""",
    "burgers": """
nx, nt = 101, 200
dx = 2 * np.pi / (nx - 1)
nu = 0.07
dt = dx * nu
x = np.linspace(0, 2 * np.pi, nx)
u = np.sin(x) + 2
for n in range(nt):
    un = u.copy()
    for i in range(1, nx - 1):
        u[i] = un[i] - un[i] * dt / dx * (un[i] - un[i-1]) + nu * dt / dx**2 * (un[i+1] - 2 * un[i] + un[i-1])
    u[0] = un[0] - un[0] * dt / dx * (un[0] - un[-2]) + nu * dt / dx**2 * (un[1] - 2 * un[0] + un[-2])
    u[-1] = u[0]
h = u
""",
    "euler float": """
y, t, dt = 1.0, 0.0, 1e-4
ys = []
while t < 5:
    y = y + dt * (-2.0 * y + math.sin(t))
    t = t + dt
    ys.append(y)
h = y, len(ys)
""",
    "logistic map": """
r = 3.7
x = 0.5
out = np.zeros(20000)
for i in range(20000):
    x = r * x * (1 - x)
    out[i] = x
h = out
""",
    "lorenz": """
def lorenz(s, sigma=10.0, rho=28.0, beta=8/3):
    x, y, z = s
    return np.array([sigma*(y-x), x*(rho-z)-y, x*y-beta*z])
dt, n = 0.01, 3000
traj = np.zeros((n+1, 3))
traj[0] = [1.0, 1.0, 1.0]
for i in range(n):
    k1 = lorenz(traj[i])
    k2 = lorenz(traj[i] + dt/2*k1)
    k3 = lorenz(traj[i] + dt/2*k2)
    k4 = lorenz(traj[i] + dt*k3)
    traj[i+1] = traj[i] + dt/6*(k1 + 2*k2 + 2*k3 + k4)
h = traj
""",
    "perceptron np": """
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
w = np.zeros(2)
b = 0.0
errors = []
for epoch in range(20):
    e = 0
    for xi, yi in zip(X, y):
        if yi * (xi @ w + b) <= 0:
            w = w + yi * xi
            b = b + yi
            e += 1
    errors.append(e)
    if e == 0:
        break
h = w, b, errors
""",
    "sieve list": """
n = 20000
s = [True] * (n + 1)
s[0] = s[1] = False
i = 2
while i * i <= n:
    if s[i]:
        for j in range(i * i, n + 1, i):
            s[j] = False
    i += 1
h = sum(s)
""",
    "sieve array": """
n = 20000
s = np.ones(n + 1, dtype=bool)
s[:2] = False
for i in range(2, int(n**0.5) + 1):
    if s[i]:
        s[i*i::i] = False
h = np.nonzero(s)[0]
""",
    "crc": """
data = np.arange(2000) % 251
crc = 0xFFFF
for byte in data:
    crc ^= int(byte) << 8
    for _ in range(8):
        if crc & 0x8000:
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF
        else:
            crc = (crc << 1) & 0xFFFF
h = crc
""",
    "bubble np": """
a = np.random.default_rng(3).integers(0, 1000, 120)
n = len(a)
for i in range(n):
    for j in range(0, n - i - 1):
        if a[j] > a[j + 1]:
            a[j], a[j + 1] = a[j + 1], a[j]
h = a
""",
    "monte carlo pi loop": """
rng = np.random.default_rng(0)
inside = 0
for i in range(20000):
    a = rng.random()
    b = rng.random()
    if a*a + b*b < 1:
        inside += 1
h = 4 * inside / 20000
""",
    "trapezoid": """
def f(x):
    return math.exp(-x**2)
a, b, n = 0.0, 2.0, 50000
hh = (b - a) / n
s = 0.5 * (f(a) + f(b))
for i in range(1, n):
    s += f(a + i * hh)
h = s * hh
""",
    "random walk 2d": """
rng = np.random.default_rng(0)
pos = np.zeros((5000, 2))
for t in range(1, 5000):
    pos[t] = pos[t-1] + rng.choice([-1, 1], size=2)
h = pos
""",
    "gauss elimination": """
rng = np.random.default_rng(0)
n = 40
A = rng.normal(size=(n, n))
b = rng.normal(size=n)
M = np.hstack([A, b[:, None]])
for k in range(n):
    piv = k + np.argmax(np.abs(M[k:, k]))
    if piv != k:
        M[[k, piv]] = M[[piv, k]]
    for i in range(k+1, n):
        fac = M[i, k] / M[k, k]
        M[i, k:] -= fac * M[k, k:]
xx = np.zeros(n)
for i in range(n-1, -1, -1):
    xx[i] = (M[i, -1] - M[i, i+1:n] @ xx[i+1:]) / M[i, i]
h = xx
""",
    "game of life loops": """
rng = np.random.default_rng(0)
g = rng.integers(0, 2, (30, 30))
for step in range(5):
    new = np.zeros_like(g)
    for i in range(30):
        for j in range(30):
            s = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        s += g[(i + di) % 30, (j + dj) % 30]
            if g[i, j] == 1 and s in (2, 3):
                new[i, j] = 1
            elif g[i, j] == 0 and s == 3:
                new[i, j] = 1
    g = new
h = g
""",
    "mandelbrot scalar": """
n = 40
img = np.zeros((n, n), dtype=int)
for i, yv in enumerate(np.linspace(-1.2, 1.2, n)):
    for j, xv in enumerate(np.linspace(-2, 0.6, n)):
        c = complex(xv, yv)
        z = 0j
        k = 0
        while abs(z) <= 2 and k < 50:
            z = z * z + c
            k += 1
        img[i, j] = k
h = img
""",
}
