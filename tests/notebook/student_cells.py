"""Cells as students write them in courses: loops over numbers, lists, dictionaries and objects. Each leaves its result in ``h``."""

START = """
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=3000)
X2 = rng.normal(size=(300, 2))
y2 = X2 @ [1.0, -2.0] + 0.1 * rng.normal(size=300)
"""

CELLS = {
    "sep": """
a = []
b = []
for v in x:
    (a if v > 0 else b).append(v)
h = len(a), sum(b)
""",
    "kmeans": """
pts = X2.copy()
cent = pts[:3].copy()
for it in range(10):
    groups = [[] for _ in range(3)]
    for p in pts[:200]:
        d = [np.sum((p - c) ** 2) for c in cent]
        groups[int(np.argmin(d))].append(p)
    cent = np.array([np.mean(g, axis=0) if len(g) else cent[i] for i, g in enumerate(groups)])
h = cent
""",
    "hist dict": """
counts = {}
for v in x[:1000]:
    k = int(np.floor(v))
    counts[k] = counts.get(k, 0) + 1
h = sorted(counts.items())
""",
    "bins": """
bins = [0] * 8
for v in x[:1000]:
    k = int((v + 4))
    if 0 <= k < 8:
        bins[k] += 1
h = bins
""",
    "random walk": """
rng2 = np.random.default_rng(1)
pos = 0.0
path = [pos]
for t in range(500):
    step = 1 if rng2.random() < 0.5 else -1
    pos += step
    path.append(pos)
h = path
""",
    "metropolis": """
rng2 = np.random.default_rng(1)
s = 0.0
chain = []
acc = 0
for t in range(800):
    prop = s + rng2.normal()
    if np.log(rng2.random()) < -0.5 * (prop**2 - s**2):
        s = prop
        acc += 1
    chain.append(s)
h = np.mean(chain), acc
""",
    "gd history": """
w = np.zeros(2)
hist = []
for it in range(300):
    r = X2 @ w - y2
    g = 2 * X2.T @ r / len(y2)
    w = w - 0.1 * g
    loss = np.mean(r**2)
    hist.append(loss)
    if it > 5 and abs(hist[-2] - hist[-1]) < 1e-9:
        break
h = w, len(hist), hist[-1]
""",
    "early stop": """
w = np.zeros(2)
best = None
bl = np.inf
pat = 0
for it in range(300):
    r = X2 @ w - y2
    w = w - 0.1 * 2 * X2.T @ r / len(y2)
    l = np.mean(r**2)
    if l < bl - 1e-6:
        bl = l
        best = w.copy()
        pat = 0
    else:
        pat += 1
        if pat > 5:
            break
h = best, bl, it
""",
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
    "collatz": """
best = 0
arg = 0
for n in range(1, 400):
    m = n
    c = 0
    while m != 1:
        m = m // 2 if m % 2 == 0 else 3 * m + 1
        c += 1
    if c > best:
        best, arg = c, n
h = best, arg
""",
    "primes": """
ps = []
for n in range(2, 800):
    if all(n % p for p in ps if p * p <= n):
        ps.append(n)
h = len(ps), ps[-1]
""",
    "sieve arr": """
N = 3000
s = np.ones(N, bool)
s[:2] = False
for i in range(2, int(N**0.5) + 1):
    if s[i]:
        s[i * i :: i] = False
h = np.nonzero(s)[0]
""",
    "bubble": """
l = list(x[:60])
for i in range(len(l)):
    for j in range(len(l) - 1 - i):
        if l[j] > l[j + 1]:
            l[j], l[j + 1] = l[j + 1], l[j]
h = l[:5]
""",
    "insertion arr": """
a = x[:80].copy()
for i in range(1, len(a)):
    k = a[i]
    j = i - 1
    while j >= 0 and a[j] > k:
        a[j + 1] = a[j]
        j -= 1
    a[j + 1] = k
h = a
""",
    "life": """
g = (np.arange(400).reshape(20, 20) * 7919 % 3 == 0).astype(int)
for t in range(20):
    n = np.zeros_like(g)
    for i in range(20):
        for j in range(20):
            n[i, j] = sum(g[(i + a) % 20, (j + b) % 20] for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
    g = ((n == 3) | ((g == 1) & (n == 2))).astype(int)
h = g.sum()
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
    "class particle": """
class P:
    def __init__(self, x, v):
        self.x, self.v = x, v

    def step(self, dt):
        self.v = self.v - self.x * dt
        self.x = self.x + self.v * dt


ps = [P(np.array([1.0 * i, 0.5]), np.zeros(2)) for i in range(5)]
for t in range(200):
    for p in ps:
        p.step(0.01)
h = [p.x for p in ps]
""",
    "string out": """
rows = []
for i, v in enumerate(x[:50]):
    rows.append(f"{i:3d} {v:8.4f}")
h = "\\n".join(rows)[:200]
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
    "queue": """
rng2 = np.random.default_rng(3)
t = 0.0
q = []
waits = []
free = 0.0
for k in range(300):
    t += rng2.exponential(1.0)
    start = max(t, free)
    waits.append(start - t)
    free = start + rng2.exponential(0.8)
h = np.mean(waits), max(waits)
""",
    "monte pi": """
rng2 = np.random.default_rng(4)
inside = 0
for k in range(2000):
    a, b = rng2.random(), rng2.random()
    if a * a + b * b < 1:
        inside += 1
h = 4 * inside / 2000
""",
    "perceptron": """
w = np.zeros(2)
b = 0.0
lab = np.where(X2[:, 0] > 0.2, 1, -1)
errs = []
for ep in range(10):
    e = 0
    for xi, yi in zip(X2[:100], lab[:100]):
        if yi * (w @ xi + b) <= 0:
            w = w + yi * xi
            b += yi
            e += 1
    errs.append(e)
    if e == 0:
        break
h = w, b, errs
""",
    "longest run": """
best = cur = 0
for v in x:
    if v > 0:
        cur += 1
        best = max(best, cur)
    else:
        cur = 0
h = best
""",
    "argmax loop": """
m = x[0]
mi = 0
for i in range(len(x)):
    if x[i] > m:
        m = x[i]
        mi = i
h = m, mi
""",
    "while list pop": """
stack = list(x[:30])
tot = 0.0
n = 0
while stack:
    v = stack.pop()
    if v < 0 and n < 100:
        stack.append(-v / 2)
        n += 1
    tot += v
h = tot, n
""",
    "dp lcs": """
s1 = "ACGTTGCA" * 3
s2 = "TGCATCGA" * 3
D = np.zeros((len(s1) + 1, len(s2) + 1), int)
for i in range(len(s1)):
    for j in range(len(s2)):
        if s1[i] == s2[j]:
            D[i + 1, j + 1] = D[i, j] + 1
        else:
            D[i + 1, j + 1] = max(D[i, j + 1], D[i + 1, j])
h = D[-1, -1]
""",
    "knn": """
pred = []
for q in X2[:60]:
    d = np.sqrt(((X2 - q) ** 2).sum(1))
    nn = np.argsort(d)[1:6]
    pred.append(y2[nn].mean())
h = np.array(pred)
""",
    "fib memo": """
memo = {}


def fib(n):
    if n < 2:
        return n
    if n not in memo:
        memo[n] = fib(n - 1) + fib(n - 2)
    return memo[n]


h = fib(80)
""",
    "running stats": """
n = 0
mean = 0.0
M2 = 0.0
for v in x:
    n += 1
    d = v - mean
    mean += d / n
    M2 += d * (v - mean)
h = mean, M2 / (n - 1)
""",
    "rle": """
runs = []
prev = None
c = 0
for v in x[:300] > 0:
    if prev is None or v != prev:
        if prev is not None:
            runs.append((bool(prev), c))
        prev = v
        c = 1
    else:
        c += 1
h = runs[:5], len(runs)
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
    "markov": """
P = np.array([[0.9, 0.1], [0.4, 0.6]])
rg = np.random.default_rng(0)
s = 0
seen = [0, 0]
for k in range(500):
    seen[s] += 1
    s = rg.choice(2, p=P[s])
h = seen
""",
    "bootstrap": """
rg = np.random.default_rng(0)
ms = []
for k in range(200):
    ms.append(np.median(rg.choice(x, size=100)))
h = np.percentile(ms, [2.5, 97.5])
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
    "bfs": """
adj = {0: [1, 2], 1: [3], 2: [3, 4], 3: [5], 4: [5], 5: []}
dist = {0: 0}
q = [0]
while q:
    u = q.pop(0)
    for w in adj[u]:
        if w not in dist:
            dist[w] = dist[u] + 1
            q.append(w)
h = dist
""",
    "dijkstra": """
import heapq

W = np.abs(np.outer(np.arange(1, 9), np.arange(2, 10)) % 7).astype(float)
D = [np.inf] * 8
D[0] = 0.0
pq = [(0.0, 0)]
while pq:
    d, u = heapq.heappop(pq)
    if d > D[u]:
        continue
    for v in range(8):
        if W[u, v] > 0 and d + W[u, v] < D[v]:
            D[v] = d + W[u, v]
            heapq.heappush(pq, (D[v], v))
h = D
""",
    "knapsack": """
wt = [2, 3, 4, 5, 9]
val = [3, 4, 5, 8, 10]
C = 20
T = np.zeros((6, C + 1))
for i in range(1, 6):
    for c in range(C + 1):
        T[i, c] = T[i - 1, c]
        if wt[i - 1] <= c:
            T[i, c] = max(T[i, c], T[i - 1, c - wt[i - 1]] + val[i - 1])
h = T[-1, -1]
""",
    "binomial": """
S, K, r, s, n = 100.0, 95.0, 0.05, 0.2, 50
dt = 1 / n
u = np.exp(s * np.sqrt(dt))
d = 1 / u
p = (np.exp(r * dt) - d) / (u - d)
V = np.maximum(S * u ** np.arange(n, -1, -1) * d ** np.arange(n + 1) - K, 0)
for k in range(n):
    V = np.exp(-r * dt) * (p * V[:-1] + (1 - p) * V[1:])
h = V[0]
""",
    "sgd shuffle": """
rg = np.random.default_rng(0)
w = np.zeros(2)
losses = []
for ep in range(5):
    idx = rg.permutation(300)
    for s in range(0, 300, 50):
        b = idx[s : s + 50]
        g = X2[b].T @ (X2[b] @ w - y2[b]) / 50
        w -= 0.3 * g
    losses.append(float(np.mean((X2 @ w - y2) ** 2)))
h = w, losses
""",
    "naive bayes": """
lab = (X2[:, 0] > 0).astype(int)
st = {}
for c in np.unique(lab):
    r = X2[lab == c]
    st[int(c)] = (r.mean(0), r.var(0), len(r) / len(X2))
preds = []
for q in X2[:40]:
    sc = {}
    for c, (m, v, p) in st.items():
        sc[c] = np.log(p) - 0.5 * np.sum(np.log(2 * np.pi * v) + (q - m) ** 2 / v)
    preds.append(max(sc, key=sc.get))
h = preds
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
    "ising": """
rg = np.random.default_rng(0)
L = 8
s = np.where(rg.random((L, L)) < 0.5, 1, -1)
E = []
for k in range(300):
    i, j = rg.integers(0, L, 2)
    nb = s[(i + 1) % L, j] + s[(i - 1) % L, j] + s[i, (j + 1) % L] + s[i, (j - 1) % L]
    dE = 2 * s[i, j] * nb
    if dE <= 0 or rg.random() < np.exp(-dE / 2.0):
        s[i, j] *= -1
    E.append(s.sum())
h = E[-5:]
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
    "cumulative stats": """
tot = 0
mx = -np.inf
recs = []
for i, v in enumerate(x[:800]):
    tot += v
    if v > mx:
        mx = v
        recs.append((i, float(v)))
h = tot, recs
""",
    "vote": """
votes = {}
for v in np.round(x[:500]).astype(int):
    votes[v] = votes.get(v, 0) + 1
h = sorted((int(k), c) for k, c in votes.items()), max(votes, key=votes.get)
""",
    "account": """
class Acc:
    def __init__(s, b=0.0):
        s.b = b
        s.log = []

    def dep(s, a):
        if a <= 0:
            raise ValueError("bad")
        s.b += a
        s.log.append(a)


acc = Acc()
bad = 0
for v in x[:200]:
    try:
        acc.dep(v)
    except ValueError:
        bad += 1
h = acc.b, len(acc.log), bad
""",
    "linreg manual": """
n = len(y2)
sx = sy = sxx = sxy = 0.0
for a, b in zip(X2[:, 0], y2):
    sx += a
    sy += b
    sxx += a * a
    sxy += a * b
m = (n * sxy - sx * sy) / (n * sxx - sx**2)
c = (sy - m * sx) / n
h = m, c
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
    "string count": """
s = "the quick brown fox jumps"
c = {}
for ch in s:
    c[ch] = c.get(ch, 0) + 1
h = sorted(c.items())[:4]
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
    "matrix chain": """
p = [30, 35, 15, 5, 10, 20, 25]
n = 6
m = np.zeros((n, n))
for L in range(2, n + 1):
    for i in range(n - L + 1):
        j = i + L - 1
        m[i, j] = np.inf
        for k in range(i, j):
            q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
            if q < m[i, j]:
                m[i, j] = q
h = m[0, -1]
""",
}
