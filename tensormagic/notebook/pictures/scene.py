"""The scene: what a picture of a graph shows, as plain immutable data, and the message that carries it to a page.

A scene knows neither the graph it was made from nor IPython. The widget, the static SVG and the exported page draw it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.pictures.labels import clean, symbol

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.picture import Picture

__all__ = ["KINDS", "Edge", "Scene", "Vertex", "View"]

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
)
_NOT_OPS = frozenset({"input", "constant", "output"})


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
        A few values, or nothing.
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

    @property
    def is_op(self) -> bool:
        """Whether the vertex computes something."""
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

    @property
    def ops(self) -> int:
        """How many vertices compute something."""
        return sum(vertex.is_op for vertex in self.vertices)

    @property
    def kernels(self) -> int:
        """How many kernels the vertices name."""
        return len({vertex.kernel for vertex in self.vertices} - {None})

    @cached_property
    def picture(self) -> Picture:
        """The view laid out; computed once."""
        from tensormagic.notebook.pictures.draw import draw  # a picture is made of a view, so it knows this file

        return draw(self)


@dataclass(frozen=True)
class Scene:
    """Everything that one picture shows: a title, the cell's text, and one or more views of its graph."""

    title: str
    source: str
    views: tuple[View, ...]

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
        names = ", ".join(view.name for view in self.views) or "none"
        raise KeyError(f"no view {name!r} in this scene; there are: {names}")

    @property
    def summary(self) -> str:
        """One line: ``graph: 12 ops → 2 kernels``.

        >>> Scene("", "", (View("captured", (Vertex("a", "exp", "pointwise"),), ()),)).summary
        'graph: 1 op'
        """
        if not self.views:
            return "graph: nothing"
        ops = self.views[0].ops
        text = f"graph: {ops} op{'s' * (ops != 1)}"
        kernels = max(view.kernels for view in self.views)
        return f"{text} → {kernels} kernel{'s' * (kernels != 1)}" if kernels else text

    def text(self, lines: int = 12) -> str:
        """Return the scene in words: the summary, and for each source line its ops."""
        source = [clean(line, 80) for line in self.source.splitlines()]
        rows: list[str] = []
        if self.views:
            by_line: dict[int, list[Vertex]] = {}
            for vertex in self.views[0].vertices:
                if vertex.is_op and vertex.line is not None:
                    by_line.setdefault(vertex.line, []).append(vertex)
            for line in sorted(by_line):
                written = source[line - 1].strip() if 0 < line <= len(source) else ""
                rows.append(f"  line {line}  {written}\n    {_listed(by_line[line])}")
        if len(rows) > lines:
            rows[lines:] = [f"  and {len(rows) - lines} more lines"]
        title = clean(self.title, 80)
        return "\n".join([f"{title}, {self.summary}" if title else self.summary, *rows])

    def message(self) -> dict[str, Any]:
        """Return the scene with its pictures as JSON data, vertices that occur in several views once."""
        table: dict[Vertex, int] = {}
        shapes: dict[str, int] = {}
        views = [
            {
                "name": clean(view.name, 60),
                "ops": view.ops,
                "kernels": view.kernels,
                "picture": view.picture.message(table, shapes),
            }
            for view in self.views
        ]
        from tensormagic.notebook.pictures.palette import standalone
        from tensormagic.notebook.pictures.picture import HEAD

        return {
            "title": clean(self.title, 200),
            "summary": self.summary,
            "source": [clean(line, 400) for line in self.source.splitlines()[:2000]],
            "vertices": [_vertex_message(vertex) for vertex in table],
            "shapes": list(shapes),
            "head": HEAD,
            "style": standalone(),
            "views": views,
        }


def _listed(vertices: list[Vertex]) -> str:
    names = Counter(symbol(clean(vertex.label, 40)) for vertex in vertices)
    ops = ", ".join(name if count == 1 else f"{count} {name}" for name, count in list(names.items())[:12])
    more = ", …" if len(names) > 12 else ""
    return f"{ops}{more}: {clean(vertices[-1].type, 80)}"


def _vertex_message(vertex: Vertex) -> dict[str, Any]:
    """Return the fields that say something, texts cleaned."""
    message: dict[str, Any] = {}
    for item in fields(vertex):
        value = getattr(vertex, item.name)
        if isinstance(value, str):
            value = clean(value, 1000 if item.name == "preview" else 300)
        elif item.name == "rules":
            value = [clean(rule, 120) for rule in vertex.rules[:40]]
        if value not in ("", None, [], False) and (item.name, value) != ("role", "value"):
            message[item.name] = value
    return message
