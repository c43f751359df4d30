"""The pieces that cells of random sessions are put together from, over the names of ``session_programs.START``."""

PIECES = """
y = w * x + b
===
loss = mse(w * x + b, y)
loss
===
for i in range(5):
    r = w * x + b - y
    w = w - lr * 2 * (r * x).mean()
    b -= lr * 2 * r.mean()
    hist.append(mse(w * x + b, y))
print(f'{w:.4f} {b:.4f} {len(hist)}')
===
hist = []
===
hist.append(loss)
===
z = x.mean()
z
===
z = float(x.sum())
===
z = int(k.max())
z + 1
===
v = x[2:]
===
v[0] = z
===
v += 1
x
===
x = x * 2
===
x *= 0.5
===
x[-1] = w
===
x = np.linspace(-1.0, 2.0, 7)
===
bump(x)
===
u = bump(v, by=z)
u is v
===
u = x
u[0] += 1
===
M[1] = M[0]
M.sum(axis=0)
===
row = M[0]
row *= 2
M
===
for row in M:
    row -= row.mean()
del row
===
col = M[:, 1]
M = M.T.copy()
===
M = np.arange(12.0).reshape(3, 4) - 4
===
A = M @ M.T + np.eye(len(M))
e, Q = np.linalg.eigh(A)
np.allclose(Q @ np.diag(e) @ Q.T, A)
===
def f(u): return u * w + b
===
f = lambda u: np.sin(u) * z
===
y = f(x)
===
[f(i) for i in x[:3]]
===
def mse(p, q):
    d = p - q
    return (d ** 2).sum() / len(d)
===
def make(c):
    total = 0
    def inner(u):
        nonlocal total
        total += 1
        return u * c + total
    return inner
f = make(w)
===
class Scaler:
    def fit(self, a):
        self.m, self.s = a.mean(axis=0), a.std(axis=0)
        return self
    def transform(self, a): return (a - self.m) / self.s
sc = Scaler().fit(M)
M2 = sc.transform(M)
M2.round(2)
===
sc = type('Holder', (), {})()
sc.m = x.mean()
===
net = Net(3)
net.forward(x)
net.norm
===
net.step(lr)
print(net.W, len(net), net[0])
===
o = net.forward(x)
net.out is o, net.cache['u'] is x
===
net = Net.tiny()
Net.count
===
net.W[0] = z
===
Net.relu(x - w)
===
run.add(loss)
run
===
run = Run('two').add(z).add(w)
run.best
===
run.log += hist[:2]
===
del z
===
del v, hist
===
print(z)
===
z = 2.0; hist = [1.0]; v = x[2:]
===
_
===
a = _
===
a = 1
len([a])
===
_ * 2 if isinstance(_, (int, float)) else 0
===
type(_).__name__ if _ is None else 'some'
===
params['w'] -= lr * params['w']
params
===
params['b'][0] += z
===
params = {key: val * 2 for key, val in params.items()}
===
for key in params:
    params[key] = params[key] - lr * 0.5
===
old = params
params = dict(old)
old is params, old['b'] is params['b']
===
old = copy.deepcopy(params)
old['b'] is params['b']
===
params['h'] = hist
===
df['d'] = df['a'] * w
df
===
df['a'] += z
===
df.groupby('g')['a'].mean()
===
m = df['a'].mean()
f'{m:.3f}'
===
df[df['a'] > z]
===
df.loc[df['a'] > 0, 'c'] = n
===
t = df['a'].to_numpy()
t.mean()
===
df = pd.DataFrame({'a': x[:4], 'g': list('uvuv'), 'c': k[:4]})
===
df['e'] = [mse(x, q) for q in df['a']]
===
df.describe()
===
df.apply(lambda r: r['a'] * 2 + r['c'], axis=1)
===
s = s + w
s.max()
===
s[s > 0]
===
s = pd.Series(x, name='x').rolling(2).mean()
===
pd.DataFrame([{'step': i, 'loss': q} for i, q in enumerate(hist)])
===
fig, ax = plt.subplots()
ax.plot(x, y, 'o-')
ax.set_title(f'{w:.2f}')
len(ax.lines)
===
plt.plot(hist)
plt.axhline(z)
plt.xlim()
===
plt.hist(x, bins=3)
===
plt.figure(); plt.scatter(x, y, c=y); plt.close('all')
===
c = Counter(k)
c
===
c = Counter(int(i) for i in k)
c.most_common(1)
===
groups = defaultdict(list)
for i, q in zip(k, x):
    groups[int(i)].append(q)
dict(groups)
===
p = Point(z, w)
p.p + p.q, p
===
p = Point(x, k)
p.p is x
===
L = [x, y, x]
L[0] is L[2]
===
L = [x * 2, z]
L[0][0] = 9
===
L[0] += 1
===
L = list(x)
L.sort(reverse=True)
L[:2]
===
L = [0.0] * 3
for i in range(3):
    L[i] += x[i]
L
===
total = 0
for q in x:
    if q > z:
        total += q
total
===
best, arg = None, -1
for i, q in enumerate(y):
    if best is None or q < best:
        best, arg = q, i
best, arg
===
best = 0
for q in x:
    best = max(best, q)
2 * best
===
seen = set()
for i in k:
    seen.add(i)
sorted(seen)
===
i = 0
while abs(z) > 0.1:
    z /= 2
    i += 1
print(i, z)
===
count = sum(1 for q in x if q > 0)
count
===
text = ', '.join(f'{q:.2f}' for q in x)
text
===
print('mean', x.mean(), 'std', x.std(), x.shape, k.dtype)
===
print(x)
print(k, z, w)
===
print(f"{x.mean():>10.3f}|{z!r}|{n=}")
===
print(hist, params, run)
===
print(df)
===
json.dumps({'z': z, 'w': w, 'l': [float(q) for q in x[:2]]})
===
pickle.loads(pickle.dumps([z, w]))
===
np.random.seed(0)
q = np.random.rand(3)
q
===
rng = np.random.default_rng(1)
noise = rng.normal(size=len(x))
y = y + noise
===
rng.integers(0, 10, 4)
===
idx = rng.permutation(len(x))
x[idx]
===
mask = x > z
x[mask].sum(), mask.sum()
===
x[x < 0] = 0
===
y = np.where(x > 0, x, -x)
===
order = np.argsort(-y)
y[order]
===
vals, cnt = np.unique(k, return_counts=True)
dict(zip(vals, cnt))
===
n = len(x)
===
n += 1
np.zeros(n)
===
n = k[0]
list(range(n))
===
w = np.float32(w)
===
w, b = 0.5, 0.25
===
w, b = b, w
===
lr = lr / 2 if loss < 1 else lr * 2
lr
===
if loss > 0.5:
    status = 'high'
    w = 0
else:
    status = 'low'
status, w
===
try:
    x[100]
except IndexError as error:
    msg = str(error)
msg
===
try:
    r = 1 / (n - n)
except ZeroDivisionError as error:
    r = repr(error)
finally:
    z = 1.0
r
===
raise ValueError(f'bad {n}')
===
x[100]
===
undefined + 1
===
assert n > 100, 'small'
===
x @ np.ones(3)
===
np.linalg.inv(np.zeros((2, 2)))
===
int('q')
===
x.foo
===
for i, (p, q) in enumerate(zip(x, y)):
    if p > q:
        break
i
===
it = iter(x)
next(it), next(it)
del it
===
g = (q * 2 for q in x)
next(g)
===
next(g)
===
q = deque(maxlen=2)
for i in x: q.append(i)
list(q)
===
D = {}
for i, q in enumerate(x):
    D[i] = q
D[0], len(D)
===
D = {int(i): x[i] for i in k}
max(D, key=D.get)
===
x0 = 1.0
for _i in range(20):
    x0 = x0 - (x0 ** 2 - 2) / (2 * x0)
x0
===
out = np.empty(5)
for i in range(5):
    out[i] = i ** 2 * w
out
===
out = np.zeros((2, 3), int)
out[0] = k[:3]
out
===
acc = x.copy()
for i in range(1, len(acc)):
    acc[i] += acc[i - 1]
acc
===
with np.printoptions(precision=2):
    print(x)
===
global_step = globals().get('global_step', 0) + 1
global_step
===
def train(steps):
    global w
    for i in range(steps):
        w -= lr * w
    return w
train(3)
===
def summary(a, *rest, sep=' ', **opts):
    return sep.join(str(q) for q in (a, *rest, *opts.values()))
summary(n, 'a', sep='-', t=len(x))
===
summary(n, z)
===
@functools.lru_cache
def fib(i): return i if i < 2 else fib(i - 1) + fib(i - 2)
fib(20)
===
fib(n) + w
===
sorted([(q, i) for i, q in enumerate(y)])[0]
===
tuple(x[:2]) + (z,)
===
isinstance(z, float), isinstance(x, np.ndarray), isinstance(n, int)
===
z.is_integer() if isinstance(z, float) else z
===
round(z, 2), abs(w), divmod(n, 2), z ** 2
===
x.tolist()[:2], k.tolist()
===
x.dtype, x.shape, x.ndim, x.size, x.T.shape, x.nbytes
===
k[0] in (1, 2), z == w, n in [3, 4]
===
str(z), repr(w), f'{n:03d}' if isinstance(n, int) else ''
===
'%.3f' % z, '{:.1e}'.format(w)
===
X = np.c_[np.ones(len(x)), x]
beta = np.linalg.lstsq(X, y, rcond=None)[0]
beta
===
beta, *rest = np.polyfit(x, y, 1)
beta
===
H = np.histogram(x, bins=3)
H[0]
===
x = np.append(x, z)
===
x = x[:-1] if len(x) > 4 else x
===
y = y[:len(x)] if len(y) > len(x) else np.resize(y, len(x))
===
S = [M, M.T]
S[1][0, 0] = 5
M[0, 0]
===
first, *others = hist or [0.0]
first
===
h1 = hist
h1.append(0.0)
h1 is hist
===
h1 = hist[:]
h1 == hist
""".strip().split("\n===\n")
