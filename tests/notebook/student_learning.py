"""Cells as students write them: data that are read, clustered, fitted and classified."""

LEARNING = {
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
    "knn": """
pred = []
for q in X2[:60]:
    d = np.sqrt(((X2 - q) ** 2).sum(1))
    nn = np.argsort(d)[1:6]
    pred.append(y2[nn].mean())
h = np.array(pred)
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
}
