"""What a value says of its rewriting: each step, and what it bought, measured against many digits."""

import re
from itertools import pairwise

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.functions.accuracy import Measure, NotMeasuredError
from tensormagic.ir.rewriting.rule_text import AS_ACCURATE, LEVEL_WORDS
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tensormagic.ops.real_numbers import numbers, real_values, reals
from tests.transform import oracle

KEPT = "|".join((*LEVEL_WORDS.values(), AS_ACCURATE))
STEP = re.compile(rf"(\d+)\. ({KEPT}): ")


def errors_in(text):
    """The errors before and after that lines of an explanation tell."""
    found = re.findall(r"error (?:(\S+) -> )?(\S+) units in the last place", text)
    return [(float(a or b), float(b)) for a, b in found]


def test_each_step_tells_what_it_bought():
    x = tm.tensor(np.linspace(1e-12, 1e-6, 1000))
    said = (np.sqrt(1 + x) - 1).explain().splitlines()
    assert said[1].startswith("as written: sqrt(1 + ")
    (whole,) = errors_in(said[3])
    assert whole[0] > 1e5
    assert whole[1] < 4
    assert re.match(r"1\. never less accurate: f\(a\) - f\(b\) -> .*\(test_explaining.py line \d+\)", said[4])
    assert said[5].startswith("   sqrt(1 + ")
    ((before, after),) = errors_in(said[6])
    assert before > 1e5
    assert after < 4
    assert re.search(r"; it takes \d,000 more flops$", said[6])


def test_what_is_made_of_another_operand_is_not_taken_as_exact():
    x = tm.tensor(1e5 + np.random.default_rng(1).normal(size=500))
    said = (np.mean(x**2) - np.mean(x) ** 2).explain()
    step = next(part for part in said.split("\n") if "in the last place" in part and "in all" not in part)
    ((before, after),) = errors_in(step)
    assert before > 1e4
    assert after < 10


@pytest.mark.parametrize(
    "differ",
    [
        lambda x: np.sqrt(1 + x) - np.sqrt(x),
        lambda x: np.sqrt(x + 3) - np.sqrt(x - 1),
        lambda x: 1 / x - 1 / (x + 1),
        lambda x: np.arctan(x + 1) - np.arctan(x),
        lambda x: np.log(x + 2) - np.log(x),
        lambda x: np.cbrt(x + 1) - np.cbrt(x),
        lambda x: 1 / (x - 2) - 1 / x,
        lambda x: np.exp(1 / (x + 1)) - np.exp(1 / x),
    ],
)
def test_what_hangs_together_is_not_taken_as_exact(differ):
    """The roots of x and of x + 1, as they are rounded, are no two numbers of their own: the rule uses that their squares are 1 apart."""
    x = np.linspace(2e4, 5e4, 60)
    said = differ(tm.tensor(x)).explain()
    steps = [line for line in said.splitlines() if "in the last place" in line and "in all" not in line]
    (before, after), *_ = errors_in("\n".join(steps))
    assert before > 20
    assert after < 10


def test_overflow_is_an_error_without_end():
    x = tm.tensor(np.linspace(700, 900, 50))
    assert errors_in(np.log(np.sum(np.exp(x))).explain())[0][0] == np.inf


def test_steps_that_change_no_digits_are_one():
    x = tm.tensor(np.linspace(1, 2, 10))
    said = ((x * 1 - 0) * np.log(1 + x * 1) * 1).explain(measure=True).splitlines()
    steps = [line for line in said if STEP.match(line)]
    levels = [STEP.match(line)[2] for line in steps]
    assert "same digits" in levels
    assert all(a != "same digits" or b != "same digits" for a, b in pairwise(levels))
    assert [int(STEP.match(line)[1]) for line in steps] == list(range(1, len(steps) + 1))


def test_nothing_is_measured_where_nobody_asks():
    x = tm.tensor(np.linspace(0, 1, 10))
    said = np.log(1 + np.exp(x)).explain(measure=False)
    assert "in the last place" not in said
    assert "operations" not in said
    assert "log1p(exp(x)) -> softplus(x)" in said


def test_rules_within_loops_say_that_they_are_not_measured():
    def looped(x):
        for _ in range(40):
            x = x - 0.1 * np.log(1 + np.exp(x))
        return x

    said = tm.tensor(looped)(tm.tensor(np.linspace(0.1, 1, 5))).explain()
    assert "error not measured: within a loop or a branch" in said
    assert "loop cannot be computed with more digits" in said


def test_many_steps_are_told_without_being_measured():
    x = tm.tensor(np.linspace(0.1, 1, 5))
    y = x
    for k in range(60):
        y = y + np.log(1 + x * (k + 0.5)) * np.sin(y)
    said = y.explain()
    assert said.count("log(1 + x) -> log1p(x)") == 60
    assert "the same work" not in said


def test_large_inputs_are_cut_where_a_sum_reads_all_of_them():
    x = tm.tensor(np.random.default_rng(0).normal(size=(300, 200)))
    said = (np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)).explain()
    assert "axes cut to 16" in said


