"""Python's functions that go over a lazy array in a cell: a loop in the graph, or Python's own, but no graph of each element."""

import warnings

import numpy as np
import pytest

import tensormagic as tm

START = "%%tensor -q\nx = np.random.default_rng(0).normal(size=2000)\nX = x[:1800].reshape(600, 3)\nn = np.arange(2000)"
IN_THE_GRAPH = {
    "what a mask selects": "sum(x[x > 0])",
    "of squares": "sum(x * x, 2.5)",
    "truth values": "sum(x > 0)",
    "integers": "sum(n[5:900])",
    "rows": "sum(X)",
    "single precision": "sum(x.astype(np.float32))",
    "nothing": "sum(x[x > 50])",
    "a few": "sum(x[:3], np.float32(1))",
    "a list of squares": "sum([v * v for v in x])",
    "two arrays": "sum(a * b for a, b in zip(x, n))",
    "by index": "sum(x[k] * n[k] for k in range(len(x)))",
    "the smallest": "min(abs(v) for v in x)",
    "a mean": "np.mean([v**2 for v in x])",
    "any": "any(v > 9 for v in x)",
    "differences": "np.array([x[k + 1] - x[k] for k in range(len(x) - 1)])",
}
PYTHONS = {
    "reduced": "functools.reduce(lambda a, b: a if a > b else b, x)",
    "mapped": "np.array(list(map(lambda v: v**2 if v > 0 else 0.0, x)))",
    "a condition": "sum(v for v in x if v > 0)",
    "a count": "len([v for v in x if v > 2])",
    "texts": "' '.join(f'{v:.3f}' for v in x)",
    "numbers and places": "{k: v > 0 for k, v in enumerate(x)}[7]",
    "a class of Python's": "len(collections.Counter(n % 3))",
}


def wanted(text):
    """Python's value."""
    space = {"np": np}
    exec(START.partition("\n")[2] + "\nimport functools, collections", space)
    with warnings.catch_warnings(action="ignore"):
        return eval(text, space)


def same(found, want):
    if isinstance(want, str):
        assert found == want
        return
    assert np.asarray(found).dtype == np.asarray(want).dtype
    tolerance = 1e-5 if np.asarray(want).dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("text", IN_THE_GRAPH.values(), ids=IN_THE_GRAPH)
def test_what_a_loop_has_stays_in_the_graph(notebook, text):
    notebook.ok(START)
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        notebook.ok(f"%%tensor\ngot = {text}")
    if isinstance(notebook["got"], tm.Tensor):
        assert len(str(notebook["got"].graph).splitlines()) < 60
    same(notebook.ok("got").value, wanted(text))


@pytest.mark.parametrize("text", PYTHONS.values(), ids=PYTHONS)
def test_what_has_no_loop_is_pythons_where_it_would_take_long(notebook, monkeypatch, text):
    monkeypatch.setattr("tensormagic.capture.limits.PATIENCE", 0.02)
    notebook.ok(START)
    notebook.ok("import functools, collections")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        notebook.ok(f"%%tensor\ngot = {text}")
    assert any(issubclass(w.category, tm.PlainRunWarning) for w in told)
    same(notebook["got"], wanted(text))


def test_elements_alone_stay_lazy(notebook):
    notebook["x"] = np.arange(300.0)
    notebook.ok("%%tensor\nparts = list(x * 2)\npairs = dict(enumerate(x * 3))")
    assert isinstance(notebook["parts"][7], tm.Tensor)
    assert isinstance(notebook["pairs"][7], tm.Tensor)


@pytest.mark.parametrize(
    "text",
    [
        "sum(x * w)",
        "sum((x * w)[x > 0])",
        "sum(v * w for v in x)",
        "sum(np.outer(x, x) * w)[0]",
        "sum([w * v for v in x[2:]])",
    ],
)
def test_gradients_go_through(notebook, text):
    x = notebook["x"] = np.random.default_rng(1).normal(size=50)
    notebook["w"] = 1.5
    notebook.ok(f"%%tensor --grad w\nloss = {text}\nloss")
    want = eval(text, {"np": np, "x": x, "w": 1.0})
    np.testing.assert_allclose(float(notebook["grad_w"]), want, rtol=1e-12)


@pytest.mark.parametrize("level", ["exact", "stable"])
def test_functions_and_compiled_code(level):
    def total(x, n):
        kept = sum(x)
        for k in range(3):
            kept = kept + sum(x * k) if k % 2 else kept - sum(n)
        return kept

    x, n = np.random.default_rng(2).normal(size=100), np.arange(100)
    for made in (tm.tensor(total, math=level), tm.compile(total, x, n, math=level)):
        for _ in range(2):
            np.testing.assert_allclose(float(made(x, n)), total(x, n), rtol=1e-12)
    np.testing.assert_allclose(tm.grad(lambda x: sum(x * x))(x), 2 * x, rtol=1e-12)
