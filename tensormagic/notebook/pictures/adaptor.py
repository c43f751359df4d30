"""Turn graphs into scenes: captured, rewritten, differentiated and planned. Knows no IPython."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic import session
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.backend.planning.inline import expand_all
from tensormagic.backend.planning.kinds import graphs_of
from tensormagic.backend.planning.plan import Plan
from tensormagic.capture.python import usercode
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.functions.explaining import Explained
from tensormagic.ir import site
from tensormagic.ir.closing import Closed
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.site import Site
from tensormagic.ir.type import Size, Type, evaluate
from tensormagic.notebook.pictures.details import Details, Rewrite, Step
from tensormagic.notebook.pictures.glimpse import glimpse
from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.labels import AS_ACCURATE, LEVEL_WORDS, digits_text, in_cell
from tensormagic.notebook.pictures.measure import measure
from tensormagic.notebook.pictures.naming import Naming
from tensormagic.notebook.pictures.scene import Scene, View
from tensormagic.notebook.pictures.scope import Scope, short
from tensormagic.notebook.pictures.views import Drawing, computes, functions_of, kind_of, newest, places
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.meaning import brought_in
from tensormagic.ops.regions.region import Region
from tensormagic.transform.loops.loop_rules import OF_LOOPS
from tensormagic.transform.rewriting import rules
from tensormagic.transform.rewriting.replay import replayed
from tensormagic.transform.rewriting.users.trial import changes_digits

if TYPE_CHECKING:
    from tensormagic.backend.cuda.outline import Outline

__all__ = ["Portrait", "newest", "portrait", "source_of", "steps_of"]

MOST_HISTORY = 400  # nodes above which values that are known cut the graph
MEASURING = 0.5  # seconds after which no more errors of steps are measured
MOST_AT_ALL = 20_000  # nodes above which no picture is made: writing it down would take longer than a few seconds


@dataclass(frozen=True, eq=False)
class Portrait:
    """What can be shown of some values: the graph from inputs to them and their gradients, at every stage.

    Parameters
    ----------
    graph
        The whole graph, as captured.
    names, gradients
        The names of the results: of the first ``len(names)`` results of the graph, and of the rest.
    leaves
        The values of the parameters.
    cell
        The cell whose lines are shown; the same nodes may also have been captured by others.
    level
        The highest level of rewrite rules that may be used.
    lens
        The sites of the graph's nodes.
    device
        The device that the cell asked for: ``"cpu"``, ``"gpu"`` or ``"auto"``.
    chosen
        One sentence for each branch that was decided during capture.
    """

    graph: Graph
    names: tuple[str, ...]
    gradients: tuple[str, ...]
    leaves: tuple[Node, ...]
    cell: str
    level: str | None = None
    lens: site.Lens = field(default_factory=lambda: site.Lens({}), repr=False)
    device: str = "cpu"
    chosen: tuple[str, ...] = ()

    @cached_property
    def primal(self) -> Graph:
        """Return the values alone, without their gradients."""
        return self.graph.with_results(self.graph.results[: len(self.names)])

    @property
    def called(self) -> str:
        """Return the variable that the value is in; else that it is the value."""
        name = next(iter(self.names), "")
        return name if name.isidentifier() and not name.startswith("_") and name != "value" else "the value"

    @cached_property
    def executable(self) -> session.Executable:
        """Return the whole, rewritten, on its tiers."""
        return session.executable(self.graph, self.level)

    @property
    def is_rewritten(self) -> bool:
        """Return whether that has been done, of the values alone too: to tell what rules did takes no time then."""
        return all(session.has_executable(graph, self.level) for graph in (self.graph, self.primal))

    @cached_property
    def first(self) -> Any:
        """Return the values alone, rewritten."""
        return self.primal_executable.rewritten

    @cached_property
    def primal_executable(self) -> session.Executable:
        """Return the values alone, on their tiers."""
        return session.executable(self.primal, self.level)

    @cached_property
    def outline(self) -> Plan | Outline:
        """Return the plan that runs the graph where it is computed."""
        if not self.is_on_gpu:
            return self.executable.plan
        from tensormagic.backend.cuda.outline import outlined  # with all kinds of kernels

        return outlined(self.executable.graph)

    @cached_property
    def computes(self) -> bool:
        """Return whether anything was captured that computes."""
        return any(computes(kind_of(n)) for n in self.primal.nodes)

    @cached_property
    def ops(self) -> int:
        """Return how many operations were captured, as the graph shows and counts them."""
        views = self.begun("").views
        return views[0].ops if views else sum(computes(kind_of(n)) for n in self.primal.nodes)

    @cached_property
    def changed(self) -> tuple[Any, ...]:
        """Return the uses of rules that may have changed digits, as far as a trial on numbers can tell."""
        fired = [*self.first.fired, *self.executable.rewritten.fired]
        return tuple(f for f in fired if changes_digits(f.rule))

    @property
    def levels(self) -> set[str]:
        """Return the levels of the rules that fired; ``"neutral"`` for rules of level stable that are not there for accuracy."""
        return {_level(f.rule) for f in self.changed}

    def digits(self, formed: AbstractSet[str] = frozenset()) -> str:
        """``more accurate in line 3: softplus``: how rules changed rounding errors, in which lines, and by which operations.

        An operation that one rule inserted and a later one removed comes first: ``log1p, then softplus``. If the new
        expression only has operations that were there before, the old one is shown: ``more accurate in line 2: f(a) -
        f(b)``. ``formed`` are the levels of rules that formulas of plain numbers were computed by.
        """
        word = digits_text(formed | self.levels)
        fired = [f for f in self.changed if digits_text({_level(f.rule)}) == word]
        own = [f for f in fired if self._is_of_value(f.before)]
        lines = sorted({s.line for f in own or fired for s in self.lens.within(f.before) if s.cell == self.cell})
        if not lines:
            spans = (self.lens.within(f.before) for f in own or fired)
            cells = [cell for cell in dict.fromkeys(newest(found).cell for found in spans if found) if cell]
            return f"{word} in {_some(cells)}" if word and cells else word
        ops = self._brought(own or fired)
        if not ops and word == digits_text({"stable"}):
            formulas = dict.fromkeys(f.rule.name.partition(" -> ")[0] for f in own if " -> " in f.rule.name)
            ops = [text for text in formulas if len(text) <= _SHORT]
        of = "" if own else "the gradient of "
        told = f"{word} in {of}line{'s' * (len(lines) > 1)} {_some(lines)}"
        return f"{told}: {_some(ops)}" if ops else told

    def _brought(self, fired: Sequence[Any]) -> list[str]:
        """Return the operations that uses of rules have brought in: ``log1p, then softplus`` where one has taken the other's place."""
        there = self.first.graph.ops | self.executable.graph.ops
        before: dict[str, str] = {}  # what a rule has found there, of what earlier ones have brought in
        for f in fired:
            left = f.rule.name.partition("->")[0]
            for name in brought_in([f.rule.name]):
                found = [one for one in before if f"{one}(" in left and one not in there]
                before.setdefault(name, f"{found[0]}, then {name}" if found else name)
        return [told for name, told in before.items() if name in there]

    def _is_of_value(self, node: Node) -> bool:
        """Return whether a rule that fired there has changed the value, and not its gradient alone."""
        return any(f.before is node for f in self.first.fired) or any(s.role == "value" for s in self.lens.of(node))

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules that fired, each once, with what it may change."""
        return tuple(dict.fromkeys(f"{_WORDS[_level(f.rule)]}: {f.rule.name}" for f in self.changed))

    @cached_property
    def values(self) -> list[Any]:
        """Return the values of the parameters."""
        return [session.value_of(leaf) for leaf in self.leaves]

    @cached_property
    def is_on_gpu(self) -> bool:
        """Return whether a GPU computes this: the cell asks for it, or a value lies there."""
        return self.device == "gpu" or any(map(session.stays, self.leaves))

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """Return the numbers that the sizes are."""
        return self.graph.bind([_shape(leaf) for leaf in self.leaves])

    def number(self, size: Size) -> int:
        """Return the number that one size is."""
        return evaluate(size, self._number_of)

    def _number_of(self, atom: Any) -> int:
        """Return the number of a symbol, or of an integer that the graph computes; KeyError where that takes a loop."""
        if atom not in self.sizes:
            graph = Graph(self.graph.parameters, (atom,))
            if any(isinstance(n.op, Region) for n in graph.nodes):
                raise KeyError(atom)  # a picture does not run loops
            self.sizes[atom] = int(evaluate_graph(graph, self.values)[0])
        return self.sizes[atom]

    def type_text(self, t: Type) -> str:
        """Return a type with the sizes of this run: ``float64[569, 30]``."""
        return str(t.with_shape(tuple(self.number(s) for s in t.shape), t.form))

    def label(self, node: Node) -> str:
        """Return the name of an input, the value of a constant, the name of an op."""
        return Scope(self.graph, self.graph.names, None).label(node)

    def preview(self, node: Node) -> str:
        """Return a few values of an input."""
        if node.op is not PARAMETER or node not in self.graph.parameters:
            return ""
        source = self.leaves[node["index"]].params.get("source")
        return short(source.value) if source is not None else ""

    def spans(self, node: Node) -> list[Site]:
        """Return the places in this cell that a node comes from, captured or rewritten; empty for nodes of other cells."""
        return [s for s in self.lens.of(node) if s.cell == self.cell]

    def line(self, node: Node) -> int | None:
        """Return the first line of this cell that a node comes from, or None for nodes of other cells."""
        return min((s.line for s in self.spans(node)), default=None)

    def line_within(self, node: Node) -> int | None:
        """Return the same; of a node inside a loop or a branch, too."""
        line = self.line(node)
        if line is None:
            spans = site.of(node)
            line = min((s.line for s in spans if s.cell == self.cell), default=None)
            if line is None:
                line = min((self.twins[at] for s in spans if (at := (s.cell, s.line)) in self.twins), default=None)
        return line

    @cached_property
    def twins(self) -> dict[tuple[str, int], int]:
        """Lines of other cells whose loops and branches are equal to some of this cell, and the line that each is here.

        What was rewritten within them is shared, and says where it stood when that was done: a cell that runs again, too.
        """
        found: dict[tuple[str, int], int] = {}
        graphs = [graph for node in self.graph.nodes for graph in graphs_of(node)]
        while graphs:
            for node in graphs.pop().nodes:
                graphs += graphs_of(node)
                spans = site.of(node)
                for here in [min(lines)] if (lines := [s.line for s in spans if s.cell == self.cell]) else []:
                    for span in spans:
                        found.setdefault((span.cell, span.line), here)
        return found

    def scene(self, source: str) -> Scene:
        """Return the pictures: captured, rewritten, and where there are any, gradient and kernels."""
        return self.begun(source).whole

    def begun(self, source: str) -> Scene:
        """Return the graph as it was captured; the further pictures, and what made them, are found out when somebody opens it."""
        if len(self.graph.nodes) > MOST_AT_ALL:
            return Scene(self.cell, source, ())
        views = _Views(self, source)
        rules = tuple(in_cell(rule, source) for rule in self.rules)
        told = rules, digits_text(self.levels), self.chosen, views.went
        whole = lambda: Scene(self.cell, source, views.views(), views.details, *told)  # noqa: E731 (as short as a name)
        return Scene(self.cell, source, (views.first,), None, *told, whole)


_WORDS = LEVEL_WORDS | {"neutral": AS_ACCURATE}
_SHORT = 30  # letters of a formula in the line under a cell


def _level(rule: Any) -> str:
    return "neutral" if rule.neutral and rule.level == "stable" else rule.level


def _some(told: Sequence[Any]) -> str:
    """Return the first three."""
    return ", ".join([*map(str, told[:3]), *["…"] * (len(told) > 3)])


def portrait(
    results: Mapping[str, Node], gradients: Mapping[str, Node], cell: str, level: str | None = None, device: str = ""
) -> Portrait:
    """Close the graph over some values and their gradients, down to the inputs."""
    wanted = [*results.values(), *gradients.values()]
    closed = session.close_over(wanted, use_values=False)
    graph = closed.graph
    if len(graph.nodes) > MOST_HISTORY:
        closed = session.close_over(wanted)
        graph = replace(closed.graph, names=_called(closed))
    lens = site.Lens(closed.mapping)
    where = level or config.math, lens, device or config.device
    return Portrait(graph, tuple(results), tuple(gradients), closed.leaves, cell, *where)


def _called(closed: Closed) -> tuple[str, ...]:
    """Return the names of a graph's parameters: values that earlier cells have computed are called what those cells assign them to."""
    naming = Naming(site.of, source_of)
    names: list[str] = []
    for leaf, name in zip(closed.leaves, closed.graph.names, strict=True):
        found = name if "source" in leaf.params else naming.written_as(leaf) or name
        while found in names:
            found += "′"
        names.append(found)
    return tuple(names)


