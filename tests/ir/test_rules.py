"""Rules, matching and the driver, on rules of the test's own."""

import random

import numpy as np
import pytest

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting import driver, weights
from tensormagic.ir.rewriting.driver import rewrite_graph, rewrite_nodes
from tensormagic.ir.rewriting.rule_text import show
from tensormagic.ir.rewriting.rules import WILD, Constant, Positive, assuming, find, number
from tensormagic.ir.rewriting.table import Table
from tensormagic.ir.rewriting.weights import lighter
from tensormagic.ir.site import Site
from tensormagic.ir.type import Type, array, symbol
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, parameter
from tensormagic.ops.move import broadcast
from tensormagic.ops.regions.control import call, cond
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    cos,
    exp,
    log,
    log1p,
    maximum,
    multiply,
    negative,
    sin,
    sqrt,
    tanh,
    where,
)
from tensormagic.transform.rewriting.notation import exact, real, stable

n = symbol("n0")
x, y, z = (parameter(k, array(np.float64, n)) for k in range(3))
f32 = parameter(3, array(np.float32, n))


def rules(*groups: tuple) -> Table:
    return Table(r for g in groups for r in g)


def once(node: Node, *groups: tuple) -> Node:
    return rewrite_nodes([node], rules(*groups))[0][0]


@exact
def signs(x: Node):
    yield negative(negative(x)), x


@stable
def logarithm(x: Node):
    yield log(1 + x), log1p(x)


# matching -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [log(1 + x), log(x + 1), log(x + 1.0), log(add(np.float64(1), x))])
def test_constants_match_by_value_and_commutative_operands_in_either_order(node):
    assert once(node, logarithm) is log1p(x)


def test_replacements_have_the_dtype_of_what_they_replace():
    assert once(log(1 + f32), logarithm) is log1p(f32)
    assert once(log(np.float32(1) + f32), logarithm).type == f32.type


@pytest.mark.parametrize("node", [log(2 + x), log(-1 + x), log(x - 1), exp(1 + x), log(x + y)])
def test_other_nodes_do_not_match(node):
    assert once(node, logarithm) is node


def test_zero_and_minus_zero_differ():
    @exact
    def rule(x: Node):
        yield x + -0.0, x

    assert once(x + -0.0, rule) is x
    assert once(x + 0.0, rule) is not x


def test_broadcasts_are_looked_through():
    small = parameter(4, array(np.float64))
    (result,) = rewrite_nodes([log(broadcast(1 + small, (n,)))], rules(logarithm))[0]
    assert result is broadcast(log1p(small), (n,))


def test_a_variable_is_one_node():
    @exact
    def rule(x: Node):
        yield maximum(x, x), x

    assert once(maximum(x, x), rule) is x
    assert once(maximum(x, y), rule) is maximum(x, y)


def test_backtracking_finds_the_other_order():
    @real
    def rule(x: Node, y: Node):
        yield exp(x) * (x + y), y

    assert once((y + x) * exp(x), rule) is y
    assert once(exp(x) * (x + y), rule) is y


def test_annotations_restrict_variables():
    @exact
    def constants(x: Node, c: Constant):
        yield sin(x * c), x

    @exact
    def positive(p: Positive):
        yield absolute(p), p

    assert once(sin(x * 3), constants) is x
    assert once(sin(x * y), constants) is sin(x * y)
    assert once(absolute(exp(x) + y * y), positive) is absolute(exp(x) + y * y)
    assert once(absolute(exp(x) + sqrt(y)), positive) is exp(x) + sqrt(y)


def test_bool_variables_match_bools():
    @exact
    def rule(c: bool, x: Node):
        yield where(c, x, x), x

    assert once(where(x < y, z, z), rule) is z


def test_kinds_restrict_dtypes():
    @exact(kinds="iu")
    def rule(x: Node):
        yield x - x, 0

    whole = parameter(5, array(np.int32, n))
    assert once(whole - whole, rule) is broadcast(constant(np.int32(0)), (n,))
    assert once(x - x, rule) is x - x


def test_conditions_are_called_with_the_nodes_they_name():
    @exact
    def rule(x: Node, y: Node):
        yield x * y, x, lambda y: y.op is sin

    assert once(x * sin(z), rule) is x
    assert once(x * cos(z), rule) is x * cos(z)


def test_find_tells_which_node_each_part_is():
    bound, parts = find(logarithm[0].pattern, log(1 + x))
    assert bound == {"x": x}
    assert [node for _, node in parts] == [log(1 + x), 1 + x]
    assert [show(part) for part, _ in parts] == ["log(1 + x)", "1 + x"]


