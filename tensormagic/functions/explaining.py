"""Reports of what rewriting did to a value, step by step, and what each step gained: accuracy, flops, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.planning import costs
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.functions.accuracy import Errors, Measure, NotMeasuredError, over_parameters
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.log import Firing, Log
from tensormagic.ir.rewriting.rule_text import AS_ACCURATE, LEVEL_WORDS, expression
from tensormagic.ir.site import Lens
from tensormagic.ir.size import evaluate
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.leaf import PARAMETER, SIZE, size_of
from tensormagic.ops.meaning import brought_in, reason
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.products import product
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import matched
from tensormagic.transform.loops.loop_rules import OF_LOOPS
from tensormagic.transform.rewriting import Rewritten
from tensormagic.transform.rewriting.replay import replayed

MOST_STEPS = 40
MOST_NODES = 1_500
UNIT = "a unit in the last place is the distance from the result to the next float"
FLOPS = (
    "flops: additions, multiplications and divisions of single numbers, those that an exp or a log is made of as well"
)
SECONDS = 3.0
"""For how long errors are measured at most."""


@dataclass(frozen=True)
class Bought:
    """The gain of one step, or of all: changes in errors, flops, bytes and iterations.

    Parameters
    ----------
    errors
        The errors before and after, or why they are not known; empty if no digit changes.
    flops, moved
        The change in flops and in bytes that kernels read and write; None if not known.
    iterations
        The change in loop iterations that Python runs for a first result; None if not known.
    reason
        The purpose of the operation that a rule has introduced.
    """

    errors: Errors | str = ""
    flops: int | None = None
    moved: int | None = None
    iterations: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        is_gain = isinstance(self.errors, Errors) and self.errors.after < self.errors.before / 2
        costly = is_gain and (self.flops or 0) > 0
        parts = [f"error not measured: {self.errors}" if isinstance(self.errors, str) else str(self.errors)]
        parts = parts if self.errors else []
        parts += [_more(self.iterations, "iteration of a loop", "iterations of loops")] if self.iterations else []
        parts += [_more(self.flops, "flop")] if self.flops and not costly else []
        parts += [f"{_bytes(self.moved)} read and written"] if self.moved else []
        told = ", ".join(parts) or "the same work"
        told += f"; it takes {_more(self.flops or 0, 'flop')}" if costly else ""
        return f"{told}; what the rule is for: {self.reason}" if self.reason and not is_gain else told


@dataclass(frozen=True)
class Step:
    """Rules that fired in sequence, and their effect: one rule that may change digits, or several that do not."""

    fired: tuple[Firing, ...]
    graph: Graph
    bought: Bought


class Explained:
    """A rewriting, with its effects for the parameters' values.

    Parameters
    ----------
    graph, rewritten
        Before and after.
    values
        Gives the values of the parameters.
    seconds
        The time limit for measuring errors.
    """

    def __init__(
        self, graph: Graph, rewritten: Rewritten, values: Callable[[], Sequence[Any]], seconds: float = SECONDS
    ) -> None:
        self.graph, self.rewritten = graph, rewritten
        self._nodes, self._works = set(graph.nodes), dict[Graph, tuple[int, int] | None]()
        self._regions = any(n.op.kind == "region" for n in graph.nodes)
        self._sizes: Mapping[Any, int] = {}
        self._measure: Measure | None = None
        self._why = ""
        try:
            known = values()
            self._sizes = graph.bind([np.shape(v) for v in known])
            self._measure = Measure(graph, known, seconds)
        except TensorError as error:
            self._why = str(error).partition("\n")[0]

    def text(self, node: Node, name: Callable[[Node], str], room: int = 80) -> str:
        """Return a node as NumPy code: matrix products with ``@``, sizes as numbers."""
        return expression(node, lambda leaf: self._number(leaf) or name(leaf), room, self._spelt)

    def _spelt(self, node: Node, texts: Sequence[str]) -> str:
        if node.op is CONTRACT:
            return product(node["subscripts"], texts)
        return self._number(node.args[0]) if node.op is ASTYPE else ""

    def _number(self, leaf: Node) -> str:
        """Return the number of a size node; empty for another node, or if it is not known."""
        try:
            return str(evaluate(leaf["size"], self._sizes.__getitem__)) if leaf.op is SIZE else ""
        except LookupError:
            return ""

    def steps(self) -> Iterator[Step]:
        """Yield the steps, with those that change no digits grouped; with their effects unless there are too many."""
        groups = list(_grouped(self.rewritten.notable))
        stages = self._stages(groups) if len(groups) <= MOST_STEPS else repeat(self.graph)
        before = self.graph
        for group, after in zip(groups, stages, strict=False):
            yield Step(group, after, self.bought(group, before, after))
            before = after

    def _stages(self, groups: Sequence[tuple[Firing, ...]]) -> Iterator[Graph]:
        """Yield the graph after each group."""
        made = replayed(self.graph, self.rewritten.fired, self.rewritten.graph)
        last = self.graph
        for group in groups:
            left = len(group)
            while left > 0 and (found := next(made, None)) is not None:
                left -= len(found[0])
                last = found[1]
            yield last

    def whole(self) -> Bought:
        """Return what all steps have gained together."""
        results = zip(self.graph.results, self.rewritten.graph.results, strict=True)
        errors = [self._errors(before, after, whole=True) for before, after in results]
        known = next((e for e in errors if isinstance(e, Errors)), errors[0] if errors else "")
        return Bought(
            known, *self._more(self.graph, self.rewritten.graph), self._turns(self.graph, self.rewritten.graph)
        )

    def bought(self, fired: Sequence[Firing], before: Graph, after: Graph) -> Bought:
        """Return the effects of rules that led from one graph to the other; errors only for a rule that may change digits."""
        self._nodes |= set(after.nodes)
        (firing, *more) = fired or (None,)
        errors: Errors | str = ""
        if firing is not None and not more and firing.rule.level != "exact" and firing.rule not in OF_LOOPS:
            outer = over_parameters(firing.before, self.graph) and (not self._regions or firing.before in self._nodes)
            errors = self._errors(firing.before, firing.after) if outer else "within a loop or a branch"
        why = reason([firing.rule.name]) if errors and firing is not None else ""
        return Bought(errors, *self._more(before, after), self._turns(before, after), why)

    def _errors(self, before: Node, after: Node, *, whole: bool = False) -> Errors | str:
        if self._measure is None:
            return self._why
        try:
            return self._measure.errors(before, after, whole=whole)
        except NotMeasuredError as why:
            return str(why)

    def _more(self, before: Graph, after: Graph) -> tuple[int, int] | tuple[None, None]:
        """Return the increase in flops and bytes from the first graph to the second, or None if not known."""
        first, last = self._work(before), self._work(after)
        return (None, None) if first is None or last is None else (last[0] - first[0], last[1] - first[1])

    def _turns(self, before: Graph, after: Graph) -> int | None:
        """Return the increase in flops and bytes from the first graph to the second, or None for both if not known."""
        try:
            first, last = (iterations_of(g.results, self._sizes) for g in (before, after))
        except LookupError:
            return None
        return last - first

    def _work(self, graph: Graph) -> tuple[int, int] | None:
        if graph not in self._works:
            self._works[graph] = self._counted(graph) if len(graph.nodes) <= MOST_NODES else None
        return self._works[graph]

    def _counted(self, graph: Graph) -> tuple[int, int] | None:
        """Return flops, and bytes that kernels read and write, or None if not known."""
        try:
            found = costs.total(costs.of_plan(plan_graph(graph), lambda size: evaluate(size, self._sizes.__getitem__)))
        except (TensorError, LookupError, TypeError, ValueError):
            return None
        return (int(found.flops), int(found.moved)) if found.known else None


def iterations_of(results: Sequence[Node], sizes: Mapping[Any, int]) -> int:
    """Return the total number of loop iterations; inner loops count at each outer iteration.

    Raises
    ------
    LookupError
        If a number of iterations is data-dependent.
    """
    total = 0
    for node in topological(results):
        if node.op is LOOP:
            count = size_of(node.args[0])
            body: Graph = node["body"]
            if count is None:
                raise LookupError("a number of iterations that is computed")
            within, _ = matched(unindexed(body, 1), node.args[1:], "loop")
            inner = {a: evaluate(s, sizes.__getitem__) for a, s in within.items()}
            total += int(evaluate(count, sizes.__getitem__)) * (1 + iterations_of(body.results, inner))
    return total


def _grouped(fired: Sequence[Firing]) -> Iterator[tuple[Firing, ...]]:
    """Yield groups of firings: each that may change digits alone, others in between together; clean-up after loops joins these."""
    group: list[Firing] = []
    for firing in fired:
        if group and (firing.rule.level != "exact" or firing.rule in OF_LOOPS):
            yield tuple(group)
            group = []
        group.append(firing)
        if firing.rule.level != "exact" and firing.rule not in OF_LOOPS:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _more(count: int, one: str, several: str = "") -> str:
    return f"{abs(count):,} {'more' if count > 0 else 'fewer'} {one if abs(count) == 1 else several or f'{one}s'}"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:+.3g} {unit}"
    return f"{count:+d} bytes"


# as text ------------------------------------------------------------------------------------------------------------


def explained(
    graph: Graph, level: str | None, lens: Lens, values: Callable[[], Sequence[Any]], *, measure: bool
) -> str:
    """Return a report of the rewriting: each rule with its place and effect, what was withheld, and the number of kernels left."""
    executable = session.executable(graph, level)
    rewritten = executable.rewritten
    kernels = len(executable.plan.kernels)
    before, after = _steps(graph), _steps(rewritten.graph)
    counts = f"{before} step{'s' * (before != 1)}, with broadcasts and casts; {after} after rewriting"
    lines = [f"{counts}, in {kernels} kernel{'s' * (kernels != 1)}"]
    found = Explained(graph, rewritten, values)
    fired = [_seen(f, lens) for f in rewritten.notable]
    name = name_in(graph)
    if measure and fired:
        lines += [*_whole(found, graph, name), *_by_steps(found, lens, name)]
    else:
        lines += _once(map(str, fired))
    lines += [key for word, key in (("last place", UNIT), (" flop", FLOPS)) if any(word in line for line in lines)]
    lines += [f"{name}: {text}" for name, text in brought_in([f.rule.name for f in fired]).items()]
    lines += tidying(len(rewritten.fired) - len(fired))
    lines += [f"assumed: {text}" for text in Log(fired).assumptions]
    lines += [str(replace(withheld, sites=lens.within(withheld.node))) for withheld in rewritten.withheld]
    return "\n".join(lines)


def _seen(firing: Firing, lens: Lens) -> Firing:
    """Return a firing with the spans that are meant."""
    return replace(firing, sites=lens.within(firing.before) or firing.sites)


def tidying(steps: int) -> list[str]:
    """Return a line about steps that are not listed one by one; nothing if there are none."""
    what = "step that only tidies up" if steps == 1 else "steps that only tidy up"
    return [f"and {steps} {what}"] if steps else []


def _whole(found: Explained, graph: Graph, name: Callable[[Node], str]) -> Iterator[str]:
    yield f"as written: {found.text(graph.results[0], name)}"
    yield f"rewritten:  {found.text(found.rewritten.graph.results[0], name)}"
    yield f"in all:     {found.whole()}"


def _by_steps(found: Explained, lens: Lens, name: Callable[[Node], str]) -> Iterator[str]:
    for number, step in enumerate(found.steps(), 1):
        fired = [_seen(f, lens) for f in step.fired]
        one, *more = fired
        if one.rule in OF_LOOPS:
            yield f"{number}. {_keeps(one)}: {one}"
            yield from (f"   and {text}" for text in _once(map(str, more)))
        elif not more:
            yield f"{number}. {_keeps(one)}: {one}"
            sides = [found.text(n, name, 60) for n in (one.before, one.after)]
            yield f"   {' -> '.join(sides)}"
        else:
            yield f"{number}. {_keeps(one)}: {'; '.join(_once(map(str, fired)))}"
        yield f"   {step.bought}"


def _keeps(firing: Firing) -> str:
    """Return what a rule may change, in the words of the display."""
    rule = firing.rule
    return AS_ACCURATE if rule.neutral and rule.level == "stable" else LEVEL_WORDS[rule.level]


def _once(texts: Iterator[str]) -> Iterator[str]:
    for text, times in Counter(texts).items():
        yield text if times == 1 else f"{text}, {times} times"


def name_in(graph: Graph) -> Callable[[Node], str]:
    """Return a function that names leaves of a graph; user names only if they are unique."""
    times = Counter(graph.names)
    names = {p: n for p, n in zip(graph.parameters, graph.names, strict=False) if n and times[n] == 1}

    def name(leaf: Node) -> str:
        return names.get(leaf) or (f"%{leaf['index']}" if leaf.op is PARAMETER else leaf.op.name)

    return name


def _steps(graph: Graph) -> int:
    """Return the number of nodes that compute; a picture folds some away, and counts fewer."""
    return sum(bool(n.args) for n in graph.nodes)