def source_of(cell: str) -> str:
    """Return the text of the cell of that label; nothing where it is not known."""
    return next((c.source for c in reversed(usercode.cells.values()) if c.label == cell), "")


def page_of(value: Tensor) -> str:
    """Return a page with the graph of a lazy value, which needs neither a kernel nor a network."""
    spans = [s for s in site.of(value.node) if s.role == "value"]
    cell = newest(spans).cell if spans else ""
    return to_html(portrait({"value": value.node}, {}, cell, value.level).scene(source_of(cell)))


def _shape(leaf: Node) -> tuple[int, ...]:
    source = leaf.params.get("source")
    return np.shape(source.value) if source is not None else session.shape_of(leaf)


def _rules_by_node(fired: Sequence[Any]) -> dict[Node, tuple[str, ...]]:
    found: dict[Node, tuple[str, ...]] = {}
    for firing in fired:
        found[firing.after] = tuple(dict.fromkeys((*found.get(firing.after, ()), firing.rule.name)))
    return found


class _Views:
    """The views of one portrait, and the details that are computed on demand."""

    def __init__(self, shown: Portrait, source: str) -> None:
        self.shown = shown
        self.passed: list[Graph] = []
        texts: dict[str, dict[int, str]] = {shown.cell: functions_of(source)}

        def function(cell: str, line: int) -> str:
            if cell not in texts:
                texts[cell] = functions_of(source_of(cell))
            return texts[cell].get(line, "")

        self.drawing = Drawing(shown.cell, places(shown.lens, shown.cell), shown.preview, function, source_of)

    @cached_property
    def first(self) -> View:
        """Return the graph as it was captured."""
        return self.view("captured", self.shown.primal, self.shown.names, written=True)

    def view(self, name: str, graph: Graph, outputs: Sequence[str], **told: Any) -> View:
        """Return a view of one of the portrait's graphs, with the copies to and from the GPU if it computes it."""
        made = self.drawing.view(name, self.scope(graph), outputs, **told)
        return self.into(made, graph) if self.shown.is_on_gpu else made

    @cached_property
    def into(self) -> Callable[[View, Graph], View]:
        """Return a function that adds copies between devices to a view, starting from where the inputs are now."""
        from tensormagic.notebook.pictures.copies import Copies  # with all kinds of kernels

        there = {k for k, leaf in enumerate(self.shown.leaves) if session.stays(leaf)}
        return Copies(there, self.drawing.ids, self.shown.number).into

    def views(self) -> tuple[View, ...]:
        """Return the views captured and rewritten, and gradient and kernels where there are any."""
        shown, drawing = self.shown, self.drawing
        everything = (*shown.names, *shown.gradients)
        found = [self.first]
        first, final = shown.first, shown.executable
        drawing.follow(shown.primal, first.graph)
        drawing.known |= drawing.naming.rewritten([*first.fired, *final.rewritten.fired], drawing.known)
        rules = _rules_by_node(first.fired)
        found.append(self.view("rewritten", first.graph, shown.names, rules=rules))
        drawing.follow(first.graph, final.graph)
        kernel, yellow = steps_of(shown.outline, final.graph)
        if shown.gradients:
            rules = _rules_by_node(final.rewritten.fired)
            found.append(self.view("gradient", final.graph, everything, rules=rules))
        found.append(self.view("kernels", final.graph, everything, kernel=kernel, yellow=yellow))
        return tuple(found)

    def scope(self, graph: Graph) -> Scope:
        """Return how the portrait's own graphs are read."""
        return Scope(graph, self.shown.graph.names, self.shown.number)

    def went(self, view: str) -> dict[int, Mapping[str, str]]:
        """Return the captions of a view's branches for this run, by the numbers of vertices, where a little work can tell."""
        shown = self.shown
        graphs = {"captured": shown.primal, "rewritten": shown.first.graph}
        try:
            known = dict(zip(shown.graph.parameters, shown.values, strict=True))
        except TensorError:  # an input has changed since
            return {}
        found = glimpse(graphs.get(view, shown.executable.graph), known, shown.number)
        return {number: found[node] for node, number in self.drawing.numbers.items() if node in found}

    def details(self) -> Details:
        """Return the steps of rewriting, and the measurements."""
        shown = self.shown
        names, everything = shown.names, (*shown.names, *shown.gradients)
        steps = {"rewritten": self.steps(shown.primal, shown.first, names)}
        if shown.gradients:
            steps["gradient"] = self.steps(shown.graph, shown.executable.rewritten, everything)
        graphs = [shown.graph, shown.first.graph, shown.executable.graph, *self.passed]
        try:
            known = dict(zip(shown.graph.parameters, shown.values, strict=True))
            found, note = measure(graphs, known, shown.number)
        except TensorError as error:  # an input has changed since: there are no values, and the error says why
            found, note = {}, f"No values: {error}"
        measured = {number: found[node] for node, number in self.drawing.numbers.items() if node in found}
        return Details(measured, {name: made for name, made in steps.items() if len(made) > 1}, note)

    def steps(self, graph: Graph, rewritten: Any, outputs: Sequence[str]) -> tuple[Step, ...]:
        """Return the graph before a rewriting, and after each step of it."""
        drawing = self.drawing
        before = drawing.view("step", self.scope(graph), outputs)
        made = [Step((), before, ())]
        found = Explained(graph, rewritten, lambda: self.shown.values, seconds=MEASURING)
        for fired, after in replayed(graph, rewritten.fired, rewritten.graph):
            drawing.follow(graph, after)
            self.passed.append(after)
            view = drawing.view("step", self.scope(after), outputs, rules=_rules_by_node(fired))
            old = {vertex.id for vertex in before.everything()}
            put = {drawing.ids[f.after] for f in fired if f.after in drawing.ids}
            ops = [vertex.id for vertex in view.everything() if vertex.is_op]
            present = tuple(key for key in ops if key not in old or key.rpartition("/")[2] in put)
            bought = str(found.bought(fired, graph, after)) if len(fired) == 1 else ""
            made.append(Step(tuple(self.rewrite(f, bought) for f in fired), view, present))
            graph, before = after, view
        return tuple(made)

    def rewrite(self, firing: Any, bought: str) -> Rewrite:
        """Return a rule that fired, described, with its effect on errors and cost."""
        spans = self.shown.spans(firing.before) or self.drawing.spans(firing.before) or firing.sites
        where = ", ".join(dict.fromkeys(map(str, spans)))
        rule = firing.rule
        source = f"rule written in {written_in(rule)}" if rule.source else ""
        meant = brought_in([rule.name])
        told = "; ".join(f"{name} is {text}" for name, text in meant.items())
        return Rewrite(self.drawing.in_cell(rule.name), LEVEL_WORDS[rule.level], where, source, bought, told)