def test_a_scalar_stays_a_scalar():
    @exact
    def rule(x: Node):
        yield x * 1, x

    boxed = parameter(6, Type(np.dtype(float), (), "array"))
    assert once(boxed * 1, rule) is to_form(boxed, "scalar")  # NumPy gives a scalar for it, not an array


# text -----------------------------------------------------------------------------------------------------------------


def test_rules_are_named_by_their_text():
    @real
    def rule(x: Node, y: Node, c: Constant):
        yield (x + y) * c, x * c + y * c, assuming("c is finite")
        yield x - (y - x), -(x * -y)
        yield x / (y * x) ** 2, sin(x / 2)

    assert [r.name for r in rule] == [
        "(x + y) * c -> x * c + y * c",
        "x - (y - x) -> -(x * -y)",
        "x / (y * x) ** 2 -> sin(x / 2)",
    ]
    assert rule[0].assumptions == ("c is finite",)
    assert rule[0].source.startswith("test_rules.py:")
    assert int(rule[1].source.split(":")[1]) == int(rule[0].source.split(":")[1]) + 1


def test_numbers_of_all_dtypes_look_the_same():
    assert {number(constant(v)) for v in (1, 1.0, True, np.float32(1), np.int8(1))} == {"1.0"}
    assert show(constant(2.5)) == "2.5"


# the driver -----------------------------------------------------------------------------------------------------------


def test_rewriting_goes_bottom_up_and_repeats():
    twice = negative(negative(x))
    node = negative(negative(negative(negative(log(1 + twice)))))
    nodes, log_ = rewrite_nodes([node], rules(signs, logarithm))
    assert nodes == [log1p(x)]
    assert {f.rule.name for f in log_.fired} == {"-(-x) -> x", "log(1 + x) -> log1p(x)"}


def test_first_order_of_commutative_operands_wins():
    (a, b), _ = rewrite_nodes([exp(x * y), sin(y * x)], rules())
    assert a.args[0] is b.args[0] is x * y


def test_a_rule_that_makes_terms_heavier_does_not_fire():
    @exact
    def rule(x: Node, y: Node):
        yield x + y, y + x
        yield sin(x), cos(x) + cos(x)

    assert once(sin(x + y), rule) is sin(x + y)


def test_fuel_bounds_what_does_not_end():
    @exact(fuel=1)
    def rule(x: Node):
        yield sin(x), sin(x + 1)

    (result,), log_ = rewrite_nodes([sin(x)], rules(rule))
    assert len(log_.fired) == len(topological([sin(x)]))
    assert result.op is sin


def test_fuel_survives_a_circle():
    @exact(fuel=3)
    def rule(x: Node):
        yield sin(x), cos(x)
        yield cos(x), sin(x)

    assert once(sin(x), rule) in {sin(x), cos(x)}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (x, x + y, True),
        (log1p(x), log(1 + x), True),
        (log(1 + x), log1p(x), False),
        (y + x, x + y, False),
        (x * x, x * y, False),  # it needs x twice, which may be the heavier one
        (-(x * y), (-x) * y, True),
        ((-x) * y, -(x * y), False),
    ],
)
def test_lighter(new, old, expected):
    assert lighter(new, old) is expected


def test_lighter_looks_at_each_shared_node_once(monkeypatch):
    weighed = []
    weigh = weights.weight
    monkeypatch.setattr(weights, "weight", lambda node: weighed.append(node) or weigh(node))
    deep = x
    for _ in range(7):  # 2 ** 7 ways down to x
        deep = sin(deep) + cos(deep)
    assert not lighter(deep * y, deep * x)
    assert lighter(x, deep)
    assert len(weighed) < 200


def test_withheld_where_an_absorbed_operand_has_another_use():
    u = 1 + x
    (result,), log_ = rewrite_nodes([x * log(u) / (u - 1)], rules(logarithm))
    assert result is x * log(u) / (u - 1)
    (withheld,) = log_.withheld
    assert withheld.shared is u
    assert "add has another use" in str(withheld)
    assert log_.fired == []


def test_a_pass_in_which_nothing_more_fires_is_not_made(monkeypatch):
    made = []
    normals = driver._Pass.normals_of
    monkeypatch.setattr(driver._Pass, "normals_of", lambda self, start: made.append(self) or normals(self, start))
    a, u = parameter(73, array(np.float64)), 1 + x
    mixed = x * log(u) / (u - 1)
    (result,), log_ = rewrite_nodes([mixed + log(1 + a)], rules(logarithm))
    assert result is mixed + log1p(a)
    assert len(log_.fired) == len(log_.withheld) == 1
    assert len(made) == 1  # what is withheld is asked for again at its node alone


