"""Each rule that is written as a pattern fires on what users write: NumPy's text, of arrays, 0-d arrays, NumPy's and Python's numbers."""

import re

import numpy as np
import pytest
from scipy import special

import tensormagic as tm
from tensormagic.ir.node import topological
from tensormagic.ir.rules import show
from tensormagic.transform.rewriting import rewrite, rules

NAMES = {k: getattr(np, k) for k in dir(np) if k[0] != "_" and callable(getattr(np, k))} | {
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "log1mexp": lambda x: np.log1p(-np.exp(x)),
    **{k: getattr(special, k) for k in ("erf", "erfc", "logit", "xlogy", "logsumexp")},
}
FORMS = {
    "array": lambda x: np.array([x, x + 1, x + 2]),
    "0-d": np.array,
    "numpy": lambda x: np.float64(x) if isinstance(x, float) else np.int64(x),
    "python": lambda x: x,
}
ELSEWHERE = {  # what fires in place of them for every form
    "exp(-x) / (1 + exp(-x)) -> sigmoid(-x)": "exp(x) / (1 + exp(x)) -> sigmoid(x)",
    "(exp(x) - exp(-x)) / 2 -> sinh(x)": "(exp(x) - exp(-x)) * 0.5 -> sinh(x)",
    "(exp(x) + exp(-x)) / 2 -> cosh(x)": "(exp(x) + exp(-x)) * 0.5 -> cosh(x)",
}
PATTERNS = {(r.level, r.name): r for r in rules("real") if r.pattern is not None}


def written(rule, whole):
    """The pattern as text over its variables: constants as numbers, conditions as comparisons."""
    text = re.sub(r"-0(?=\)|$)", "-0.0", show(rule.pattern))
    text = re.sub(r"where\(([01]),", lambda m: f"where({bool(int(m[1]))},", text)
    text = re.sub(r"where\(c, ([01]), ([01])\)", lambda m: f"where(c, {bool(int(m[1]))}, {bool(int(m[2]))})", text)
    names = []
    for wild in topological([rule.pattern]):
        if wild.op.name != "wild":
            continue
        name = wild["name"]
        own = f"{name}_" if wild.type.dtype.kind == "b" else name
        new = (
            {"c": "3" if whole else "3.5", "d": "5" if whole else "5.5"}.get(name, own)
            if own == name
            else f"({own} > 0.4)"
        )
        new = f"hypot({name}, 2.0)" if wild["only"] in {"Positive", "Unsigned"} else new
        names += [own] * (new not in {"3", "3.5", "5", "5.5"})
        text = re.sub(rf"\b{name}\b", new, text)
    return text, names


def fires(rule, form, whole):
    text, names = written(rule, whole)
    function = eval(f"lambda {', '.join(names)}: {text}", dict(NAMES))
    given = [FORMS[form](3 + k if whole else 0.3 + k / 7) for k in range(len(names))]
    try:
        graph = tm.trace(function, *given)
    except tm.TensorError:
        return False
    wanted = {rule.name, ELSEWHERE.get(rule.name)}
    return any(f.rule.name in wanted for f in rewrite(graph, rule.level).fired)


@pytest.mark.parametrize(("level", "name"), PATTERNS)
def test_every_pattern_fires_on_some_text(level, name):
    rule = PATTERNS[level, name]
    assert any(fires(rule, form, whole) for whole in (False, True) for form in FORMS), written(rule, False)


FEWEST = {"array": 134, "0-d": 134, "numpy": 134, "python": 126}


def test_patterns_fire_on_every_form():
    for form, fewest in FEWEST.items():
        left = [r.name for r in PATTERNS.values() if not any(fires(r, form, whole) for whole in (False, True))]
        assert len(PATTERNS) - len(left) >= fewest, (form, left)


@pytest.mark.parametrize("x", [1e-18, np.float64(1e-18), np.array(1e-18)])
def test_log_of_one_and_little(x):
    assert tm.tensor(lambda x: np.log(1 + x))(x) == 1e-18
    assert tm.tensor(lambda x: np.log(1 - x))(x) == -1e-18


def test_checks_that_a_rule_looks_through_stay():
    twice = tm.tensor(lambda x: 1 / (1 / x))
    assert twice(4.0) == 4.0
    with pytest.raises(ZeroDivisionError):
        twice(0.0)
    same = tm.tensor(lambda x: x / x, math="real")
    assert same(3.0) == 1.0
    with pytest.raises(ZeroDivisionError):
        same(0.0)
    gone = tm.tensor(lambda x, y: x * y / x, math="real")
    assert gone(3.0, 2.0) == 2.0
    with pytest.raises(ZeroDivisionError):
        gone(0.0, 2.0)
