"""Cells as students write them: sorting, searching, primes, words, graphs and tables of dynamic programming."""

ALGORITHMS = {
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
    "string out": """
rows = []
for i, v in enumerate(x[:50]):
    rows.append(f"{i:3d} {v:8.4f}")
h = "\\n".join(rows)[:200]
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
    "string count": """
s = "the quick brown fox jumps"
c = {}
for ch in s:
    c[ch] = c.get(ch, 0) + 1
h = sorted(c.items())[:4]
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