def test_each_result_is_read_on_its_own():
    x = parameter(71, array(np.float64))  # of its own: nodes are shared, and so are the lines of other tests
    u = 1 + x
    found, log_ = rewrite_nodes([log(u), u], rules(logarithm))
    assert found == [log1p(x), u]
    assert log_.withheld == []
    mixed = x * log(u) / (u - 1)
    found, log_ = rewrite_nodes([log(u), mixed, tanh(log(u)), u * y], rules(logarithm))
    assert found == [log1p(x), mixed, tanh(log1p(x)), u * y]
    assert [w.shared for w in log_.withheld] == [u]
    assert [str(f) for f in log_.fired] == ["log(1 + x) -> log1p(x)"]


def test_results_that_are_read_together():
    u = 1 + x
    (first, _), log_ = rewrite_nodes([log(u), u], rules(logarithm), apart=False)
    assert first is log(u)
    assert [w.shared for w in log_.withheld] == [u]


@pytest.mark.parametrize("seed", range(40))
def test_a_normal_form_does_not_depend_on_other_results(seed):
    draw = random.Random(seed)
    pool = [x, y, 1 + x, exp(x)]
    for _ in range(9):
        a, b = draw.choice(pool[1:]), draw.choice(pool)
        pool.append(draw.choice([log(1 + b), log(a), 1 + b, -a, a * b, a - 1, exp(a), tanh(a), maximum(a, b)]))
    results = draw.sample(pool[4:], 4)
    known = rules(logarithm, signs)
    alone = [rewrite_nodes([r], known)[0][0] for r in results]
    assert rewrite_nodes(results, known)[0] == alone


def test_not_withheld_for_uses_that_absorb_it_too():
    @stable
    def root(x: Node):
        yield tanh(1 + x), absolute(x)

    u = 1 + x
    assert rewrite_nodes([log(u) + tanh(u)], rules(logarithm, root))[0] == [log1p(x) + absolute(x)]


def test_not_withheld_for_comparisons():
    u = 1 + x
    assert rewrite_nodes([where(u < y, log(u), z)], rules(logarithm))[0] == [where(u < y, log1p(x), z)]


def test_what_hands_digits_on_is_looked_through():
    u = 1 + x
    for other in (tanh(-u), maximum(tanh(absolute(u)), y), tanh(where(x < y, u, z))):
        (result,), log_ = rewrite_nodes([log(u) * other], rules(logarithm))
        assert result is log(u) * other
        assert [w.shared for w in log_.withheld] == [u]
    assert rewrite_nodes([log(u), -u], rules(logarithm), apart=False)[0] == [log(u), -u]


def test_all_uses_or_none_though_one_was_expected_to_go():
    @stable(roots="tanh")
    def never_lighter(node: Node) -> Node:
        """tanh(u) -> what is not used, because it is heavier."""
        return exp(exp(exp(node.args[0].args[0])))

    u = 1 + x
    (result,), log_ = rewrite_nodes([log(u) * tanh(u)], rules(logarithm, never_lighter))
    assert result is log(u) * tanh(u)
    assert log_.fired == []
    assert str(log_.withheld[0]).endswith("add has another use")


def test_a_part_whose_rounding_does_not_show_may_be_shared():
    @stable
    def quotient(x: Node):
        yield 1 / (1 + exp(x)), tanh(x)

    assert rewrite_nodes([1 / (1 + exp(x)) * exp(x)], rules(quotient))[0] == [tanh(x) * exp(x)]


def test_results_of_a_graph_inside_are_used():
    graph = Graph((x,), (log(1 + x), 1 + x))
    assert rewrite_graph(graph, rules(logarithm), apart=False)[0] == graph
    assert rewrite_graph(graph, rules(logarithm))[0] == Graph((x,), (log1p(x), 1 + x))
    p = parameter(0, array(np.float64, n))
    inner = Graph((p,), (log(1 + p), 1 + p))
    outer = Graph((p,), tuple(call(inner, [tanh(p)])))
    assert rewrite_graph(outer, rules(logarithm))[0] == outer


