"""The index of rules: it leaves out no rule that matches, and each rule looks at a node once."""

# tests named elsewhere

from dataclasses import replace

import numpy as np
import pytest

from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.rewriting.table import Matches, Table
from tensormagic.ir.type import array, symbol
from tensormagic.ops.leaf import parameter
from tensormagic.ops.scalars.scalar import exp, log
from tensormagic.transform.rewriting import THEMES, rules
from tests.transform.example import Example
from tests.transform.examples import EXAMPLES
from tests.transform.oracle import instances

RULES = rules("real")


@pytest.mark.parametrize("rule", [r for r in RULES if r.pattern is not None], ids=str)
def test_patterns_are_found(rule: Rule):
    for dtype in (np.float64, np.int64, bool):
        try:
            found = instances(rule, dtype)
        except (TypeError, OverflowError):
            continue
        if found:
            break
    assert found
    for instance in found[:3]:
        assert rule in Table(RULES).at(instance.before.results[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_procedures_are_found(example: Example):
    (rule,) = next(getattr(m, example.rule) for m in THEMES if hasattr(m, example.rule))
    assert rule in Table(RULES).at(example.build(*example.parameters(np.float32)))


def test_a_rule_looks_at_a_node_once():
    looked = []

    def watched(rule: Rule) -> Rule:
        def apply(node):
            looked.append((rule.name, node))
            return rule.apply(node)

        return replace(rule, apply=apply)

    matches = Matches(Table(map(watched, RULES)))
    x = parameter(0, array(np.float64, symbol("n0")))
    first = [r.name for r, _ in matches.at(log(1 + exp(x)))]
    assert first == [r.name for r, _ in matches.at(log(1 + exp(x)))]
    assert first
    assert len(set(looked)) == len(looked)
    assert not [r for r, _ in matches.at(x)]
