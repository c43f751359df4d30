"""Notebooks that are hard to export, each a list of cells; what they bind is compared with what their program binds."""

from __future__ import annotations

START = "%load_ext tensormagic\nimport numpy as np\nimport tensormagic as tm"

HARD: dict[str, list[str]] = {
    "loops and stores": [
        START,
        "n, k, x0 = 30, 9.0, np.linspace(0, 1, 4)\ncopy = x0",
        "%%tensor -q\npath = np.zeros(n)\npath[0] = k\nfor t in range(1, n):\n    path[t] = path[t - 1] * 0.9\nx0[1:] *= 2\npath.sum()",
    ],
    "a branch of Python": [
        START,
        "flag, x = True, np.arange(3.0)",
        "%%tensor\nif flag:\n    y = x + 1\nelse:\n    z = x - 1",
    ],
    "a branch keeps what was bound": [
        START,
        "x, y = np.arange(3.0), 5.0",
        "%%tensor --grad x\nif x.sum() > 100:\n    y = x.sum()\ntotal = y * x.sum()",
    ],
    "lines of IPython": [
        START,
        "%config Completer.use_jedi = False\nx = np.arange(3.0)\nif True:\n    %precision 3",
        "# a comment comes first\n%%tensor --show none\n%precision 4\nimport math\ny = np.sin(x) * math.pi  # kept\n\ny * 2",
        "%tensor y.sum()",
    ],
    "names that clash": [
        START.replace("import tensormagic as tm", "tm = 3"),
        "cell_3, value_3, t, kind_of = 1.0, 2.0, 'kept', 7.0",
        "%%tensor --grad cell_3\nfor t in range(3):\n    _hidden = cell_3 * t\nvalue_3 * cell_3 ** 2 + kind_of",
    ],
    "functions, strings and imports inside": [
        START,
        "x, scale = np.arange(1.0, 4.0), 2.0",
        (
            '%%tensor --grad x\nfrom math import tau\n\ndef scaled(v):\n    """Two\n    lines."""\n    return v * scale * tau\n\n'
            'title = """of\n  many lines"""\nhalf = lambda v: v / 2\nloss = half(scaled(x)).sum()'
        ),
        "after = scaled(1.0), half(1.0), len(title)",
    ],
    "lists and generators of the notebook": [
        START,
        "rng, seen, sizes = np.random.default_rng(3), [], {'a': 2.0}",
        "%%tensor\nnoise = rng.normal(size=4)\nseen.append(1.5)\nsizes['b'] = noise.sum()\nnoise * 2",
        "%%tensor\nmore = rng.normal(size=2)",
    ],
    "a cell called by its name": [
        START,
        "X, y, w, b = np.eye(3)[:, :2], np.array([1.0, -1.0, 1.0]), np.zeros(2), 0.0",
        "%%tensor objective --grad w,b\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss",
        (
            'step, history = tm.value_and_grad(objective, ("w", "b")), []\nfor _ in range(4):\n    value, (gw, gb) = step(w=w, b=b)\n'
            "    w -= 0.5 * gw\n    b -= 0.5 * gb\n    history.append(value)\nlast = objective(w=w), objective()"
        ),
    ],
    "containers": [
        START,
        "params = {'w': np.arange(3.0), 'parts': (np.ones(2), 2.0)}\nguess = [1.0, 2.0]",
        (
            "%%tensor --grad params,guess\nfirst = np.sum(np.exp(params['w'])) * params['parts'][1]\n"
            "first + params['parts'][0].sum() * guess[0] * guess[1]"
        ),
    ],
    "of, output and levels": [
        START,
        "m = np.array([-1000.0, 0.0, 2.0])\nsmall = np.array([1.0, 2.0], 'float32')",
        "%%tensor --grad m --of total -o losses,total\nlosses = np.log(1 + np.exp(-m))\ntotal = losses.sum()\nunused = total * 2\nlosses",
        "%%tensor --math exact\nexact = np.log(1 + small)",
        "%%tensor --dtype float32\nnarrow = np.exp(m / 1000)",
    ],
    "functions of functions": [
        START,
        "def huber(e):\n    if abs(e) < 1:\n        return e**2 / 2\n    return abs(e) - 0.5\n\nerrors = np.linspace(-3, 3, 7)",
        "values, slopes = tm.vmap(tm.value_and_grad(huber))(errors)",
        (
            "curved = tm.hessian(lambda v: np.sum(v**3))(errors)\n"
            "@tm.tensor\ndef cube(v):\n    return np.log(1 + np.exp(v)) ** 3\ncubes = cube(errors)"
        ),
    ],
    "a loop of steps inside": [
        START,
        "X, y, w, b, lr = np.eye(3)[:, :2], np.array([1.0, -1.0, 1.0]), np.zeros(2), 0.0, 0.5",
        (
            "%%tensor -o w,b,history\ndef cost(w, b): return np.mean(np.log(1 + np.exp(-y * (X @ w + b))))\nhistory = np.zeros(5)\n"
            "for k in range(5):\n    history[k], (gw, gb) = tm.value_and_grad(cost, (0, 1))(w, b)\n    w = w - lr * gw\n    b = b - lr * gb"
        ),
    ],
    "a while loop": [
        START,
        "a = 2.0",
        "%%tensor root --grad a\nz = a\nwhile abs(z * z - a) > 1e-12:\n    z = (z + a / z) / 2\nz",
        "slope = tm.grad(root)\nroots = [slope(a=v) for v in (0.25, 2.0)]",
    ],
    "tables and objects": [
        START,
        (
            "import pandas as pd\nfrom types import SimpleNamespace\ndata, w = SimpleNamespace(X=np.eye(3), k=2.0), np.ones(3)\n"
            "table = pd.DataFrame({'u': [1.0, 2.0, 3.0], 'v': [3.0, 4.0, 5.0]})"
        ),
        "%%tensor --grad w\nq = np.sum(table['u'] * w) + data.k * (data.X @ w).sum()\nq",
    ],
    "numbers that change": [
        START,
        "n, s = 3, 1.5",
        "%%tensor\nn += 1\ns *= n\nt: float = s / n\nn, s, t;",
        "%%tensor\na = 1; b = a + s; b * 2",
        '%%tensor\nlabel = f"""a\n b"""\nc = s * 2\n"""its value\n   is text"""',
    ],
    "one function after another": [
        START,
        "w = np.array([1.0, 2.0])",
        "%%tensor f --grad w\nnp.sum(w ** 3)",
        "w = w - 0.1 * grad_w",
        "%%tensor g --grad w\ndef scaled(v, by=2.0):\n    return v * by\nnp.sum(scaled(w) ** 2)",
        "h = tm.grad(g)(w), f(w), f(2 * w), tm.value_and_grad(f)(w), scaled(3.0)",
    ],
    "levels of rewriting, and plain": [
        START,
        "%config TensorMagics.math = 'exact'\nx = np.array([1e-17, 1.0])",
        "%%tensor\ny = np.log(1 + x)",
        "%config TensorMagics.math = ''",
        "%%tensor\nstable = np.log(1 + x)",
        "%%tensor --plain --grad x\nsquares = (x ** 2).sum()\nsquares",
    ],
}
