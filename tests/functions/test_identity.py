"""What the user has named is a value of its own: no literal is it, and no other value that holds the same number."""

import operator
import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ops.leaf import constant

FORMS = {
    "float": float,
    "float64": np.float64,
    "float32": np.float32,
    "complex": complex,
    "without axes": lambda v: np.array(v),
    "array": lambda v: np.array([v, v]),
    "list": lambda v: [v, v],
}


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_equal_values_are_told_apart(make):
    a, b = tm.tensor(make(2.0)), tm.tensor(make(2.0))
    value = (a * b * 2.0).sum().real
    assert np.all(np.asarray(value.grad(a)) == 4)
    assert np.all(np.asarray(value.grad(b)) == 4)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_a_literal_is_no_value(make):
    w = tm.tensor(make(2.0))
    assert np.all(np.asarray((w**2).sum().real.grad(w)) == 4)
    one = tm.tensor(make(1.0))
    slope = (1.0 / (1.0 + np.exp(-one))).sum().real.grad(one)
    assert np.asarray(slope).real == pytest.approx(np.exp(-1) / (1 + np.exp(-1)) ** 2, rel=1e-6)


def test_one_array_made_lazy_twice_is_two_values():
    data = np.array([1.0, 2.0])
    a, b = tm.tensor(data), tm.tensor(data)
    assert (a * b).sum().grad(a).tolist() == [1, 2]
    assert ((a * a).sum()).grad(data).tolist() == [2, 4]
    with pytest.raises(DifferentiationError, match="several inputs"):
        (a * b).sum().grad(data)


def test_an_array_that_has_changed_is_no_input_any_more():
    data = np.array([1.0, 2.0])
    value = (tm.tensor(data) ** 2).sum()
    data[0] = 5
    with pytest.raises(DifferentiationError, match="unchanged since"):
        value.grad(data)


def test_repeated_derivatives():
    x = tm.tensor(1.0)
    found = [2 * x**3 + 8]
    for _ in range(4):
        found.append(found[-1].grad(x))
    assert [float(v) for v in found] == [10, 6, 12, 12, 0]


def test_a_gradient_is_a_value():
    x = tm.tensor(np.ones(2))
    g = (3 * x).sum().grad(x)
    assert (g * 3.0 * np.full(2, 3.0)).sum().grad(g).tolist() == [9, 9]


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like"])
def test_arrays_that_are_made_alike(name):
    x = tm.tensor(np.ones(2))
    make = {"full_like": lambda v: np.full_like(v, 3.0)}.get(name, getattr(np, name))
    a, b = make(x), make(x)
    assert ((a - 1) * (b + 2)).sum().grad(a).tolist() == (np.asarray(b) + 2).tolist()
    assert ((a - 1) * (b + 2)).sum().grad(b).tolist() == (np.asarray(a) - 1).tolist()


def test_arrays_of_the_array_namespace():
    xp = tm.numpy
    for make in (
        lambda: xp.zeros(2),
        lambda: xp.asarray([0.0, 0.0]),
        lambda: xp.full(2, 0.0),
        lambda: xp.linspace(0, 0, 2),
    ):
        a, b = make(), make()
        assert xp.sum((a - 1) * (b + 2)).grad(a).tolist() == [2, 2]


def test_an_expression_that_is_there_twice_is_told():
    x = tm.tensor(np.array([1.0, 2.0]))
    u, v = x * 2, x * 2
    with pytest.warns(UserWarning, match="the same expression"):
        ((u - 1) * (v + 2)).sum().grad(u)
    del v
    assert (u**2).sum().grad(u).tolist() == [4, 8]


def test_what_is_made_of_constants_alone_is_refused():
    three = wrap(constant(3.0))
    with pytest.raises(DifferentiationError, match="constants alone"):
        (three * 3.0).grad(three)


def test_functions_of_equal_numbers():
    assert tm.grad(lambda a, b: a * b * 2.0, (0, 1))(2.0, 2.0) == (4.0, 4.0)
    assert tm.grad(lambda p: p[0] * p[1] * 2.0)([2.0, 2.0]) == [4.0, 4.0]
    assert tm.grad(lambda p: p["a"] * p["b"])({"a": 2.0, "b": 2.0}) == {"a": 2.0, "b": 2.0}
    k = tm.tensor(2.0)
    assert float(tm.grad(lambda x: x * x * k)(k)) == 8
    assert tuple(map(float, tm.jvp(lambda x: x * x * k * 1.0, (k,), (k,)))) == (8, 16)
    assert tm.jvp(lambda x: x * x * 1.0, (1.0,), (1.0,)) == (1, 2)
    assert tm.vjp(lambda x: x * x * 1.0, 1.0)[1](1.0) == (2,)
    assert tm.hessian(lambda x: x * x * x * 1.0)(1.0) == 6
    assert tm.value_and_grad(lambda x: x * x * 1.0)(1.0) == (1, 2)


# drawn ----------------------------------------------------------------------------------------------------------------

UNARY = {"exp": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "log": np.log}
SLOPES = {
    "exp": np.exp,
    "tanh": lambda v: 1 - np.tanh(v) ** 2,
    "sqrt": lambda v: 0.5 / np.sqrt(v),
    "log": lambda v: 1 / v,
}
BINARY = {"+": operator.add, "*": operator.mul, "-": operator.sub, "/": operator.truediv}