def test_not_withheld_once_the_other_use_is_gone():
    @exact
    def rule(x: Node):
        yield sin(sin(x)), x

    u = 1 + x
    (result,), log_ = rewrite_nodes([log(u) + sin(sin(u)) * 0 + u], rules(logarithm, rule))
    assert log_.withheld  # u itself is still read
    (result,), log_ = rewrite_nodes([maximum(log(u), where(tanh(u) < y, z, z))], rules(logarithm, choice))
    assert result is maximum(log1p(x), z)
    assert log_.withheld == []


@exact
def choice(c: bool, x: Node):
    yield where(c, x, x), x


def test_procedures_are_withheld_too():
    @stable(roots="tanh")
    def procedure(node: Node) -> Node:
        """tanh(u) -> u's operand."""
        return node.args[0].args[0]

    u = exp(x)
    assert once(tanh(u), procedure) is x
    assert once(tanh(u) + u, procedure) is tanh(u) + u
    assert procedure[0].name == "tanh(u) -> u's operand"


def test_assumptions_are_listed_with_the_users_line():
    @real
    def rule(x: Node):
        yield x / x, 1, assuming("x != 0", "x is finite")

    node = tanh(x) / tanh(x)
    site.record(node, Site("In[3]", 1, 2))
    _, log_ = rewrite_nodes([node], rules(rule))
    assert log_.assumptions == ["x != 0 and x is finite: x / x -> 1, In[3] line 2"]
    assert str(log_.fired[0]) == "x / x -> 1 (In[3] line 2)"


def test_sites_are_inherited_with_the_rule_in_the_role():
    w = parameter(7, array(np.float64, n))
    node = log(1 + w)
    site.record(node, Site("In[4]", 1, 7))
    (result,), log_ = rewrite_nodes([exp(node)], rules(logarithm))
    assert [s.role for s in site.of(result.args[0])] == ["rewritten by log(1 + x) -> log1p(x)"]
    assert log_.fired[0].sites == (Site("In[4]", 1, 7),)


def test_rebuilt_nodes_keep_their_sites():
    w = parameter(8, array(np.float64, n))
    node = tanh(negative(negative(w)))
    site.record(node, Site("In[5]", 1, 1))
    (result,), _ = rewrite_nodes([node], rules(signs))
    assert result is tanh(w)
    assert site.of(result) == (Site("In[5]", 1, 1),)


def test_graphs_inside_nodes_are_rewritten():
    from tensormagic.ops.regions.control import CALL

    p = parameter(0, array(np.float64, n))
    inner = Graph((p,), (negative(negative(p)),))
    new, log_ = rewrite_graph(Graph((p,), call(inner, [tanh(p)])), rules(signs))
    assert new.results[0].op is CALL
    assert new.results[0]["graph"] == Graph((p,), (p,))
    assert len(log_.fired) == 1


def test_fifty_thousand_links():
    h = x
    for k in range(25_000):
        h = negative(negative(multiply(h, y))) if k % 100 == 0 else multiply(h, y)
        h = h + z
    (result,), log_ = rewrite_nodes([h], rules(signs))
    assert len(log_.fired) == 250
    assert len(topological([result])) == 50_003
    assert rewrite_nodes([result], rules(signs))[0] == [result]


def test_time_is_linear_in_nodes(monkeypatch):
    """Counted, not measured: how often rules are tried."""
    counts = []
    for links in (1000, 2000):
        tried = 0
        h = x
        for _ in range(links):
            h = tanh(h * y)

        def count(node: Node) -> None:
            nonlocal tried
            tried += 1

        watch = exact(roots="tanh multiply")(count)
        rewrite_nodes([h], rules(watch))
        counts.append(tried)
    assert counts == [2000, 4000]


def test_wild_nodes_are_no_part_of_replacements():
    built = [f.node for f in [r.apply(log(1 + x)) for r in logarithm] if f]
    assert all(n.op is not WILD for b in built for n in topological([b]))


def test_a_graph_in_many_regions_is_rewritten_once():
    flag = parameter(0, array(np.bool_))
    inner = parameter(1, array(np.float64, n))
    ways = [Graph((flag, inner), (negative(negative(inner)) * k,)) for k in (2.0, 3.0)]
    for _ in range(16):  # each two levels deeper stands in two others: 2**16 places
        choices = [cond(flag, *order, [flag, inner])[0] for order in (ways, ways[::-1])]
        ways = [Graph((flag, inner), (choice,)) for choice in choices]
    _, log = rewrite_graph(ways[0], rules(signs))
    assert sum(f.rule.name == "signs" for f in log.fired) <= 4
