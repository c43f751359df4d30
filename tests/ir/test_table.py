"""Which rules look at a node, and how often."""

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.driver import _Pass, rewrite_graph, rewrite_nodes
from tensormagic.ir.rewriting.table import Table
from tensormagic.ir.rewriting.within import ops_within, within
from tensormagic.ir.type import array, symbol
from tensormagic.ops.leaf import parameter
from tensormagic.ops.move import broadcast
from tensormagic.ops.scalars.scalar import absolute, add, cos, exp, log, log1p, multiply, negative, sin, sqrt, tanh
from tensormagic.transform.rewriting import rules
from tensormagic.transform.rewriting.notation import exact, stable

n = symbol("n0")
x, y = (parameter(k, array(np.float64, n)) for k in range(2))
row = parameter(2, array(np.float64, 1))


@exact
def signs(x: Node):
    yield negative(negative(x)), x


def counted(looked: list[Node], **options):
    def looks(node: Node) -> None:
        """Never anything."""
        looked.append(node)

    return exact(looks, **options)


@stable
def turned(x: Node, y: Node):
    yield exp(x) * log(1 + sqrt(-y)), tanh(x)


def test_a_pattern_looks_only_where_all_its_ops_are():
    table = Table(turned)
    assert table.at(exp(x) * log(1 + sqrt(-y))) == turned
    assert table.at(log(1 + sqrt(-y)) * exp(x)) == turned
    assert not table.at(exp(x) * log(1 + sqrt(y)))
    assert not table.at(exp(x) * log(1 + sin(-y)))
    assert not table.at(exp(-x) * log(1 + sqrt(y)))
    assert table.at(exp(x) * log(1 + sqrt(broadcast(-row, (n,))))) == turned


def test_a_rule_of_what_is_within_looks_only_where_it_is():
    looked: list[Node] = []
    table = Table(counted(looked, roots="add", within="cos sqrt"))
    near = x + multiply(y, negative(cos(x)))
    other = x + multiply(y, negative(sin(x)))
    rewrite_nodes([near, other], table)
    assert looked == [near]


def test_within_looks_through_broadcasts_and_ends_after_seven_levels():
    assert within(x + broadcast(cos(row), (n,))) & ops_within(["cos"])
    node = cos(x)
    for level in range(8):
        assert bool(within(add(node, y)) & ops_within(["cos"])) is (level < 7), level
        node = negative(node)


def test_within_of_a_chain_of_fifty_thousand():
    node = cos(x)
    for _ in range(50_000):
        node = tanh(node) + x
    assert not within(node) & ops_within(["cos"])
    assert within(node) & ops_within(["tanh"])


def test_a_second_table_does_not_look_again_where_nothing_matched():
    looked: list[Node] = []
    own, late = counted(looked), []
    graph = Graph((x,), (exp(sin(x)),))
    rewrite_graph(graph, Table([*own, *signs]), Table([*counted(late), *own, *signs]))
    assert len(looked) == len(set(looked)) == len(late) == 3


def test_a_second_table_looks_again_where_something_matched_and_was_not_used():
    u = 1 + x

    @stable
    def logarithm(x: Node):
        yield log(1 + x), log1p(x)

    @exact
    def doubles(x: Node):
        yield x + x, 2 * x

    graph = Graph((x,), (log(u) - u,))
    _, log_ = rewrite_graph(graph, Table(logarithm), Table([*logarithm, *doubles]))
    assert [w.rule.name for w in log_.withheld] == [logarithm[0].name]


@pytest.mark.parametrize("matches", [False, True])
def test_a_second_table_goes_through_the_graph_where_a_new_rule_matches(monkeypatch, matches):
    @exact
    def sines(x: Node):
        yield (exp(sin(x)), absolute(x)) if matches else (exp(exp(x)), absolute(x))

    graph, passes = Graph((x,), (exp(sin(x)),)), []
    gone_through = _Pass.normals_of
    monkeypatch.setattr(_Pass, "normals_of", lambda self, start: passes.append(start) or gone_through(self, start))
    new, log_ = rewrite_graph(graph, Table(signs), Table([*signs, *sines]))
    assert new.results == ((absolute(x),) if matches else graph.results)
    assert len(passes) == 1 + matches
    assert len(log_.fired) == matches


SHARED = (absolute(sin(log(1 + x))), sqrt(log(1 + x)) * (1 + x))


@pytest.mark.parametrize("results", [SHARED, SHARED[:1], SHARED[::-1], (negative(negative(SHARED[1])),)])
def test_two_tables_give_what_one_after_the_other_gives(results):
    @stable
    def logarithm(x: Node):
        yield log(1 + x), log1p(x)

    first, second, graph = Table([*logarithm, *signs]), Table([*signs, *logarithm]), Graph((x,), results)
    one_by_one = rewrite_graph(rewrite_graph(graph, first)[0], second)[0]
    assert rewrite_graph(graph, first, second)[0] == one_by_one


def test_a_table_is_passed_over_where_its_first_look_says_so():
    looked: list[Node] = []
    graph = Graph((x,), (exp(sin(x)),))
    rewrite_graph(graph, Table(counted(looked), lambda _: False))
    assert not looked


def test_results_that_are_read_alone_are_not_searched_again():
    looked: list[Node] = []

    @stable
    def logarithm(x: Node):
        yield log(1 + x), log1p(x)

    u = 1 + x
    own = counted(looked)
    (alone, _), _ = rewrite_nodes([absolute(sin(log(u))), sqrt(log(u)) * u], Table([*logarithm, *own]))
    assert alone is absolute(sin(log1p(x)))
    assert len(looked) == len(set(looked))


def test_rules_of_sums_that_look_far_are_told_what_for():
    """What most sums do not have is asked for before a rule looks at all operands of operands."""
    table = Table(rules("stable"))
    assert not [r.name for r in table.at(x + y * x) if r.within]
    assert [r.name for r in table.at(x - sin(x)) if r.within]