def written_in(rule: Rule) -> str:
    """Return the file that states a rule, and the line in it; where no user has stated it, whose file that is."""
    place = rule.source.rpartition("/")[2]
    return f"tensormagic's {place}" if rule in _stated() else place


@cache
def _stated() -> frozenset[Rule]:
    """Return the rules that tensormagic states."""
    return frozenset((*rules("real"), *OF_LOOPS))


def steps_of(plan: Plan | Outline | None, graph: Graph) -> tuple[dict[Node, int], set[Node]]:
    """Return the number of the step that computes each node of the graph, and the nodes that stay in NumPy."""
    kernel: dict[Node, int] = {}
    yellow: set[Node] = set()
    if plan is None:
        return kernel, yellow
    planned = iter(plan.kernels)
    for number, step in enumerate(plan.steps, 1):
        if isinstance(step, Node):
            kernel[step] = number
            if plan.is_slow(step):
                yellow.add(step)
        else:
            for node in next(planned).nodes:
                kernel.setdefault(node, number)
    rest = [
        node for node in graph.nodes if node.args and len(node.types) == 1 and node not in kernel
    ]  # kernels are of simpler nodes
    for node, simple in zip(rest, expand_all(rest), strict=True):
        if simple in kernel:
            kernel[node] = kernel[simple]
    return kernel, yellow
