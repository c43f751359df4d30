"""Rules at special values: exact ones keep every bit; stable ones lose no number, and say where they have a value for nan."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.transform.rewriting import THEMES, rewrite, rules
from tests.transform.examples import EXAMPLES, Example
from tests.transform.specials import arrays, changed, lost, other_bits, outcome, pairs

TOLD = ("noise", "nan for all of a row")
"""Where numbers are lost, and the display says so: matrices that are nearly singular, and rows with an infinity."""

PATTERNS = [r for r in rules("stable") if r.pattern is not None]


@pytest.mark.parametrize("rule", [r for r in PATTERNS if r.level == "exact"], ids=str)
def test_exact_patterns_keep_every_bit(rule):
    for _, columns, before, after in pairs(rule, 400):
        wrong = other_bits(before, after)
        assert not wrong.any(), [(c[wrong][0], before[wrong][0], after[wrong][0]) for c in columns]


@pytest.mark.parametrize("rule", [r for r in PATTERNS if r.level == "stable"], ids=str)
def test_stable_patterns_lose_no_number_and_say_what_they_extend(rule):
    seen = False
    for _, columns, before, after in pairs(rule, 2000):
        if before.dtype.kind not in "fc":
            continue
        wrong = lost(before, after)
        assert not wrong.any(), [(c[wrong][0], before[wrong][0], after[wrong][0]) for c in columns]
        other = changed(before, after)
        seen |= bool(other.any())
        assert rule.extends or not other.any(), [(c[other][0], before[other][0], after[other][0]) for c in columns]
    assert seen == bool(rule.extends)


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
                assert not lost(before, after).any() or any(t in rule.extends for t in TOLD), (values, before, after)
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