def closed(value):
    found = session.close_over([value.node], use_values=False)
    return found.graph, [session.value_of(leaf) for leaf in found.leaves]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_errors_are_those_of_the_oracle(dtype):
    values = np.abs(oracle.finite_samples(dtype, 64, 3))
    x = tm.tensor(values)
    graph, given = closed(np.log(1 + x) * np.tanh(x) - np.sqrt(x))
    (result,) = graph.results
    measured = Measure(graph, given, 10).errors(result, result, whole=True)
    found = oracle.values_of(graph, given)
    worst = max(
        oracle.ulps(v, t, dtype)
        for v, t in ((v, oracle.truth(graph, [oracle.mp.mpf(float(p))])) for v, p in zip(found, values, strict=True))
        if t is not None
    )
    assert measured.before == measured.after == pytest.approx(worst)


@pytest.mark.parametrize("name", sorted(n for n in oracle.TRUE if registry[n].kind == "pointwise"))
def test_real_numbers_of_ops_are_those_of_the_oracle(name):
    op = registry[name]
    mp = numbers()
    points = oracle.samples(np.float64, 40, op.arity, 5)
    finite = np.all(np.isfinite(points), axis=0)
    points = [p[finite][-40:] for p in points]
    if name == "where":
        points[0] = points[0] > 0
    node = op(*(constant(p) for p in points))
    found = real_values(node, [reals(p) for p in points], int)
    for k, point in enumerate(zip(*points, strict=True)):
        try:
            true = oracle.TRUE[name](*(bool(v) if isinstance(v, np.bool_) else oracle.mp.mpf(float(v)) for v in point))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if isinstance(true, bool):
            assert found[k] == true
        elif mp.isfinite(true):
            assert abs(found[k] - mp.mpf(true)) <= abs(true) * mp.mpf(10) ** -80, point


def test_what_is_no_real_number_is_not_measured():
    z = tm.tensor(np.array([1 + 2j, 3 - 1j]))
    graph, given = closed(np.exp(z))
    with pytest.raises(NotMeasuredError, match="no floating-point number"):
        Measure(graph, given, 1).errors(graph.results[0], graph.results[0], whole=True)
    x = tm.tensor(np.eye(3))
    graph, given = closed(np.linalg.inv(x))
    with pytest.raises(NotMeasuredError, match="cannot be computed with more digits"):
        Measure(graph, given, 1).errors(graph.results[0], graph.results[0], whole=True)
    with pytest.raises(NotMeasuredError, match="takes longer than a view may"):
        Measure(graph, given, -1).errors(graph.results[0], graph.results[0], whole=True)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda x: np.log(1 + np.exp(x)), "no overflow"),
        (lambda x: np.sum(np.log(1 + np.exp(2 * x - 3))), "no overflow"),
        (lambda x: np.log(np.sum(np.exp(x))), "no overflow"),
        (lambda x: np.exp(x) / np.sum(np.exp(x)), "no overflow"),
        (lambda x: np.sqrt(x + 1) - np.sqrt(x), ""),
        (lambda x: np.log(1 + x * 1e-9), ""),
    ],
    ids=["softplus", "within", "logsumexp", "softmax", "a difference", "log1p"],
)
def test_a_step_that_gains_no_digits_here_tells_its_reason(value, reason):
    said = value(tm.tensor(np.linspace(0.5, 4, 60))).explain().splitlines()
    told = [line for line in said if "what the rule is for: " in line]
    assert any(reason in line for line in told) if reason else not told
    for line in told:
        ((before, after),) = errors_in(line)
        assert after >= before / 2
        assert "->" in line or ", as before" in line


def text_of(value) -> str:
    """What a value is, as it was written, in its explanation."""
    return next(line for line in value.explain().splitlines() if line.startswith("as written"))


def test_products_and_sizes_are_written_as_numpy_has_them():
    rng = np.random.default_rng(0)
    m, v, b = (tm.tensor(rng.normal(size=s)) for s in ((6, 3), (3,), (6,)))
    soft = lambda z: np.log(1 + np.exp(z))  # noqa: E731
    for value, said in (
        (np.mean(soft(m @ v + b)), r"sum\(log\(1 \+ exp\(\w+ @ \w+ \+ \w+\)\)\) / 6$"),
        (soft((m * 2) @ v).sum(), r"exp\(\(\w+ \* 2\) @ \w+\)"),
        (soft(m.T @ b).sum() / len(b), r"@ \w+\)\)\) / 6$"),
        (soft(v @ v), r"exp\(\w+ @ \w+\)"),
        (soft(np.outer(v, b)).sum(), r"outer\(|\* "),
        (soft(-(m @ v)).mean(), r"exp\(-\(\w+ @ \w+\)\)"),
    ):
        assert re.search(said, text_of(value)), text_of(value)
        assert "contract" not in value.explain()
        assert "astype(size)" not in value.explain()


def test_units_and_flops_are_explained_where_they_stand():
    x = tm.tensor(np.linspace(-2, 2, 50))
    said = np.log(1 + np.exp(x)).explain()
    assert "a unit in the last place is the distance from the result to the next float" in said
    assert "flops: additions" in said
    assert "flops: additions" not in (x + 1).explain()
