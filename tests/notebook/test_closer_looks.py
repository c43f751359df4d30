"""The magics beside ``%%tensor``: rules of one's own, where a nan came from, help of every one."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import ParseError, RuleError

pytestmark = pytest.mark.usefixtures("no_rules_left")


def test_rules_of_a_notebook_are_used(notebook):
    ran = notebook.ok(
        "%%rewrite mine --math real\nsin(x)**2 + cos(x)**2 -> 1   # Pythagoras\n\nlog(x * y) -> log(x) + log(y) if x > 0 and y > 0"
    )
    told = ran.data["text/plain"]
    assert told.startswith("rules in use from now on as mine\n")
    assert "log(x * y) -> log(x) + log(y) if x > 0 and y > 0  digits, equal for real numbers  x > 0 and y > 0" in told
    text = "%%tensor --math {} --show rewrites\nnp.sum(np.sin(X) ** 2 + np.cos(X) ** 2)"
    shown = notebook.ok(text.format("real")).data["text/plain"]
    assert "-> 1" in shown
    assert "mine:2" in shown
    assert "mine:2" not in notebook.ok(text.format("stable")).data["text/plain"]
    notebook.ok("%%rewrite mine\n# nothing any more")
    assert "mine" not in tm.rules.own
    assert "mine:2" not in notebook.ok(text.format("real")).data["text/plain"]


def test_rules_reach_gradients_and_functions(notebook):
    notebook.ok("%%tensor f -q\nr = np.sum(np.tanh(w) ** 2)")
    before = notebook["f"](w=np.ones(3))
    notebook.ok("%%rewrite --math real\ntanh(x)**2 -> 1 - 1/cosh(x)**2")
    assert notebook["f"](w=np.ones(3)) == pytest.approx(before, rel=1e-14)
    ran = notebook.ok("%%tensor --grad w --math real --show rewrites\nnp.sum(np.tanh(w + 1) ** 2)")
    assert "rules:2" in ran.data["text/plain"]
    t = np.tanh(1.0)
    assert notebook["grad_w"].numpy() == pytest.approx(np.full(3, 2 * t * (1 - t**2)), rel=1e-10)


BAD = {
    "no rule": ("log(x)", ParseError, "has no replacement"),
    "not true": ("tanh(x) -> sin(x)", RuleError, "the sides differ at x = "),
    "less accurate": ("log(x * y) -> log(x) + log(y) if x > 0 and y > 0", RuleError, "less accurate"),
    "not everywhere": ("sqrt(x**2) -> x", RuleError, "the sides differ at x = -"),
    "a nan that goes": ("x - x -> 0", RuleError, "at x = nan"),
    "never": ("log(x) -> x if x > 1 and x < 0", RuleError, "no point was found"),
    "a condition that is none": ("log(exp(x)) -> x if x > zz", ParseError, "cannot be tried"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_rule_that_does_not_hold_is_refused_at_its_line(notebook, what):
    text, kind, told = BAD[what]
    ran = notebook(f"%%rewrite\nexp(x) * exp(y) -> exp(x + y)\n  {text}  # why")
    assert isinstance(ran.error, kind)
    lines = ran.out.splitlines()
    assert lines[0] == "Cell In[1], line 3"
    if kind is RuleError:
        assert lines[1:3] == [f"    {text}  # why", "    " + "^" * len(text)]
    assert told in ran.out
    assert not tm.rules.own


def test_a_rule_that_holds_where_it_says(notebook):
    notebook.ok("%%rewrite\nsqrt(x**2) -> x if x >= 0\nabs(x) -> x if not_negative(x)")
    ran = notebook.ok("%%rewrite other --test\nsqrt(x**2) -> x\nlog(exp(x)) -> x")
    text = ran.data["text/plain"]
    assert "sides differ" in text
    assert "holds" in text
    assert set(tm.rules.own) == {"rules"}
    assert "not 'best'" in notebook("%%rewrite --math best\nlog(exp(x)) -> x").out


def test_unloading_takes_the_rules_out_of_force(notebook):
    notebook.ok("%%rewrite mine\nlog(exp(x)) -> x")
    notebook.shell.run_line_magic("reload_ext", "tensormagic")
    assert "mine" not in tm.rules.own


def test_rules_in_python():
    assert len(tm.rules.exact) < len(tm.rules.stable) < len(tm.rules.real)

    @tm.rule
    def mine(x, y):
        yield np.exp(x) * np.exp(y), np.exp(x + y)

    assert tm.rules.own["mine"] is mine
    assert mine[0] in tm.rules.stable
    assert mine[0] not in tm.rules.exact
    graph = tm.trace(lambda a, b: np.exp(a) * np.exp(b), "float64[n]", "float64[n]")
    assert [n.op.name for n in tm.rewrite(graph).nodes[2:]] == ["add", "exp"]
    assert [n.op.name for n in tm.rewrite(graph, mine).nodes[2:]] == ["add", "exp"]
    assert [n.op.name for n in tm.rewrite(graph, tm.rules.exact).nodes[2:]] == ["exp", "exp", "multiply"]
    f = tm.tensor(lambda a, b: np.exp(a) * np.exp(b))
    assert f(np.ones(2), np.ones(2)).tolist() == np.exp([2.0, 2.0]).tolist()
    tm.rules.remove("mine")
    assert f(np.ones(2), np.ones(2)).tolist() == (np.exp(np.ones(2)) ** 2).tolist()
    with pytest.raises(KeyError):
        tm.rules.remove("mine")


def test_what_is_no_rule_in_python():
    with pytest.raises(RuleError, match="sides differ"):

        @tm.rule(level="real")
        def wrong(x):
            yield np.sin(x), np.cos(x)

    with pytest.raises(RuleError, match="yields nothing"):
        tm.rule(lambda x: x)
    with pytest.raises(ValueError, match="level must be one of"):
        tm.rule(level="best")
    with pytest.raises(ParseError, match="a rule is"):

        @tm.rule
        def half(x):
            yield np.sin(x)

    assert not tm.rules.own


def test_a_condition_in_python():
    @tm.rule(level="real")
    def root(x):
        yield np.sqrt(x * x), x, x > 0

    assert root[0].assumptions == ("x > 0",)


def test_where_a_nan_came_from(notebook):
    notebook["X"][3, 1] = 2.0
    with np.errstate(all="ignore"):
        notebook.ok("%%tensor -q --math exact\nz = X - 2\nq = np.sqrt(z) + 1\nr = np.log(q)\nloss = np.sum(r)")
    with np.errstate(all="ignore"):
        assert np.isnan(float(notebook["loss"]))
    text = notebook.ok("%tensor_nan loss").data["text/plain"].splitlines()
    assert text[0] == "nan: first made here"
    assert "line 3  q = np.sqrt(z) + 1" in text[2]
    assert "sqrt" in text[2]
    assert "[0, 0]" in text[2]
    assert f"{notebook['X'][0, 0] - 2:.6g}" in text[2]
    assert notebook.ok("t = tm.tensor(np.ones(3)) * 2\n%tensor_nan t").data["text/plain"].startswith("nan: none")
    notebook["X"][5, 2] = np.nan
    notebook.ok("%%tensor -q\ns = np.sum(X * 2)")
    row = notebook.ok("%tensor_nan s").data["text/plain"].splitlines()[2]
    assert row.split() == ["*", "input", "X", "[5,", "2]"]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("z = np.log(X)\nq = z.sum()", ["line 2  z = np.log(X)", "log", "[1, 2]", "X[1, 2] = -2"]),
        (
            "z = X * np.inf\nq = z @ w",
            ["line 3  q = z @ w", "@", "[1]", "float64[40, 3] -inf … inf 120 inf, w = float64[3] 1 … 1"],
        ),
        ("z = X * np.inf\nq = z.sum(1)", ["line 3  q = z.sum(1)", "sum", "[1]", "float64[40, 3] -inf … inf 120 inf"]),
        (
            "u = w\nfor k in range(50):\n    u = u - 4 * u * u * u\nq = u.sum()",
            ["line 4, iteration 8  u = u - 4 * u * u * u", "−", "[0]", "-inf, -inf"],
        ),
        (
            "u = w * 2\nwhile np.all(u < 100):\n    v = np.sqrt(u - 1.9)\n    u = u - v\nq = u.sum()",
            ["line 4, iteration 2  v = np.sqrt(u - 1.9)", "sqrt", "[0]", "-0.216228"],
        ),
    ],
)
def test_a_nan_is_told_with_what_it_was_made_of(notebook, cell, told):
    notebook["X"], notebook["w"] = np.ones((40, 3)), np.ones(3)
    notebook["X"][1, 2] = -2
    with np.errstate(all="ignore"):
        notebook.ok(f"%%tensor -q\n{cell}")
        row = notebook.ok("%tensor_nan q").data["text/plain"].splitlines()[2]
    assert all(part in row for part in told), row


@pytest.mark.parametrize(
    ("cell", "there"),
    [
        ("np.log(X).sum()", True),
        ("np.log(X)", True),
        ("np.sqrt(X - 2), w", True),
        ("u = w\nfor k in range(3):\n    u = np.sqrt(u - 1.5)\nu", True),
        ("X.sum()", False),
        ("np.log(X + 9) * 2", False),
    ],
)
def test_a_value_with_a_nan_says_which_magic_traces_it(notebook, cell, there):
    notebook["X"], notebook["w"] = np.ones((40, 3)), np.ones(3)
    notebook["X"][1, 2] = -2
    with np.errstate(all="ignore"):
        line = notebook.ok(f"%%tensor --math exact --show none\n{cell}").data["text/plain"]
    assert line.count("%tensor_nan tells where the nan came from") == there


@pytest.mark.parametrize(
    "name", ["tensor", "rewrite", "tensor_graph", "tensor_profile", "tensor_rules", "tensor_nan", "tensor_cache"]
)
def test_every_magic_answers_with_options_and_an_example(notebook, name):
    sign = "%%" if name in {"tensor", "rewrite"} else "%"
    told = notebook.ok(f"{sign}{name}?").out
    assert "Example::" in told
    assert "options:" in told or "positional arguments:" in told
    assert f"{sign}{name}" in told.partition("Example::")[2]


def test_a_look_takes_one_name(notebook):
    for line in ("%tensor_graph a b", "%tensor_nan --what", "%tensor_cache x"):
        ran = notebook(line)
        assert type(ran.error).__name__ == "UsageError"
        assert line.split()[0] in ran.out


def test_an_expression_in_place_of_a_name_is_told_what_to_write(notebook):
    for magic in ("graph", "profile", "rules", "nan"):
        out = notebook(f"%tensor_{magic} np.log(b) - 1").out
        assert out.rstrip() == (
            f"UsageError: %tensor_{magic} takes a name, not np.log(b) - 1: write value = np.log(b) - 1 first"
        )


def test_a_profile_of_what_another_cell_computes_says_where_to_ask(notebook):
    notebook.ok("%%tensor objective\nnp.sum(w * b)")
    notebook.ok("later = tm.grad(objective, 'w')(w=tm.tensor(np.ones(3)))")
    text = notebook.ok("%tensor_profile later").data["text/plain"]
    assert text.startswith("nothing to measure: no line of ")


def test_the_last_value_is_called_as_its_variable_is(notebook):
    """``%tensor_graph`` of the last value was headed ``_``, and ended in a box of that name."""
    notebook.ok("%%tensor\ntotal = np.sum(np.ones(3) * 2.5)\ntotal")
    assert notebook.ok("%tensor_graph").data["text/plain"].startswith("total\n")
    notebook.ok("%%tensor\nnp.sum(np.ones(3) * 3.5)")
    assert notebook.ok("%tensor_graph").data["text/plain"].startswith("value\n")
