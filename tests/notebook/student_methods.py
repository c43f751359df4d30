"""Cells as students write them: numerical methods, from bisection to Runge and Kutta's."""

METHODS = {
    "bisection": """
lo, hi = 0.0, 3.0
its = []
while hi - lo > 1e-10:
    mid = 0.5 * (lo + hi)
    its.append(mid)
    if (mid**3 - mid - 2) * (lo**3 - lo - 2) <= 0:
        hi = mid
    else:
        lo = mid
h = lo, len(its)
""",
    "newton arr": """
v = np.array([1.0, 2.0])
errs = []
for k in range(50):
    F = np.array([v[0] ** 2 + v[1] ** 2 - 4, v[0] - v[1]])
    J = np.array([[2 * v[0], 2 * v[1]], [1.0, -1.0]])
    d = np.linalg.solve(J, -F)
    v = v + d
    errs.append(np.linalg.norm(d))
    if errs[-1] < 1e-12:
        break
h = v, len(errs)
""",
    "moving avg": """
out = []
for i in range(len(x) - 5):
    out.append(np.mean(x[i : i + 5]))
h = np.array(out)
""",
    "euler dict": """
s = {"x": 1.0, "v": 0.0}
tr = []
for k in range(1000):
    a = -s["x"]
    s["v"] += 0.01 * a
    s["x"] += 0.01 * s["v"]
    tr.append(s["x"])
h = tr[-1], len(tr)
""",
    "matmul loops": """
A = X2[:20, :2]
B = X2[:2].T.copy()
C = np.zeros((20, 2))
for i in range(20):
    for j in range(2):
        for k in range(2):
            C[i, j] += A[i, k] * B[k, j]
h = C
""",
    "rk4": """
def rk4(f, y, t, dt):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(t, u):
    return np.array([10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]])


u = np.array([1.0, 1.0, 1.0])
traj = [u]
t = 0.0
for k in range(400):
    u = rk4(lorenz, u, t, 0.01)
    t += 0.01
    traj.append(u)
h = np.array(traj)[::100]
""",
    "gauss": """
A = X2[:6, :2] @ X2[:6, :2].T + np.eye(6)
b = np.arange(6.0)
A = A.copy()
n = 6
for k in range(n):
    p = k + np.argmax(np.abs(A[k:, k]))
    if p != k:
        A[[k, p]] = A[[p, k]]
        b[[k, p]] = b[[p, k]]
    for i in range(k + 1, n):
        m = A[i, k] / A[k, k]
        A[i, k:] -= m * A[k, k:]
        b[i] -= m * b[k]
xs = np.zeros(n)
for i in range(n - 1, -1, -1):
    xs[i] = (b[i] - A[i, i + 1 :] @ xs[i + 1 :]) / A[i, i]
h = xs
""",
    "gram": """
A = np.vander(np.linspace(0, 1, 8), 5)
Q = np.zeros_like(A)
R = np.zeros((5, 5))
for j in range(5):
    v = A[:, j].copy()
    for i in range(j):
        R[i, j] = Q[:, i] @ A[:, j]
        v -= R[i, j] * Q[:, i]
    R[j, j] = np.linalg.norm(v)
    Q[:, j] = v / R[j, j]
h = R
""",
    "power": """
A = np.diag([3.0, 2.0, 1.0]) + 0.1
v = np.ones(3)
lam = 0.0
n = 0
while True:
    w = A @ v
    new = np.linalg.norm(w)
    v = w / new
    n += 1
    if abs(new - lam) < 1e-12:
        break
    lam = new
h = lam, n
""",
    "conv2d": """
im = np.sin(np.arange(144.0)).reshape(12, 12)
K = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
out = np.zeros((10, 10))
for i in range(10):
    for j in range(10):
        out[i, j] = np.sum(im[i : i + 3, j : j + 3] * K)
h = out.sum(), out[3, 4]
""",
    "fft rec": """
def fft(a):
    n = len(a)
    if n == 1:
        return a
    e, o = fft(a[::2]), fft(a[1::2])
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate([e + w * o, e - w * o])


h = np.abs(fft(x[:32].astype(complex)))[:5]
""",
    "bounce": """
y, v, t = 10.0, 0.0, 0.0
hits = []
while len(hits) < 5:
    v -= 9.81 * 0.001
    y += v * 0.001
    t += 0.001
    if y < 0:
        y = -y
        v = -0.8 * v
        hits.append(t)
h = hits
""",
    "pid": """
sp = 1.0
y = 0.0
I = 0.0
pe = 0.0
ys = []
for k in range(300):
    e = sp - y
    I += e * 0.01
    dd = (e - pe) / 0.01
    pe = e
    u = min(max(2 * e + 0.5 * I + 0.05 * dd, -1), 1)
    y += 0.05 * (u - 0.1 * y)
    ys.append(y)
h = ys[-1], max(ys)
""",
    "jacobi": """
u = np.zeros((20, 20))
u[0] = 1.0
it = 0
while True:
    new = u.copy()
    new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    e = np.max(np.abs(new - u))
    u = new
    it += 1
    if e < 1e-3 or it >= 500:
        break
h = it, u[5, 5]
""",
    "interp search": """
xs = np.linspace(0, 1, 50)
ys = xs**2
out = []
for q in [0.12, 0.5, 0.77]:
    i = 0
    while xs[i + 1] < q:
        i += 1
    out.append(ys[i] + (ys[i + 1] - ys[i]) * (q - xs[i]) / (xs[i + 1] - xs[i]))
h = out
""",
    "mandel": """
Z = []
for a in np.linspace(-2, 0.5, 12):
    row = []
    for b in np.linspace(-1, 1, 8):
        z = 0
        n = 0
        cc = complex(a, b)
        while abs(z) <= 2 and n < 30:
            z = z * z + cc
            n += 1
        row.append(n)
    Z.append(row)
h = np.array(Z)
""",
    "secant": """
f = lambda t: t**3 - 2 * t - 5
a, b = 2.0, 3.0
hist = []
for k in range(30):
    if abs(f(b) - f(a)) < 1e-15:
        break
    a, b = b, b - f(b) * (b - a) / (f(b) - f(a))
    hist.append(b)
h = b, len(hist)
""",
}
