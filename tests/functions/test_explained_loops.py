"""What is done to loops as a whole is told of as rules are: by its name, its line, and what it bought."""

import re
from itertools import pairwise

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import leveled
from tensormagic.functions.explaining import iterations_of
from tensormagic.transform.loops import loop_rules
from tensormagic.transform.loops.loop_rules import OF_LOOPS
from tensormagic.transform.rewriting import rewrite
from tensormagic.transform.rewriting.replay import replayed

X = np.linspace(0.1, 1, 300)
A = np.random.default_rng(0).normal(size=(40, 40))


def running_sum(x):
    out = np.zeros(len(x))
    total = 0.0
    for k in range(len(x)):
        total += x[k]
        out[k] = total
    return out


def running_product(x):
    y = np.zeros(300)
    y[0] = x[0]
    for k in range(1, 300):
        y[k] = y[k - 1] * x[k]
    return y


def running_sum_of_functions(x):
    out = np.zeros(len(x))
    total = 0.0
    for k in range(len(x)):
        total += np.exp(x[k])
        out[k] = np.log(total)
    return out


def mapped(x):
    y = np.zeros(300)
    for k in range(300):
        y[k] = np.exp(x[k]) * 2
    return y


def mapped_by_sums(x):
    y = np.zeros(300)
    for k in range(300):
        y[k] = x[k] / 3 + k
    return y


def added_up(x):
    s = 0.0
    for k in range(len(x)):
        s += np.exp(x[k])
    return s


def beside_what_is_carried(x):
    s = 0.0
    out = np.zeros(len(x))
    for k in range(len(x)):
        s = 0.5 * s + np.exp(x[k])
        out[k] = s
    return out


def handed_on(x):
    y = np.zeros(300)
    for k in range(1, 300):
        y[k] = 0.9 * y[k - 1] + x[k]
    return y


def last_one(x):
    y = np.zeros(300)
    s = 0.0
    for k in range(300):
        s = 0.25 * s + x[k]
        y[k] = s * s
    return y[-1]


def nobody_reads(x):
    y, s = np.zeros(300), 0.0
    for k in range(300):
        s = 0.75 * s + x[k]
        y[k] = s + k
    return s


def two_chains(x):
    s = t = 0.0
    for k in range(300):
        s = 0.5 * s + x[k]
    for k in range(300):
        t = 0.7 * t - x[k]
    return s * t


CASES = {
    running_sum: loop_rules.SCANNED,
    running_product: loop_rules.SCANNED,
    running_sum_of_functions: loop_rules.SCANNED_FUNCTIONS,
    mapped: loop_rules.AT_ONCE,
    mapped_by_sums: loop_rules.AT_ONCE_ROUNDED,
    added_up: loop_rules.SUMMED,
    beside_what_is_carried: loop_rules.HOISTED,
    handed_on: loop_rules.HANDED_ON,
    last_one: loop_rules.ONE_READ,
    nobody_reads: loop_rules.NARROWED,
    two_chains: loop_rules.JOINED,
}
WITHOUT_LOOPS = {running_sum, running_product, running_sum_of_functions, mapped, mapped_by_sums, added_up}
each = pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)


@each
def test_what_is_done_to_a_loop_is_a_step_with_its_line(function):
    said = tm.tensor(function)(tm.tensor(X)).explain()
    found = re.search(
        rf"^\d+\. (same digits|never less accurate|as accurate, by other last digits): {re.escape(CASES[function].name)} \(([^)]*)\)",
        said,
        re.MULTILINE,
    )
    assert found, said
    lines = range(function.__code__.co_firstlineno, function.__code__.co_firstlineno + 12)
    told = [int(line) for line in re.findall(r"test_explained_loops.py line (\d+)", found[2])]
    assert told, said
    assert all(line in lines for line in told), said
    values = tm.tensor(function)(X)
    np.testing.assert_allclose(values, function(X), rtol=1e-13)


