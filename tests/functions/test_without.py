"""Themes of rewriting and fusion, switched off by name: in functions, in compiled code, in settings, and as part of every key."""

# tests named elsewhere

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import GROUPS, THEMES, leveled, parted
from tensormagic.transform.rewriting import THEMES as MODULES
from tensormagic.transform.rewriting import choices, rewrite, theme

X = np.array([1e-18, 1e-9, 1.0])


def log_of_sum(x):
    return np.log(1 + x)


def test_names_are_those_of_the_themes():
    assert [*map(theme, MODULES)] == list(GROUPS["rules"])
    assert set(THEMES) == {*map(theme, MODULES), "loops", "fusion"}


def test_a_level_is_one_text():
    assert leveled("stable", "fusion, algebra,fusion") == "stable without algebra,fusion"
    assert parted("real without fusion") == ("real", frozenset({"fusion"}))
    assert leveled("real without fusion") == "real"
    with pytest.raises(ValueError, match=r"constants.*can be left out, not 'algebr'"):
        leveled("stable", "algebr")


@pytest.mark.parametrize("name", GROUPS["rules"])
def test_a_theme_that_is_left_out_makes_no_rewrite(name):
    sources = {m.__name__.rpartition(".")[2]: m.__file__ for m in MODULES}
    texts = "np.sqrt(1 + x) - 1, np.log(1 + x), x * 1, np.sum(-x), np.sin(x) - x, np.exp(x)[0], x / 8, x * (np.zeros_like(x) + 2.0)"
    graph = tm.trace(eval(f"lambda x: ({texts})", {"np": np}), X)
    whole, less = rewrite(graph), rewrite(graph, f"stable without {name}")
    file = sources[name].rpartition("/")[2]
    assert not [f for f in less.fired if f.rule.source.startswith(f"{file}:")]
    if name in {"algebra", "explog", "differences", "remainders", "reductions"}:
        assert [f for f in whole.fired if f.rule.source.startswith(f"{file}:")]


def test_functions_compiled_code_and_settings():
    plain = np.log(1 + X)
    accurate = np.log1p(X)
    f = tm.tensor(log_of_sum, without="stability")
    np.testing.assert_array_equal(f(X), plain)
    np.testing.assert_array_equal(tm.tensor(log_of_sum)(X), accurate)
    np.testing.assert_allclose(tm.compile(log_of_sum, X, without="stability")(X), plain, rtol=1e-15)
    np.testing.assert_allclose(tm.compile(log_of_sum, X)(X), accurate, rtol=1e-15)
    before = tm.config.math
    with tm.config.using(without="stability"):
        assert tm.config.without == "differences,explog,identities,ranges,remainders,triples"
        np.testing.assert_array_equal(tm.tensor(log_of_sum)(X), plain)
        with tm.config.using(math="real"):  # goes on
            np.testing.assert_array_equal(tm.tensor(log_of_sum)(X), plain)
    assert tm.config.math == before
    assert not tm.config.without
    np.testing.assert_array_equal(tm.tensor(log_of_sum)(X), accurate)
    with pytest.raises(ValueError, match="left out"):
        tm.config.using(without="nothing").__enter__()
    assert tm.config.math == before


def test_the_setting_is_part_of_what_decides_a_value():
    f = tm.tensor(log_of_sum)
    np.testing.assert_array_equal(f(X), np.log1p(X))
    tm.config.without = "stability"
    try:
        assert (
            choices()[0]
            == choices("stable")[0]
            == "stable without differences,explog,identities,ranges,remainders,triples"
        )
        np.testing.assert_array_equal(f(X), np.log(1 + X))
        np.testing.assert_array_equal(f(X), np.log(1 + X))
        real = tm.tensor(log_of_sum, math="real")
        np.testing.assert_array_equal(real(X), np.log(1 + X))
    finally:
        tm.config.without = ""
    np.testing.assert_array_equal(f(X), np.log1p(X))
    np.testing.assert_array_equal(real(X), np.log1p(X))


def test_without_fusion_each_function_is_a_kernel_of_its_own():
    def f(x, y):
        return np.exp(x * y) + np.tanh(x) * y

    fused, apart = tm.compile(f, X, X), tm.compile(f, X, X, without="fusion")
    assert len(fused.kernels) == 1
    assert len(apart.kernels) >= 4
    np.testing.assert_allclose(apart(X, X), fused(X, X), rtol=1e-15)
    g = tm.compile(lambda x, y: tm.grad(lambda x: np.sum(f(x, y)))(x), X, X, without="fusion,rules")
    np.testing.assert_allclose(g(X, X), X * np.exp(X * X) + X / np.cosh(X) ** 2, rtol=1e-12)