def drawn(rng, names, number, depth=4):
    """An expression over values and literals that all hold the same number, as nested tuples."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*names, number, number])
    if rng.random() < 0.3:
        return rng.choice(list(UNARY)), drawn(rng, names, number, depth - 1)
    return rng.choice(list(BINARY)), drawn(rng, names, number, depth - 1), drawn(rng, names, number, depth - 1)


def evaluated(tree, values):
    """The value of a drawn expression over lazy values."""
    if isinstance(tree, tuple):
        parts = [evaluated(t, values) for t in tree[1:]]
        return (UNARY | BINARY)[tree[0]](*parts)
    return values.get(tree, tree)


def dual(tree, values, name):
    """The value and the derivative with respect to one name."""
    if not isinstance(tree, tuple):
        return values.get(tree, tree), float(tree == name)
    parts = [dual(t, values, name) for t in tree[1:]]
    if len(parts) == 1:
        (x, dx), kind = parts[0], tree[0]
        return UNARY[kind](x), SLOPES[kind](x) * dx
    (x, dx), (y, dy) = parts
    return {
        "+": (x + y, dx + dy),
        "-": (x - y, dx - dy),
        "*": (x * y, dx * y + x * dy),
        "/": (x / y, dx / y - x * dy / y**2),
    }[tree[0]]


MADE = (float, np.float64, lambda v: np.array(v))


def case(rng, names, number):
    """A drawn expression that has derivatives, and these."""
    with np.errstate(all="ignore"):
        while True:
            tree = ("+", drawn(rng, names, number), ("*", "a", ("*", "b", "c")))
            wanted = [dual(tree, dict.fromkeys(names, np.float64(number)), n) for n in names]
            if np.isfinite(wanted).all():
                return tree, wanted


@pytest.mark.parametrize("seed", range(60))
def test_drawn_expressions_over_equal_numbers(seed):
    rng = random.Random(seed)
    names, number = ["a", "b", "c"], rng.choice([1.0, 2.0, 0.5])
    tree, wanted = case(rng, names, number)
    make = rng.choice(MADE)
    values = {n: tm.tensor(make(number)) for n in names}
    result = evaluated(tree, values)
    for name, (value, slope) in zip(names, wanted, strict=True):
        assert float(result) == pytest.approx(value, rel=1e-12, abs=1e-12)
        assert float(result.grad(values[name])) == pytest.approx(slope, rel=1e-9, abs=1e-9), (tree, name)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y * (id(x) % 2),
        lambda x, y: {id(v): v for v in (x, y)}[id(x)] * 2,
    ],
)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_which_object_an_argument_is_has_no_answer_in_a_graph(function):
    x = np.ones(2)
    for other in (x, np.ones(2)):
        with pytest.raises(tm.CaptureError, match=r"id\(\) of an array"):
            tm.compile(function, x, other)
        np.testing.assert_array_equal(tm.tensor(function)(x, other), function(x, other))


def test_what_a_function_knows_of_its_own_objects():
    def own(x, y=None):
        z, w = x, x.copy()
        return z is x, w is x, y is None, id(None) == id(y), x * 2

    assert tm.tensor(own)(np.ones(2))[:4] == (True, False, True, True)


def test_arrays_in_a_list_that_are_one_and_then_are_not():
    pair = [np.ones(1)] * 2
    captured = tm.tensor(lambda x: x * (2 if pair[0] is pair[1] else 3))
    found = [captured(1.0)]
    for place, value in ((0, np.ones(1)), (1, None), (1, np.ones(1))):
        pair[place] = pair[0] if value is None else value
        found.append(captured(1.0))
    assert found == [2.0, 3.0, 2.0, 3.0]
    with pytest.raises(tm.CaptureError, match="`is` between two arrays"):
        tm.tensor(lambda x: any(x is e for e in pair)).graph(pair[0])


def counted(nodes):
    seen = {}
    for node in nodes:
        seen[id(node)] = seen.get(id(node), 0) + 1
    return sorted(seen.values()), sum(v[0] for v in nodes)


def walked(node, seen=None):
    seen = set() if seen is None else seen
    if id(node) in seen:
        return 0.0
    seen.add(id(node))
    return node["v"] + sum(walked(child, seen) for child in node["c"])


def compared(first, second):
    return id(first) == id(second), first is second, len({id(first), id(second)}), {id(first): 1}.get(id(second), 0)


LEAF = {"v": 1.0, "c": []}


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (compared, [(a, b) for a in ([1.0], {"k": 2}, [np.ones(2)]) for b in (a, a.copy(), a)]),
        (counted, [((a, b, a),) for a, b in (([1.0], [2.0]), ([1.0], [1.0]))] + [([p := [3.0], p, p],), ([[1.0], [1.0]],)]),
        (walked, [({"v": 2.0, "c": [LEAF, other]},) for other in (LEAF, dict(LEAF), LEAF)]),
    ],
)  # fmt: skip
def test_the_id_of_a_container_is_the_callers(function, calls):
    captured = tm.tensor(function)
    for arguments in calls * 2:
        assert captured(*arguments) == function(*arguments)
