"""Every rule against its level: the same bits, never less accurate than what it replaces, or true where it says so."""

# tests named elsewhere

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.transform.rewriting import THEMES, rules, rules_in
from tests.transform.example import Example
from tests.transform.examples import EXAMPLES
from tests.transform.oracle import (
    EDGES,
    instances,
    losses,
    mp,
    real_losses,
    run,
    same_bits,
    samples,
    truth,
    ulps,
)

PATTERNS = [r for r in rules("real") if r.pattern is not None]
DTYPES = {"exact": (np.float64, np.float32, np.int64, np.int8, np.uint8, bool), "stable": (np.float64, np.float32)}
COUNT = 40
WORSE = "put the new form behind a bound, as where(absolute(x) < bound, new, old) (terms.behind for a difference), or the rule under @real"


def of_level(level: str) -> list[Rule]:
    return [r for r in PATTERNS if r.level == level]


def cases(rule: Rule, dtype: object, seed: int = 3) -> list:
    found = []
    for instance in tried(rule, dtype):
        parameters = instance.before.parameters
        columns = [samples(p.type.dtype, COUNT, len(parameters), seed)[k] for k, p in enumerate(parameters)]
        length = min(map(len, columns))
        found.append((instance, [c[-length:] for c in columns]))
    return found


def tried(rule: Rule, dtype: object) -> list:
    """The instances for a dtype; none where an op does not take it."""
    try:
        return instances(rule, dtype)
    except (TypeError, OverflowError):
        return []


@pytest.mark.parametrize("rule", of_level("exact"), ids=str)
def test_exact_rules_keep_every_bit(rule):
    checked = 0
    for dtype in DTYPES["exact"]:
        for instance, values in cases(rule, dtype):
            before, after = run(instance, values)
            wrong = ~same_bits(before, after)
            assert not wrong.any(), (
                f"at {[v[wrong][0] for v in values]} the pattern has {before[wrong][0]!r}, the new form {after[wrong][0]!r}: "
                "an exact rule keeps every bit; put it under @stable"
            )
            checked += len(before)
    assert checked >= COUNT


@pytest.mark.share(4)
@pytest.mark.parametrize("rule", of_level("stable"), ids=str)
def test_stable_rules_are_never_less_accurate(rule):
    checked = 0
    for dtype in DTYPES["stable"]:
        for instance, values in cases(rule, dtype):
            found = losses(instance, values, dtype)
            assert not found, f"{found[0]}, and at {len(found) - 1} more points: {WORSE}"
            checked += len(values[0])
    assert checked >= 2 * COUNT


@pytest.mark.share(4)
@pytest.mark.parametrize("rule", of_level("real"), ids=str)
def test_real_rules_are_true_where_their_assumptions_hold(rule):
    checked = 0
    for seed in range(3, 9):  # where few points are as assumed, more are drawn
        for instance, values in cases(rule, np.float64, seed) if checked < COUNT // 4 else ():
            found, tried_points = real_losses(instance, values, np.float64)
            assert found == []
            checked += tried_points
    assert checked >= COUNT // 4


# procedures -----------------------------------------------------------------------------------------------------------


def procedure(example: Example) -> Rule:
    (rule,) = next(getattr(m, example.rule) for m in THEMES if hasattr(m, example.rule))
    return rule


def test_every_procedure_has_an_example():
    have = {id(procedure(e)) for e in EXAMPLES}
    assert [r.name for m in THEMES for r in rules_in(m) if r.pattern is None and id(r) not in have] == []


def changed(example: Example, dtype: object) -> tuple[Graph, Graph] | None:
    parameters = example.parameters(dtype)
    before = example.build(*parameters)
    found = procedure(example).apply(before)
    if found is None:
        return None
    assert found.node.types == before.types
    return Graph(tuple(parameters), (before,)), Graph(tuple(parameters), (found.node,))


def value(graph: Graph, values: list) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(evaluate_graph(graph, values)[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_procedures_keep_to_their_level(example):
    rule = procedure(example)
    assert rule.level == ("exact" if rule.level == "exact" else example.level)
    graphs = changed(example, np.float32)
    assert graphs is not None
    before, after = graphs
    assert before != after
    parameters = example.parameters(np.float64)
    truth64 = Graph(tuple(parameters), (example.build(*parameters),))
    for seed in range(5):
        values = example.values(np.float32, seed)
        if rule.level == "exact":
            check_bits(before, after, values, edges=example.rule != "casts")
        else:
            close(before, after, truth64, values)


def check_bits(before: Graph, after: Graph, values: list, *, edges: bool) -> None:
    r = np.random.default_rng(0)
    if edges:
        values = [
            np.where(r.random(v.shape) < 0.3, r.choice(np.asarray(EDGES, v.dtype), v.shape), v).astype(v.dtype)
            for v in values
        ]
    assert same_bits(value(before, values), value(after, values)).all()


def close(before: Graph, after: Graph, exact: Graph, values: list) -> None:
    """The single precision result is held against the double precision one of the graph that was replaced."""
    wide = value(exact, [v.astype(np.float64) for v in values])
    old, new = value(before, values), value(after, values)
    size = np.abs(wide).max()
    lost = np.abs(new - wide).max()
    with np.errstate(all="ignore"):
        had = np.abs(old - wide).max()
    assert np.isfinite(lost)
    assert lost <= 8 * np.finfo(np.float32).eps * size or lost <= 2 * had


# the oracle itself ----------------------------------------------------------------------------------------------------


def test_the_oracle_sees_a_wrong_rule():
    from tensormagic.ops.scalars.scalar import exp, log, log1p, sqrt
    from tensormagic.transform.rewriting.notation import exact, stable

    @stable
    def worse(x: Node):
        yield log1p(x), log(1 + x)
        yield sqrt(x * x), x

    @exact
    def inexact(x: Node):
        yield x + 0, x
        yield exp(log(x)), x

    for rule in worse:
        assert any(losses(i, v, np.float64) for i, v in cases(rule, np.float64))
    for rule in inexact:
        assert any(not same_bits(*run(i, v)).all() for i, v in cases(rule, np.float64))


@pytest.mark.parametrize(
    ("x", "value", "error"), [(1.0, 1.0, 0.0), (1.0, 1 + 2**-52, 1.0), (1e308, np.inf, np.inf), (3.0, np.nan, np.inf)]
)
def test_errors_are_counted_in_ulp(x, value, error):
    assert ulps(value, mp.mpf(x), np.float64) == error
    assert ulps(np.inf, mp.mpf(10) ** 400, np.float64) == 0


def test_truth_is_none_where_there_is_no_real_number():
    from tensormagic.ir.type import array, symbol
    from tensormagic.ops.leaf import parameter
    from tensormagic.ops.scalars.scalar import log

    p = parameter(0, array(np.float64, symbol("n0")))
    assert truth(Graph((p,), (log(p),)), [mp.mpf(-1)]) is None
    assert abs(truth(Graph((p,), (log(p),)), [mp.mpf(2)]) - mp.log(2)) < mp.mpf(10) ** -600


@pytest.mark.parametrize("iterations", [2, 40])
def test_accurate_forms_are_found_in_loops(iterations):
    def added(w):
        s = w * w
        for _ in range(iterations):
            s = np.log(1 + s) + w * 0.5
        return s

    w = np.full(3, 1e-17)
    np.testing.assert_allclose(tm.tensor(added)(w), 0.5e-17 * iterations, rtol=1e-14)
