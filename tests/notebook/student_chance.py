"""Cells as students write them: random walks, simulations and statistics."""

CHANCE = {
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
    "monte pi": """
rng2 = np.random.default_rng(4)
inside = 0
for k in range(2000):
    a, b = rng2.random(), rng2.random()
    if a * a + b * b < 1:
        inside += 1
h = 4 * inside / 2000
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
}
