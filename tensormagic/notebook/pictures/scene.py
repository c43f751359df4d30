"""The scene: the content of a graph's picture, as plain immutable data.

A scene knows neither the graph it was made from nor IPython. The widget, the static SVG and the exported page draw
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.pictures.details import Details
from tensormagic.notebook.pictures.draw import draw
from tensormagic.notebook.pictures.folding import folded
from tensormagic.notebook.pictures.labels import STAGES, SYMBOLS, clean, counted, operation, symbol
from tensormagic.notebook.pictures.picture import COLLAPSE_ABOVE
from tensormagic.ops.opaque import ITEM

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.picture import Picture

__all__ = ["COLLAPSE_ABOVE", "KINDS", "Edge", "Scene", "Vertex", "View"]

KINDS = (
    "input",
    "constant",
    "pointwise",
    "fold",
    "move",
    "update",
    "contract",
    "opaque",
    "region",
    "output",
    "sent",
)
MOST_RULES = 8  # that a text lists
_GROWN = "there are more ops after rewriting: what is one op as written can be several (a mean is a sum and a division), and checks count"
_NOT_OPS = frozenset({"input", "constant", "output", "sent"})


@dataclass(frozen=True)
class Vertex:
    """One vertex of a picture.

    Parameters
    ----------
    id : str
        The same in every view in which the vertex occurs.
    label : str
        The op's name, the input's or output's name, or the constant's value.
    kind : str
        One of `KINDS`.
    type, symbolic : str
        The type with the sizes of this run, ``float64[569, 30]``, and with their symbols, ``float64[n, p]``.
    line : int, optional
        The source line, counted from 1 in the cell's text.
    cell : str
        Where it was written: ``In[3]``.
    role : str
        ``value``, ``tangent``, ``adjoint``, or ``rewritten by RULE``.
    rules : tuple of str
        The rewrite rules that had a part in it.
    kernel : int, optional
        The kernel that computes it.
    yellow : bool
        Whether it runs in NumPy and not in compiled code.
    preview : str
        A few values, or empty.
    function : str
        The user's function in whose text it was written.
    name : str
        The name that its value has in the user's text.
    written : str
        The indexing expression that it reads or stores, as in the user's text: ``image[i:i + 30]``.
    number : int
        The key of its measurements; vertices of one id for different nodes have different numbers.
    place : str
        Where it is computed, if several processes share the work.
    calls : tuple of str
        The calls in the user's text that it is a part of: the name of each and, in a second line, its place.
    parts : tuple of int
        The numbers of the vertices that are joined in it.
    derived : bool
        Whether it was made by rules, and only gradients need it.
    meaning : str
        One line on what the operation does, if the user's text does not name it.
    """

    id: str
    label: str
    kind: str
    type: str = ""
    symbolic: str = ""
    line: int | None = None
    cell: str = ""
    role: str = "value"
    rules: tuple[str, ...] = ()
    kernel: int | None = None
    yellow: bool = False
    preview: str = ""
    function: str = ""
    name: str = ""
    written: str = ""
    number: int = 0
    place: str = ""
    calls: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()
    derived: bool = False
    meaning: str = ""

    @property
    def title(self) -> str:
        """Return ``e = exp`` or ``z = · + ·``: the name and the operation, or the one of them that there is."""
        if self.written:
            named = f"{self.name} = " if self.name and self.kind != "update" else ""
            return clean(f"{self.written} = ·" if self.kind == "update" else f"{named}{self.written}", 60)
        called = operation if self.is_op else symbol
        label = called(clean(self.type if self.label == "form" else self.label, 60)) or "?"
        if self.name and self.label == ITEM.name:
            return clean(self.name, 60)
        if not self.name or not self.is_op:
            return label
        return f"{clean(self.name, 40)} = {f'· {label} ·' if label in SYMBOLS.values() else label}"

    @property
    def is_op(self) -> bool:
        """Return whether the vertex computes something."""
        return self.kind not in _NOT_OPS


@dataclass(frozen=True)
class Edge:
    """One operand: `source` is operand number `port` of `target`, both given by their ids."""

    source: str
    target: str
    port: int = 0


@dataclass(frozen=True)
class View:
    """One graph under a name: ``captured``, ``rewritten``, ``gradient`` or ``kernels``."""

    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    outputs: tuple[str, ...] = ()
    inner: Mapping[str, tuple[View, ...]] = field(default_factory=dict)  # graphs of loops and branches, by id
    is_folded: bool = False  # whether what only carries values was left out
    returns: tuple[
        tuple[str, str], ...
    ] = ()  # in a loop's body, by ids: who makes a value, and which input it is in the next iteration

    @cached_property
    def drawn(self) -> View:
        """Return the view without vertices that only carry values; these are drawn, listed and counted only if every step is asked for."""
        return self if self.is_folded else folded(self)

    @property
    def groupings(self) -> tuple[str, ...]:
        """Return how the vertices can be grouped, the usual way first; ``none``: not at all, ``all``: not folded."""
        drawn = self.drawn
        ops = [vertex for vertex in drawn.vertices if vertex.is_op]
        known = {
            "place": any(vertex.place for vertex in ops),
            "kernel": any(vertex.kernel is not None for vertex in ops),
            "none": len(drawn.vertices) <= COLLAPSE_ABOVE,
            "line": any(vertex.line for vertex in ops) or len(drawn.vertices) > COLLAPSE_ABOVE,
            "function": any(vertex.function for vertex in ops),
            "all": len(drawn.vertices) < len(self.vertices) <= COLLAPSE_ABOVE,
        }
        return tuple(name for name, there in known.items() if there)

    def everything(self) -> Iterator[Vertex]:
        """Yield the vertices, and those of the graphs inside them."""
        stack = [self]
        while stack:
            view = stack.pop()
            yield from view.vertices
            stack += [body for bodies in view.inner.values() for body in bodies]

    @cached_property
    def ops(self) -> int:
        """Return how many of the drawn vertices compute something, including those inside loops and branches."""
        return sum(vertex.is_op for vertex in self.drawn.everything())

    @property
    def made_by_rules(self) -> str:
        """Return ``, 30 of them made by rules`` for a gradient where most are, else ""."""
        made = sum(vertex.derived and vertex.is_op for vertex in self.drawn.vertices)
        return f", {made} of them made by rules" if 2 * made > self.ops else ""

    def elsewhere(self, cell: str) -> str:
        """Return ``, 29 of them in In[4]``, the number of ops written in other cells than the one shown, or ""."""
        others = [v for v in self.drawn.vertices if v.is_op and v.cell not in {"", cell}]
        bodies = [body for vertex in others for body in self.drawn.inner.get(vertex.id, ())]
        count, cells = len(others) + sum(body.ops for body in bodies), sorted({vertex.cell for vertex in others})
        where = cells[0] if len(cells) == 1 else "earlier cells"
        return f", {count} of them in {where}" if 0 < count < self.ops and cell else ""

    @property
    def counted(self) -> str:
        """Return ``12 ops``, or for a view grouped by kernels ``2 compiled kernels``."""
        count, what = (self.kernels, "compiled kernel") if self.kernels else (self.ops, "op")
        return f"{count} {what}{'s' * (count != 1)}{'' if self.kernels else self.made_by_rules}"

    @cached_property
    def kernels(self) -> int:
        """Return how many kernels the vertices name."""
        return len({vertex.kernel for vertex in self.vertices} - {None})

    @property
    def picture(self) -> Picture:
        """Return the view laid out in the usual way; computed once."""
        return self.grouped(self.groupings[0])

    def grouped(self, grouping: str) -> Picture:
        """Return the view laid out with its vertices grouped in one of the ways of `groupings`; computed once."""
        if grouping not in self._pictures:
            self._pictures[grouping] = draw(self if grouping == "all" else self.drawn, grouping)
        return self._pictures[grouping]

    @cached_property
    def _pictures(self) -> dict[str, Picture]:
        return {}


@dataclass(frozen=True)
class Scene:
    """Everything that one picture shows.

    Parameters
    ----------
    title, source : str
        The title, and the cell's text.
    views : tuple of View
        One or more views of its graph.
    later : callable, optional
        Computes the details of nodes when somebody looks.
    rules : tuple of str
        The rules that may have changed digits, with their levels.
    word : str
        Their effect on rounding, in one word, as it is displayed under the cell.
    chosen : tuple of str
        One sentence for each branch that was decided during capture.
    soon : callable, optional
        Computes, with little work, which branches and how many iterations of a view were run.
    rest : callable, optional
        Makes the scene with all views, if this one only holds the first.
    """

    title: str
    source: str
    views: tuple[View, ...]
    later: Callable[[], Details] | None = field(default=None, compare=False, repr=False)
    rules: tuple[str, ...] = ()
    word: str = ""
    chosen: tuple[str, ...] = ()
    soon: Callable[[str], Mapping[int, Mapping[str, str]]] | None = field(default=None, compare=False, repr=False)
    rest: Callable[[], Scene] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def whole(self) -> Scene:
        """Return the scene with all of its views."""
        return self.rest() if self.rest is not None else self

    def view(self, name: str) -> View:
        """Return the view of that name.

        Raises
        ------
        KeyError
            Where there is none; the message names those that there are.
        """
        for view in self.views:
            if view.name == name:
                return view
        if self.rest is not None:
            return self.whole.view(name)
        names = ", ".join(view.name for view in self.views) or "none"
        raise KeyError(f"no view {name!r} in this scene; there are: {names}")

    @property
    def summary(self) -> str:
        """Return one line with the stages of the computation: ``graph: 12 ops as written → 9 after rewriting → 2 compiled kernels``.

        >>> Scene("", "", (View("captured", (Vertex("a", "exp", "pointwise"),), ()),)).summary
        'graph: 1 op'
        """
        if not self.views:
            return "graph: nothing"
        first, *later = self.views
        stage = STAGES.get(first.name, "") if later or self.rest else ""
        told = [f"{f'{first.counted} {stage}'.rstrip()}{first.elsewhere(self.title)}"]
        told += [
            view.counted if view.kernels else f"{view.ops} {STAGES.get(view.name, view.name)}{view.made_by_rules}"
            for view in later
        ]
        return f"graph: {' → '.join(told)}"

    def text(self, lines: int = 12) -> str:
        """Return the scene in words: the summary, and for each source line its ops."""
        source = [clean(line, 80) for line in self.source.splitlines()]
        rows: list[str] = []
        if self.views:
            by_line: dict[int, list[Vertex]] = {}
            for vertex in self.views[0].drawn.vertices:
                if vertex.is_op and vertex.line is not None:
                    by_line.setdefault(vertex.line, []).append(vertex)
            for line in sorted(by_line):
                written = source[line - 1].strip() if 0 < line <= len(source) else ""
                rows.append(f"  line {line}  {written}\n    {_listed(by_line[line])}")
        if len(rows) > lines:
            rows[lines:] = [f"  and {len(rows) - lines} more lines"]
        title = clean(self.title, 80)
        return "\n".join([f"{title}, {self.summary}" if title else self.summary, *rows])

    @property
    def told(self) -> str:
        """Return :meth:`text` without its title, with the rules that may have changed digits."""
        rules = [f"  {rule}" for rule in self.rules[:MOST_RULES]]
        rules += [f"  and {len(self.rules) - MOST_RULES} more rules"] if len(self.rules) > MOST_RULES else []
        notes = [f"  {text}" for text in self.notes]
        return "\n".join([self.summary, *self.text().splitlines()[1:], *notes, *rules])

    @property
    def notes(self) -> list[str]:
        """Return which branches the graph holds alone, and why a later stage has more ops than were written."""
        ops = {view.name: view.ops for view in self.views}
        grown = ops.get("rewritten", 0) > ops.get("captured", 0) > 0
        return [*([_GROWN] if grown else []), *self.chosen[:MOST_RULES]]

    @cached_property
    def details(self) -> Details:
        """Return the details that are computed once, when the graph is opened."""
        return self.later() if self.later is not None else Details()

    def went(self, view: str) -> Mapping[int, Mapping[str, str]]:
        """Return the captions of a view's branches and loops for this run, by the number of the vertex and the name of the frame."""
        if "details" in vars(self):
            return {number: told["went"] for number, told in self.details.measured.items() if "went" in told}
        return self.soon(view) if self.soon is not None else {}

    def message(self, *, deep: bool = False) -> dict[str, Any]:
        """Return the scene with its pictures as JSON data; `deep` includes everything that a page may ask for later."""
        from tensormagic.notebook.pictures.message import scene_message

        return scene_message(self, deep=deep)


def _listed(vertices: list[Vertex]) -> str:
    names = Counter(vertex.title for vertex in vertices)
    ops = ", ".join(counted(dict(list(names.items())[:12])))
    more = ", …" if len(names) > 12 else ""
    return f"{ops}{more}: {clean(vertices[-1].type, 80)}"
