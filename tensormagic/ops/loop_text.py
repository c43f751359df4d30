"""Loops as Python source: the NumPy tier runs the source of a loop, with the regions inside it, instead of one node after the other.

An op gives its value as a Python expression (:meth:`Op.expression`); for one that gives none, the text calls its
``evaluate``. The schedule is the interpreter's own (:mod:`tensormagic.ops.interpret`), and so are values, errors and
guards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from sys import getrefcount
from typing import Any, NamedTuple, cast

import numpy as np

from tensormagic.ir.graph import Graph, Guard, bare_symbol, check, sizer
from tensormagic.ir.node import Node
from tensormagic.ir.python_text import bracketed, python_text
from tensormagic.ir.size import Dim, Size, Symbol, nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops.interpret import Step, bind, computed, is_own, schedule
from tensormagic.ops.move import RESHAPE, SLICE, drops_ones, without_ones
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import ITEM

DEEPEST = 12  # nested blocks: CPython allows 20


class Given(NamedTuple):
    """An operand of a region.

    Parameters
    ----------
    name
        Its variable.
    type
        Its type.
    owned
        Whether nothing reads it after the region.
    """

    name: str
    type: Type
    owned: bool


class Text:
    """The text being written: its lines, the objects they mention, and the nodes that each line computes, innermost first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.nodes: list[tuple[Node, ...]] = []
        self.objects: dict[str, Any] = {}
        self.depth = 1
        self.within: list[Node] = []
        self._named: dict[tuple[str, int], str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Write one line in the current block."""
        self.lines.append("    " * self.depth + text)
        self.nodes.append(tuple(reversed(self.within)))

    def fresh(self, letter: str = "v") -> str:
        """Return the name of a new variable."""
        self._count += 1
        return f"{letter}{self._count}"

    def object(self, value: Any, letter: str = "K") -> str:
        """Return the name of an object, which is kept alive."""
        key = letter, id(value)
        if key not in self._named:
            self._named[key] = f"{letter}_{len(self.objects)}"
            self.objects[self._named[key]] = value
        return self._named[key]

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Indent the lines written within, under ``head``."""
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def drop(self, names: Sequence[str]) -> None:
        """Set variables to None."""
        if names:
            self.line(f"{' = '.join(names)} = None")

    def move(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Assign all sources to the targets in one statement."""
        if sources and list(sources) != list(targets):
            self.line(f"{', '.join(targets)} = {', '.join(sources)}")

    def formed(self, name: str, given: Type, wanted: Type) -> str:
        """Return an expression for a rank-0 value converted to the form of ``wanted``."""
        if wanted.shape or given.form == wanted.form:
            return name
        if wanted.form == "array":
            return f"{self.object(np.asarray)}({name})"
        if wanted.form == "python":
            return f"{name}.item()"
        return f"{name}[()]" if given.form == "array" else f"{self.object(wanted.dtype.type)}({name})"

    def function(self, name: str, parameters: str) -> Callable[..., Any]:
        """Compile the lines as the body of a function."""
        source = "\n".join([f"def {name}({parameters}):", *self.lines, ""])
        names = {**self.objects, "__name__": __name__, "NODES": [(), (), *self.nodes]}
        exec(compile(source, "<tensormagic loop>", "exec"), names)  # noqa: S102 (our own text)
        return cast("Callable[..., Any]", names[name])


class Scope:
    """Writes the text of one closed graph.

    Parameters
    ----------
    text
        Where it is written.
    graph
        The graph.
    given
        The operands for its parameters.
    moving
        For the body or test of a loop, the number of leading parameters that change from iteration to iteration.
    """

    def __init__(self, text: Text, graph: Graph, given: Sequence[Given], moving: int | None = None) -> None:
        self.text = text
        self.graph = graph
        self.given = given
        self.plan = schedule(graph, moving)
        self.names: dict[Node, str] = {p: g.name for p, g in zip(graph.parameters, given, strict=True)}
        self.symbols: dict[Symbol, str] = {}
        self._users: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for a in node.needs:
                self._users.setdefault(a, []).append(node)
        self._alive = Counter(g.name for g in given)  # how many nodes with later readers each variable holds
        self._fixed = {g.name for g in given if not g.owned}  # variables that may not be dropped or stored into
        self._made = {g.name: None for g in given if g.owned and is_heavy(g.type)}  # arrays held by variables
        self._kept: set[str] = set()  # arrays that are the same at every iteration
        self._parts: dict[Node, list[str]] = {}  # the variables of nodes with several results
        self._last: tuple[Node, ...] = ()  # the operands that nothing reads after the present step
        for node, value in self.plan.constants.items():
            self.names[node] = _literal(value) or text.object(value)
            self._fixed.add(self.names[node])

    # sizes ------------------------------------------------------------------------------------------------------------

    def size(self, size: Size) -> str:
        """Return a size as an expression, in brackets unless it is a name or a number."""
        return bracketed(python_text(size, self._atom))

    def _atom(self, a: Any) -> str:
        if isinstance(a, Symbol):
            return self.symbols[a]
        return self.names[a] if a.type.form == "python" else f"int({self.names[a]})"

    def shape(self, shape: Sequence[Size]) -> str:
        """Return a shape as a tuple."""
        return f"({''.join(f'{self.size(s)}, ' for s in shape)})"

    def users_of(self, node: Node) -> Sequence[Node]:
        """Return the nodes that read ``node``."""
        return self._users.get(node, ())

    def drops(self, node: Node) -> bool:
        """Return whether a slice is taken without its axes of extent 1."""
        return drops_ones(node, self.users_of(node)) and node not in self.graph.results

    def is_number(self, node: Node) -> bool:
        """Return whether a slice of one element is taken as a number."""
        return self.drops(node) and not without_ones(node.type.shape)

    def is_dropped(self, node: Node, name: str) -> bool:
        """Return whether ``name`` holds a slice without its axes of extent 1, or the value to which the reshape ``node`` adds them."""
        if node in self.names and node.op is SLICE and self.names[node] == name:
            return self.drops(node)
        return bool(node.args) and node.op is RESHAPE and self.names.get(node.args[0]) == name

    def overwritten(self, node: Node) -> tuple[str, str] | None:
        """Return an operand of the result's type that is dead afterwards, and the condition that only its variable holds it; else None."""
        for a in node.args:
            name = self.names[a]
            dead = a in self._last and name in self._made and name not in self._fixed and self._alive[name] == 1
            if dead and a.type == node.type and node.type.shape:
                own, held = self.text.object(is_own), self.text.object(getrefcount)
                return name, f"{held}({name}) <= {_ONE} and {own}({name})"
        return None

    def evaluated(self, node: Node) -> str:
        """Return a call of the op's own ``evaluate``."""
        object_of, args = self.text.object, ", ".join(self.names[a] for a in node.args)
        return f"{object_of(node.op.evaluate)}({object_of(node)}, [{args}], {self._sizer_of(node)})"

    def _sizer_of(self, node: Node) -> str:
        return self._sizer(node.sized_by) if _is_sized(node) else self.text.object(_same)

    def _sizer(self, nodes: Sequence[Node]) -> str:
        """Return the function that evaluates sizes, as ``evaluate`` takes it."""
        symbols = ", ".join(f"{self.text.object(a)}: {name}" for a, name in self.symbols.items())
        values = ", ".join(f"{self.text.object(n)}: {self.names[n]}" for n in nodes)
        return f"{self.text.object(sizer)}({{{symbols}}}, {{{values}}})"

    # the parts of a run -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Write what is done once: convert numbers to the forms of the parameters, read and check sizes."""
        for p, g in zip(self.graph.parameters, self.given, strict=True):
            if p.type.form != g.type.form and not p.type.shape:
                self._bind(p, self._variable(self.text.formed(g.name, g.type, p.type), heavy=False))
        conditions: list[str] = []
        known: list[tuple[str, Size]] = []
        for p in self.graph.parameters:
            if p.type.shape:
                axes = [self.text.fresh("n") for _ in p.type.shape]
                self.text.line(f"{''.join(f'{axis}, ' for axis in axes)}= {self.names[p]}.shape")
                known += zip(axes, p.type.shape, strict=True)
        for axis, size in known:
            symbol = bare_symbol(size)
            if symbol is not None and symbol not in self.symbols:
                self.symbols[symbol] = axis
                conditions += [f"{axis} >= {symbol.least}"] if symbol.least else []
        conditions += [f"{axis} == {self.size(s)}" for axis, s in known if self.size(s) != axis]
        late = set(self.graph.checks)
        conditions += [self._relation(g) for g in self.graph.guards if g not in late]
        if conditions:
            arrays = ", ".join(self.names[p] if p.type.shape else "0" for p in self.graph.parameters)
            with self.text.block(f"if not ({' and '.join(conditions)}):"):
                self.text.line(f"{self.text.object(bind)}({self.text.object(self.graph)}, [{arrays}])")

    def first(self) -> None:
        """Write the checks before the first step."""
        self._check(self.plan.first)

    @property
    def is_checked(self) -> bool:
        """Whether anything is checked before the first step."""
        return bool(self.plan.first)

    @property
    def repeats(self) -> bool:
        """Whether some steps are the same at every iteration."""
        return bool(self.plan.once)

    def once(self) -> None:
        """Write the steps that are the same at every iteration."""
        before = set(self._made)
        for step in self.plan.once:
            self._step(step)
        self._kept = set(self._made) - before
        self._fixed |= self._kept

    def steps(self, targets: Sequence[str]) -> None:
        """Write the other steps, and assign the results to ``targets``."""
        for step in self.plan.steps:
            self._step(step)
        self.text.move([self.names[r] for r in self.graph.results], targets)
        self.text.drop([name for name in self._made if name not in self._fixed and name not in targets])

    def end(self) -> None:
        """Write that the values which were the same at every iteration are dropped."""
        self.text.drop(sorted(self._kept))

    # steps ------------------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        self.text.within.append(step.node)
        self._last = step.before
        alias = self._alias(step)
        if alias is not None:
            self._bind(step.node, alias)
            self._drop((*step.before, *step.after))
        elif not (self._inside(step) or self._stored(step)):
            expression = step.node.op.expression(step.node, [self.names[a] for a in step.node.args], self)
            if expression is None:
                self._called(step)
            elif getattr(step.node.op, "each_formed", False):
                targets = [self.text.fresh() for _ in step.node.types]
                self.text.line(f"{', '.join(targets)} = {expression}")
                self._have(step, targets)
            else:
                self._assign(step, expression)
        self._check(step.guards)
        self.text.within.pop()

    def _alias(self, step: Step) -> str | None:
        """Return an existing name for a node (one of several results, or a move that its readers redo themselves), or None."""
        node = step.node
        if node.op is ITEM and node.args[0] in self._parts:
            return self._parts[node.args[0]][node["index"]]
        if node.op is RESHAPE and self.drops(node.args[0]):  # the slice was already copied if necessary
            return self.names[node.args[0]]
        if step.copies or node in self.graph.results or node in self.graph.checked:
            return None
        return self.names[node.args[0]] if node.op.is_aside(node, self) else None

    def _inside(self, step: Step) -> bool:
        """Write a region inline, and return True; return False for any other op."""
        write = getattr(step.node.op, "written", None)
        if write is None or self.text.depth > DEEPEST:
            return False
        dead = {self.names[a] for a in step.before if a not in step.node.sized_by} - self._fixed
        own = [self.names[a] for a in step.node.args]
        given = [
            Given(name, a.type, name in dead and self._alive[name] == own.count(name) == 1)
            for name, a in zip(own, step.node.args, strict=True)
        ]
        targets = [self.text.fresh() for _ in step.node.types]
        write(step.node, self.text, given, targets)
        self._have(step, targets)
        return True

    def _have(self, step: Step, targets: list[str]) -> None:
        """Record that variables hold the results of a step, one each."""
        self._parts[step.node] = targets
        for name, t in zip(targets, step.node.types, strict=True):
            self._alive[name] += 1
            self._made |= {name: None} if is_heavy(t) else {}
        self.names[step.node] = targets[0] if len(targets) == 1 else f"({', '.join(targets)})"
        self._drop((*step.before, *step.after))

    def _stored(self, step: Step) -> bool:
        """Write a store, in place or into a copy if other nodes read the array; return False if the op cannot be written so."""
        node, text = step.node, self.text
        if step.reuse is None or not hasattr(node.op, "store"):
            return False
        old = self.names[node.args[0]]
        found = node.op.store(node, [self.names[a] for a in node.args], self)  # type: ignore[attr-defined]
        if found is None:
            return False
        copied, store = found
        if node.args[0] in step.before and old not in self._fixed and self._alive[old] == 1:
            name = old
            borrowed = f"not {old}.flags.carray or ({old}.base is not None and not {text.object(is_own)}({old}))"
            others = f"{old}.is_choice" if node.type.form == "tape" else borrowed
            text.line(f"if {others} or {text.object(getrefcount)}({old}) > {_ONE}: {old} = {copied}")
        else:
            name = self._variable(copied, heavy=True)
        text.line(store(name))
        self._bind(node, name)
        self._drop((*step.before, *step.after))
        return True

    def _called(self, step: Step) -> None:
        """Write a call of the op's own ``evaluate``, which may reuse dead operands."""
        node, text = step.node, self.text
        if step.reuse is None and step.consume is None:
            self._assign(step, self.evaluated(node))
            return
        given = text.fresh("g")
        text.line(f"{given} = [{', '.join(self.names[a] for a in node.args)}]")
        dead = [a for a in step.before if a not in node.sized_by]
        self._drop(dead)
        rest = tuple(a for a in (*step.before, *step.after) if a not in dead)
        self._assign(
            step._replace(before=(), after=rest),
            f"{text.object(computed)}({text.object(step)}, {given}, {self._sizer_of(node)})",
        )
        text.line(f"{given} = None")

    # variables --------------------------------------------------------------------------------------------------------

    def _assign(self, step: Step, expression: str) -> None:
        heavy = any(map(is_heavy, step.node.types)) and not self.is_number(step.node)
        name = self._variable(expression, heavy=heavy)
        if step.copies and heavy:
            self.text.line(f"if {name}.base is not None: {name} = {name}.copy()")
        self._bind(step.node, name)
        self._drop((*step.before, *step.after))

    def _variable(self, expression: str, *, heavy: bool) -> str:
        name = self.text.fresh()
        self.text.line(f"{name} = {expression}")
        if heavy:
            self._made[name] = None
        return name

    def _bind(self, node: Node, name: str) -> None:
        self.names[node] = name
        self._alive[name] += 1

    def _drop(self, dead: Sequence[Node]) -> None:
        names: dict[str, None] = {}
        for a in dict.fromkeys(dead):
            for name in self._parts.get(a) or [self.names[a]]:
                self._alive[name] -= 1
                if not self._alive[name] and name not in self._fixed and name in self._made:
                    names[name] = None
                    del self._made[name]
        self.text.drop(list(names))

    # guards -----------------------------------------------------------------------------------------------------------

    def _relation(self, guard: Guard) -> str:
        left, relation, right = guard
        return f"{self.size(left)} {relation} {self.size(right)}"

    def _check(self, guards: Sequence[Guard]) -> None:
        for guard in guards:
            nodes = list(dict.fromkeys([*nodes_of(guard[0]), *nodes_of(guard[2])]))
            with self.text.block(f"if not {self._relation(guard)}:"):
                self.text.line(f"{self.text.object(check)}({self.text.object(guard)}, {self._sizer(nodes)}.atom)")


def write_graph(text: Text, graph: Graph, given: Sequence[Given], targets: Sequence[str]) -> None:
    """Write a graph that runs once, and assign its results to ``targets``."""
    scope = Scope(text, graph, given)
    scope.begin()
    scope.first()
    scope.steps(targets)


def is_heavy(t: Type) -> bool:
    """Return whether a value is dropped as early as possible."""
    return bool(t.shape) or t.form == "tape"


def _literal(value: Value) -> str | None:
    """Return a finite Python number as text, or None for anything else."""
    if type(value) not in {int, bool, float} or not math.isfinite(value):
        return None
    return repr(value) if math.copysign(1, value) > 0 else f"({value!r})"


def _is_sized(node: Node) -> bool:
    """Return whether the params or types of a node contain a symbolic size."""
    pending: list[Any] = [*(v for _, v in node.param_items), *(t.shape for t in node.types)]
    while pending:
        value = pending.pop()
        if isinstance(value, Dim):
            return True
        if type(value) is tuple:
            pending += value
    return False


def _same(size: int) -> int:
    return size


def _alone() -> int:
    own = object()
    return getrefcount(own)


_ONE = _alone()  # the reference count of an object that one variable holds
