"""Rules at special values: exact ones keep every bit; stable ones lose no number, and say where they have a value for nan."""

# tests named elsewhere

import runpy
from pathlib import Path

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.transform.rewriting import THEMES, rewrite, rules
from tests.transform.example import Example
from tests.transform.examples import EXAMPLES
from tests.transform.specials import arrays, changed, lost, other_bits, outcome, pairs


def at_first(wrong, columns, before, after):
    """What is at the first sample of those that are wrong."""
    return f"at {[c[wrong][0] for c in columns]} the pattern has {before[wrong][0]!r}, the new form {after[wrong][0]!r}"


PATTERNS = [r for r in rules("stable") if r.pattern is not None]


@pytest.mark.parametrize("rule", [r for r in PATTERNS if r.level == "exact"], ids=str)
def test_exact_patterns_keep_every_bit(rule):
    for _, columns, before, after in pairs(rule, 400):
        wrong = other_bits(before, after)
        assert not wrong.any(), (
            f"{at_first(wrong, columns, before, after)}: an exact rule keeps every bit; put it under @stable"
        )


@pytest.mark.parametrize("rule", [r for r in PATTERNS if r.level == "stable"], ids=str)
def test_stable_patterns_lose_no_number_and_say_what_they_extend(rule):
    seen = False
    for _, columns, before, after in pairs(rule, 2000):
        if before.dtype.kind not in "fc":
            continue
        wrong = lost(before, after)
        assert not wrong.any(), (
            f"{at_first(wrong, columns, before, after)}: a stable rule keeps every number; put the new form behind a bound, "
            "as where(absolute(x) < bound, new, old), or the rule under @real"
        )
        other = changed(before, after)
        seen |= bool(other.any())
        assert rule.extends or not other.any(), (
            f"{at_first(other, columns, before, after)}: say so, by a third part of the rule, "
            'as in `yield old, new, extending("a value where x is infinite")`'
        )
    assert seen or not rule.extends, (
        f"the rule says that it is {rule.extends}, but no sample has a value for nan: leave that out"
    )


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.level != "real"], ids=lambda e: e.rule)
def test_procedures(example: Example):
    (rule,) = next(getattr(m, example.rule) for m in THEMES if hasattr(m, example.rule))
    mild = "linalg.py" in rule.source
    for dtype in (np.float32, np.float64):
        own = example.parameters(dtype)
        node = example.build(*own)
        found = rule.apply(node)
        if found is None:
            continue
        graphs = [Graph(tuple(own), (n,)) for n in (node, found.node)]
        for seed in range(25):
            values = arrays(example, dtype, seed, mild=mild)
            before, after = (outcome(g, values) for g in graphs)
            if isinstance(before, str) or isinstance(after, str):
                assert rule.extends or (isinstance(before, str) and isinstance(after, str) and before == after)
            elif rule.level == "exact":
                assert before.dtype.kind != "f" or not other_bits(before, after).any(), values
            elif before.dtype.kind == "f":
                assert not lost(before, after).any(), (values, before, after)
                assert rule.extends or not changed(before, after).any(), (values, before, after)


def test_the_root_of_minus_zero_keeps_its_sign_under_no_absolute_value():
    from tensormagic.ir.type import array, symbol
    from tensormagic.ops.leaf import parameter
    from tensormagic.ops.scalars.scalar import absolute, sqrt

    x = parameter(0, array(np.float64, symbol("n0")))
    graph = rewrite(Graph((x,), (1 / absolute(sqrt(x)),)), "exact").graph
    assert outcome(graph, [np.array([-0.0, -0.0])])[0] == np.inf


@pytest.mark.parametrize("start", range(0, 180, 30))
def test_drawn_expressions_keep_every_bit(start):
    path = Path(__file__).resolve().parents[2] / "scripts" / "exact_specials.py"
    script = runpy.run_path(str(path))
    with np.errstate(all="ignore"):
        found = [f for seed in range(start, start + 30) if (f := script["compared"](seed)) is not None]
    assert [f[3] for f in found if f[3]] == []
    assert sum(f[0] for f in found) > 10_000


SOFTMAX_ROWS = (
    (np.inf, 1.0, 2.0),
    (180.0, np.inf, -3.0),
    (-np.inf, 1.0, 2.0),
    (-np.inf, -np.inf, -np.inf),
    (np.inf, np.inf, 0.0),
    (np.nan, np.inf, 0.0),
    (1.0, 2.0, 3.0),
)
SOFTMAX_FORMS = {
    "softmax": lambda v, axis, m=np: m.exp(v) / m.exp(v).sum(axis=axis, keepdims=True),
    "softmax of differences": lambda v, axis, m=np: (
        (e := m.exp(v - v.max(axis=axis, keepdims=True))) / e.sum(axis=axis, keepdims=True)
    ),
    "log_softmax": lambda v, axis, m=np: v - m.log(m.exp(v).sum(axis=axis, keepdims=True)),
}


@pytest.mark.parametrize("form", SOFTMAX_FORMS)
def test_rows_with_infinities_are_what_they_are_in_numpy(form, tier):
    import tensormagic as tm

    for dtype in (np.float32, np.float64)[: 1 if tier == "numba" else 2]:
        for axis in (1, 0)[: 1 if tier == "numba" else 2]:
            rows = np.array(SOFTMAX_ROWS, dtype)
            values = rows if axis == 1 else rows.T.copy()
            with np.errstate(all="ignore"):
                expected = SOFTMAX_FORMS[form](values, axis)
                found = np.asarray(tm.tensor(lambda v, axis=axis: SOFTMAX_FORMS[form](v, axis))(values))
            assert found.dtype == dtype
            known = np.isfinite(expected) | np.isneginf(expected)
            np.testing.assert_allclose(found[known], expected[known], rtol=1e-5)
            assert not np.isfinite(found[values == np.inf]).any()
            assert np.isnan(found[np.isnan(values)]).all()


def test_scipys_softmax_is_nan_for_all_of_a_row_with_an_infinity():
    import scipy.special

    import tensormagic as tm

    values = np.array(SOFTMAX_ROWS)
    for name in ("softmax", "log_softmax"):
        function = getattr(scipy.special, name)
        with np.errstate(all="ignore"):
            expected, found = (
                function(values, axis=1),
                np.asarray(tm.tensor(lambda v, call=function: call(v, axis=1))(values)),
            )
        np.testing.assert_allclose(found, expected, rtol=1e-14)