@each
def test_what_it_bought_is_told(function):
    said = tm.tensor(function)(tm.tensor(X)).explain()
    step = said.partition(CASES[function].name)[2].partition("\n2. ")[0]
    if function in WITHOUT_LOOPS:
        assert "300 fewer iterations of loops" in step or "299 fewer iterations of loops" in step
        assert re.search(r"in all: .*(300|299) fewer iterations", said)
    elif function is two_chains:
        assert "300 fewer iterations of loops" in step
    else:
        assert "read and written" in step


@each
def test_nothing_is_told_where_the_theme_is_off(function):
    whole, less = (rewrite(tm.trace(function, X), leveled("stable", off)) for off in ("", "loops"))
    assert CASES[function].name in {f.rule.name for f in whole.notable}
    assert not [f for f in less.fired if f.rule in OF_LOOPS]


@each
def test_steps_lead_from_what_was_captured_to_what_runs(function):
    graph = tm.trace(function, X)
    found = rewrite(graph)
    steps = list(replayed(graph, found.fired, found.graph))
    assert steps[-1][1].results == found.graph.results
    assert [f for told, _ in steps for f in told] == found.notable
    for (_, before), (told, after) in pairwise([((), graph), *steps]):
        if told and told[0].rule in OF_LOOPS and told[0].results:
            assert before.results != after.results


@pytest.mark.parametrize("function", [running_sum, mapped, added_up, beside_what_is_carried, handed_on])
def test_gradients_tell_it_too(function):
    graph = tm.trace(tm.grad(lambda x: np.sum(function(x) ** 2)), X)
    found = [f for f in rewrite(graph).notable if f.rule in OF_LOOPS]
    assert found
    assert all(f.sites for f in found)


def test_loops_over_matrices():
    def products(a):
        out = np.zeros((40, 40))
        for k in range(40):
            out[k] = a[k] @ a
        return out

    said = tm.tensor(products)(tm.tensor(A)).explain()
    assert loop_rules.AT_ONCE.name in said
    assert re.search(r"40 fewer iterations of loops, -\S+ .?B read and written", said)


def test_loops_in_loops_count_at_each_iteration():
    def twice(x):
        s = np.zeros(20)
        for k in range(20):
            t = 0.0
            for j in range(30):
                t += np.exp(x[j]) * k
            s[k] = t
        return s

    graph = tm.trace(twice, X)
    assert iterations_of(graph.results, graph.bind([X.shape])) == 20 + 20 * 30


def test_a_loop_in_a_branch():
    def chosen(x):
        if x[0] > 0:
            y = np.zeros(300)
            s = 0.0
            for k in range(300):
                s = 0.3 * s + x[k]
                y[k] = s
            return y[-1]
        return x[1]

    said = tm.tensor(chosen)(tm.tensor(X)).explain()
    assert loop_rules.ONE_READ.name in said or loop_rules.NARROWED.name in said, said
    np.testing.assert_allclose(tm.tensor(chosen)(X), chosen(X), rtol=1e-14)


def test_counters_are_not_told_of():
    def counted(x):
        s = 0.0
        for k in range(300):
            s = 0.5 * s + x[k]
        return s

    assert not [f for f in rewrite(tm.trace(counted, X)).notable if f.rule in OF_LOOPS]


def test_at_exact_what_keeps_all_bits_is_told():
    graph = tm.trace(running_sum, X)
    assert next(f.rule for f in rewrite(graph, "exact").notable if f.rule in OF_LOOPS) is loop_rules.SCANNED
    assert not [f for f in rewrite(tm.trace(mapped, X), "exact").notable if f.rule is loop_rules.AT_ONCE]


def test_names_are_told_apart():
    names = [(rule.name, rule.level) for rule in OF_LOOPS]
    assert len(set(names)) == len(names)
    defined = [v for v in vars(loop_rules).values() if isinstance(v, loop_rules.Rule)]
    assert set(defined) == set(OF_LOOPS)
