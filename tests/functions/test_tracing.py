"""Graphs by hand: tracing, text, rewriting, compiling ahead of time, and what lazy arrays say of themselves."""

import pickle
import re

import numpy as np
import pytest

import tensormagic as tm


def loss(x, w, b=0.0):
    return np.mean(np.log(1 + np.exp(-(x @ w + b))))


def test_types_as_text_and_as_examples():
    graph = tm.trace(loss, "float64[n, 3]", "float64[3]")
    assert [str(p.type) for p in graph.parameters] == ["float64[n0, 3]", "float64[3]"]
    assert str(tm.trace(loss, "float32[n, k]", "float32[k]", "float").results[0].type) == "float32"
    example = tm.trace(loss, np.ones((5, 3)), np.ones(3), 1.0)
    assert [str(p.type) for p in example.parameters] == ["float64[n0, n1]", "float64[n1]", "float"]
    assert tm.trace(lambda x, axis: x.sum(axis), "float64[n, m]", 0).results[0].type.ndim == 1


def test_containers_of_types():
    graph = tm.trace(lambda p: p["a"] @ p["b"][0], {"a": "float64[n, k]", "b": ["float64[k]"]})
    assert len(graph.parameters) == 2


def test_shapes_that_do_not_fit():
    with pytest.raises(tm.ShapeError):
        tm.trace(loss, "float64[5, 3]", "float64[4]")
    with pytest.raises(tm.DTypeError):
        tm.trace(lambda x: x & 1, "float64[n]")


def test_text_round_trips():
    graph = tm.trace(loss, "float64[n, 3]", "float64[3]", 1.5)
    assert tm.parse(str(graph)) == graph
    with pytest.raises(tm.ParseError):
        tm.parse("graph(%0: float64[n]) {\n  nonsense\n}")


def test_rewriting_by_level():
    graph = tm.trace(lambda x: np.log(1 + x), "float64[n]")
    assert tm.rewrite(graph, "exact").results[0].op.name == "log"
    assert tm.rewrite(graph, "stable").results[0].op.name == "log1p"


def test_compiled():
    f = tm.compile(loss, "float64[n, 3]", "float64[3]")
    rng = np.random.default_rng(0)
    for n in (4, 9):
        x, w = rng.normal(size=(n, 3)), rng.normal(size=3)
        assert np.isclose(f.run(x, w), loss(x, w), rtol=1e-13)
        assert f(x, w) == f.run(x, w)
    assert len(f.kernels) >= 1
    assert "def kernel" in f.code
    for wrong in ((np.ones((4, 2)), np.ones(3)), (np.ones((4, 3), np.float32), np.ones(3))):
        with pytest.raises(tm.GuardError):
            f.run(*wrong)
    with pytest.raises(TypeError):
        f.run(np.ones((4, 3)))
    with pytest.raises(ValueError, match="device must be one of auto, cpu, gpu, not 'tpu'"):
        tm.compile(loss, "float64[n, 3]", "float64[3]", device="tpu")


def test_compiled_with_containers_and_names_from_outside():
    outside = np.arange(3.0)
    f = tm.compile(lambda p: {"y": p[0] * outside, "n": p[1]}, ("float64[3]", "float"))
    found = f.run((np.ones(3), 2.0))
    assert found["y"].tolist() == [0, 1, 2]
    assert found["n"] == 2.0


def test_what_a_lazy_array_says(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")
    x = tm.tensor(np.linspace(0, 1, 5))
    y = np.log(1 + np.exp(x))
    assert [n.op.name for n in y.graph.nodes if n.args][-1] == "log"
    assert "softplus" in str(y.optimized) or "logaddexp" in str(y.optimized)
    assert "def kernel" in y.code()
    assert re.match(r"\d+ steps, with broadcasts and casts; \d+ after rewriting, in 1 kernel\n", y.explain())
    assert y.explain().endswith("and 1 step that only tidies up")
    assert repr(y.explain()) == str(y.explain())  # a notebook shows lines
    assert repr(y.code("numpy")).startswith("import numpy as np\n")
    assert y.time() > 0
    y.numpy()
    assert len([n for n in y.graph.nodes if n.args]) >= 3, "the graph reaches down to the inputs, computed or not"
    assert "def kernel" in y.code("cuda")
    with pytest.raises(ValueError, match="not for 'rocm'"):
        y.code("rocm")


def logistic_loop(x):
    s = np.zeros(5)
    for k in range(40):
        if np.sum(s) > 3:  # noqa: SIM108 (the branch is what is tested)
            s = s + np.log(1 + x * s)
        else:
            s = s * 0.5 + np.log(1 + np.exp(x)) / (1 + k) + 0.3
    return s


def test_rules_within_loops_and_branches_have_their_lines():
    first = logistic_loop.__code__.co_firstlineno
    said = tm.tensor(logistic_loop)(tm.tensor(np.linspace(0.1, 1, 5))).explain().splitlines()
    fired = [line for line in said if re.match(r"\d+\. never less accurate: .*log1p", line)]
    assert [line.rpartition(" ")[2] for line in fired] == [f"{first + 6})", f"{first + 6})", f"{first + 4})"]


def test_a_graph_that_was_rewritten_or_parsed_runs(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    x = np.array([1e-18, 0.5])
    graph = tm.trace(lambda x: np.log(1 + x), "float64[n]")
    expected = {"exact": np.log(1 + x), "stable": np.log1p(x)}
    for level, value in expected.items():
        for made in (graph, tm.parse(str(graph))):
            np.testing.assert_array_equal(tm.compile(made, math=level).run(x), value)
    rewritten = tm.compile(tm.rewrite(graph, "stable"), math="exact")  # as it was rewritten, and no further
    np.testing.assert_array_equal(rewritten.run(x), expected["stable"])
    assert rewritten.math == "exact"
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rewritten)).run(x), expected["stable"])
    several = tm.compile(tm.trace(lambda x, w: {"s": x + 1, "p": x @ w}, "float64[n, 3]", "float64[3]"))
    found = several.run(np.ones((4, 3)), np.ones(3))
    assert [v.tolist() for v in found] == [np.full((4, 3), 2.0).tolist(), [3.0] * 4]
    with pytest.raises(tm.GuardError, match="float32"):
        rewritten.run(x.astype(np.float32))
    with pytest.raises(tm.TensorError, match="types of its parameters"):
        tm.compile(graph, "float64[n]")


@pytest.mark.parametrize("text", ["float64[n", "float64[n;3]", "flaot64[2, 3]"])
def test_what_is_meant_for_a_type_and_is_none(text):
    with pytest.raises(tm.ParseError, match=r"x: '.*' is no type"):
        tm.trace(lambda x: x, text)
    with pytest.raises(tm.ParseError, match="is no type"):
        tm.compile(lambda x: x, text)


def test_levels_and_names_of_rules_that_there_are_not():
    with pytest.raises(ValueError, match="exact, real, stable, not 'fast'"):
        tm.rewrite(tm.trace(lambda x: x, "float64[n]"), "fast")
    with pytest.raises(ValueError, match="exact, real, stable, not 'fast'"):
        tm.tensor(lambda x: x, math="fast")
    with pytest.raises(KeyError, match="no rules were added as 'nobody'"):
        tm.rules.remove("nobody")
