"""A lazy value as lines of mathematics: its formula, those of its parts that have names, its gradients, what the letters mean."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config, leveled, parted
from tensormagic.functions.gradients.value_grad import input_of
from tensormagic.ir import site
from tensormagic.ir.closing import Closed
from tensormagic.ir.errors import DifferentiationError, GuardError, TensorError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Symbol
from tensormagic.notebook.formulas.formula import MOST, Writer
from tensormagic.notebook.formulas.iterations import iterations
from tensormagic.notebook.formulas.latex import Cut, Expression, Name, Next, Part, Slope, latex, plain
from tensormagic.notebook.formulas.structure import guards_infinity
from tensormagic.notebook.formulas.typeset import WIDEST, broken, typeset
from tensormagic.notebook.pictures.adaptor import source_of
from tensormagic.notebook.pictures.naming import Naming
from tensormagic.ops.leaf import CONSTANT, INPUT
from tensormagic.ops.scalars.comparison import where

MOST_LINES = 5  # of parts with names
MOST_DIFFERENTIATED = 400  # nodes above which no gradient is made for a formula alone
MOST_TEXT = 4_000  # characters of one line of LaTeX, above which it is left out
_FOR_DIGITS = (
    "differences",
    "ranges",
    "remainders",
    "triples",
)  # themes of rules that tell cases apart, and simplify nothing
_LETTERS = ("n", "m", "d", "h", "N", "M", "D", "H")
_FEWEST = 6  # parts of a formula that is not cut further
_PAGE = (
    312.0  # pixels of a line with its left side: letters of JupyterLab are 1.6 times as large, and 640 have room for it
)
_ROW = 22  # characters of notes that stand beside each other: what a phone has room for
_COMPUTED = ": computed in "
_EACH = "⊙ elementwise"
_SIGMOID = "σ(x) = 1/(1 + exp(-x))"


@dataclass(frozen=True)
class Formula:
    """A lazy value as mathematics: in a notebook it is shown typeset, elsewhere as text.

    Parameters
    ----------
    lines
        Equations: what stands on the left, and on the right.
    notes
        What letters mean, each in a few words.

    Examples
    --------
    >>> import tensormagic as tm
    >>> x = tm.tensor([1.0, 2.0])
    >>> print((x**2).sum().formula("y"))
    y = sum_{i<n} array1[i]**2
        where n = 2, indices from 0
    """

    lines: tuple[tuple[Expression, Expression], ...]
    notes: tuple[str, ...] = ()

    @property
    def latex(self) -> str:
        r"""Return the equations in LaTeX, one under the other, as text to paste into a paper.

        Examples
        --------
        >>> import tensormagic as tm
        >>> r"\sum" in (tm.tensor([1.0, 2.0]) ** 2).sum().formula("y").latex
        True
        """
        rows: list[str] = []
        beside = max((width for left, _ in self.lines for _, width in broken(latex(left))), default=0.0)
        room = max(_PAGE - beside, _PAGE / 2)
        for left, right in self.lines:
            first, *others = (line for line, _ in broken(_bounded(latex(right)), room))
            sign = r"\leftarrow" if isinstance(left, Next) else "="
            rows += [f"{latex(left)} &{sign} {first}", *(rf"&\quad {line}" for line in others)]
        notes = [*self.notes, *[_EACH] * any(r"\odot" in row for row in rows)]
        rows += ["&" + r",\ \ ".join(map(_note, row)) for row in _packed(notes)]
        return "\\begin{aligned}" + r" \\[2pt] ".join(rows) + "\\end{aligned}"

    def __str__(self) -> str:
        rows = [f"{plain(left)} {'←' if isinstance(left, Next) else '='} {plain(right)}" for left, right in self.lines]
        if self.notes:
            rows.append(f"    where {', '.join(self.notes)}")
        return "\n".join(rows)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def _repr_svg_(self) -> str:
        """Return the picture, which pages show that have no MathJax: those that nbconvert makes, read without a network."""
        return typeset(self.latex, str(self))


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_TEXT else r"\ldots"


def _packed(notes: Sequence[str]) -> list[list[str]]:
    """Return notes in rows, as many in each as fit on a narrow page."""
    rows: list[list[str]] = []
    for note in notes:
        if rows and sum(map(_length, [*rows[-1], note])) <= _ROW:
            rows[-1].append(note)
        else:
            rows.append([note])
    return rows


def _length(note: str) -> int:
    return len(note) - 5 * (note == _SIGMOID)  # whose exp is a power there


def _note(text: str) -> str:
    """Return a note in LaTeX: sizes as mathematics, the rest as words."""
    if text == _SIGMOID:
        return r"\sigma(x) = 1 / (1 + e^{-x})"
    if text == _EACH:
        return r"\odot\text{ elementwise}"
    names, colon, cell = text.partition(_COMPUTED)
    if names and colon:
        return ", ".join(latex(Name(name)) for name in names.split(", ")) + _note(colon + cell)
    if found := re.fullmatch(r"(\w+) = (\d+)", text):
        return f"{latex(Name(found[1]))} = {found[2]}"
    return "\\text{" + re.sub(r"[^\w\s.,:()\[\]/-]", " ", text).replace("_", "-") + "}"


def inputs_of(value: Tensor) -> list[str]:
    """Return the names of the floating inputs that a value depends on, each once."""
    found = [n for n in topological([value.node]) if n.op is INPUT and n.type.dtype.kind in "fc"]
    names = [n["source"].name for n in found]
    return [n for n in dict.fromkeys(names) if names.count(n) == 1 and n.isidentifier()]


def formula_here(value: Tensor, name: str = "", wrt: Iterable[str] = ()) -> Formula:
    """Return the formula of a value as by :func:`formula_of`, with the variables of the running notebook, if there is one.

    Raises
    ------
    DifferentiationError
        For a name that is no input, and for a value that is no real number.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    variables = {} if shell is None else dict(shell.user_ns)
    own = [n for n, v in variables.items() if isinstance(v, Tensor) and v.node is value.node and n.isidentifier()]
    names = list(wrt)
    for parameter in names:
        input_of(value.node, parameter)
    if names and (value.type.shape or value.type.dtype.kind != "f"):
        raise DifferentiationError(
            f"a gradient is that of a real number; this is {value.type}",
            "Leave out wrt, or take a sum or a mean first.",
        )
    shown = next((n for n in own if not n.startswith("_")), "value")
    return formula_of(value, name or shown, variables, names)


def formula_of(
    value: Tensor, name: str = "value", variables: Mapping[str, Any] | None = None, wrt: Iterable[str] = ()
) -> Formula:
    """Return the formula of a lazy value, and of its gradients. Nothing is computed.

    Parameters
    ----------
    value
        The value.
    name
        What it is called on the left.
    variables
        Variables of the notebook: the lazy values among them that this one is made of appear by name.
    wrt
        Names of inputs: of each the gradient is added.
    """
    page = _Page()
    named = {n: v.node for n, v in (variables or {}).items() if isinstance(v, Tensor) and not n.startswith("_")}
    closed = session.close_over([value.node], use_values=False)
    page.add(_Shown(closed, closed.graph, Name(name)), named)
    for parameter in wrt:
        try:
            slope = _gradient(value, parameter)
        except (TensorError, RecursionError) as error:
            page.notes.setdefault(f"no gradient for {parameter}: {str(error).partition(chr(10))[0]}")
            continue
        if slope is not None:
            closed, graph, own = _fewest_cases(value, parameter, slope)
            left = Slope(Name(name), Name(parameter))
            page.add(_Shown(closed, graph, left, own), {**named, name: value.node}, parts=False)
    return page.formula()


_Written = tuple[
    Closed, Graph, Container[Node]
]  # a gradient, closed; as it is written; what the user has written of it


def _fewest_cases(value: Tensor, parameter: str, slope: Tensor) -> _Written:
    """Return a gradient rewritten by the set of rules that leaves the fewest case distinctions: those for accuracy add some."""
    level = config.level(value.level)
    base, off = parted(level)
    found = _written(value, slope, level)
    if _cases(found):
        found = min(found, _written(value, slope, leveled(base, ",".join((*off, *_FOR_DIGITS)))), key=_cases)
    if _cases(found):
        with config.using(math="exact"):
            exact = _gradient(value, parameter)
            others = [] if exact is None else [_written(value, exact, one) for one in (level, "exact")]
            found = min([found, *others], key=_cases)
    return found


def _written(value: Tensor, slope: Tensor, level: str) -> _Written:
    """Return the graph of a gradient, closed over its inputs and simplified by rules, with the user's own nodes."""
    closed = session.close_over([slope.node], use_values=False)
    own = {closed.mapping[n] for n in topological([value.node]) if n in closed.mapping}
    return closed, session.executable(closed.graph, level).graph, own


def _cases(written: _Written) -> int:
    """Return the number of case distinctions, without those that only guard against infinities and are not written."""
    _, graph, own = written
    return sum(node.op is where and not guards_infinity(node, own) for node in graph.nodes)


def _gradient(value: Tensor, parameter: str) -> Tensor | None:
    """Return the gradient of a real number, or None for other values, and if the graph is too large."""
    if value.type.shape or value.type.dtype.kind != "f":
        return None
    if len(topological([value.node])) > MOST_DIFFERENTIATED:
        return None
    return value.grad(parameter)


@dataclass(frozen=True)
class _Shown:
    """A graph to be written: closed, simplified, and with its left-hand side."""

    closed: Closed
    graph: Graph
    left: Expression
    own: Container[Node] | None = None  # what the user has written of it


class _Letters:
    """One letter for each size, in all equations of a page."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # of those that were used
        self._axes: dict[tuple[str, int], str] = {}  # the letter of an input's extent

    def of(self, closed: Closed, graph: Graph) -> Callable[[Symbol, set[str]], str]:
        """Return what gives the letters in one graph, whose symbols are its own: they are known by the inputs' axes."""
        axes: dict[Symbol, list[tuple[str, int]]] = {}
        for p, leaf in zip(graph.parameters, closed.leaves, strict=True):
            for k, extent in enumerate(p.type.shape):
                found = bare_symbol(extent)
                if found is not None and leaf.op is INPUT:
                    axes.setdefault(found, []).append((str(leaf["source"].serial), k))
        sizes = _sizes(closed, graph)
        own: dict[Symbol, str] = {}

        def letter(of: Symbol, taken: set[str]) -> str:
            if of not in own:
                places = axes.get(of, [])
                known = next((self._axes[place] for place in places if place in self._axes), None)
                used = {*taken, *self._axes.values(), *own.values()}
                own[of] = known or next(c for c in (*_LETTERS, *(f"n{k}" for k in range(1, 1000))) if c not in used)
                self._axes.update(dict.fromkeys(places, own[of]))
                if of in sizes:
                    self.numbers[own[of]] = sizes[of]
            return own[of]

        return letter


class _Page:
    """The equations of one value and of its gradients, and what their letters mean."""

    def __init__(self) -> None:
        self.lines: list[tuple[Expression, Expression]] = []
        self.notes: dict[str, None] = {}
        self._letters = _Letters()
        self._blocks: dict[Node, str] = {}
        self._elsewhere: dict[str, list[str]] = {}  # names whose formulas are left out, by cell

    def formula(self) -> Formula:
        """Return the finished page."""
        text = " ".join(f"{plain(left)} = {plain(right)}" for left, right in self.lines)
        notes = [f"{letter} = {number}" for letter, number in self._letters.numbers.items()]
        notes += ["indices from 0"] * bool(re.search(r"_\{|\[", text)) + [_SIGMOID] * ("σ(" in text)
        given = [f"{', '.join(names)}{_COMPUTED}{cell}" for cell, names in self._elsewhere.items()]
        return Formula(tuple(self.lines), (*notes, *given, *self.notes))

    def add(self, shown: _Shown, named: Mapping[str, Node], *, parts: bool = True) -> None:
        """Add the equation of a graph's result, and of the named parts that it mentions."""
        names = _names(shown, named)
        (root,) = shown.graph.results
        left = shown.left
        if isinstance(left, Name) and left.text in {names[p] for p in shown.graph.parameters if p in names}:
            left = Name(f"{left.text}′")  # the name is bound anew, from its old value
        writer = Writer(names, self._letters.of(shown.closed, shown.graph), shown.own)
        writer.blocks = self._blocks
        told = iterations(shown.graph, Naming(site.Lens(shown.closed.mapping).within, source_of)) if parts else {}
        told = {loop: one for loop, one in told.items() if one.is_written(names)}
        writer.named = {loop: tuple(one.names) for loop, one in told.items()}
        lens = site.Lens(shown.closed.mapping)
        here = _cell(lens, root)
        pending: list[tuple[Expression | None, Node]] = [(left, root)]  # None: what an iteration of a loop does
        written = {root}
        while pending and len(written) <= MOST_LINES + 1:
            to, node = pending.pop(0)
            if to is None:
                self.lines += told.pop(node).lines(writer)
            else:
                used = dict(writer.used)
                letters, right = _fitting(writer, node)
                cell = _cell(lens, node)
                if node is not root and cell != here and _is_cut(right):  # of another cell, and too long to be read
                    writer.used = used
                    self._elsewhere.setdefault(cell, []).append(names[node])
                    continue
                self.lines.append((Part(to, tuple(map(Name, letters))) if letters else to, right))
            inner = [n for n in writer.used if n not in shown.graph.parameters and n not in written]
            pending += [(Name(names[n]), n) for n in inner] if parts else []
            pending += [(None, loop) for loop in writer.blocks if loop in told and (None, loop) not in pending]
            written.update(inner)
        if writer.finite:
            self.notes.setdefault("for finite numbers")
        self._tell_blocks(shown)

    def _tell_blocks(self, shown: _Shown) -> None:
        """Note for each loop and branch where it is written, and how many iterations it runs."""
        lens, here = site.Lens(shown.closed.mapping), set(shown.graph.nodes)
        cell = _cell(lens, shown.graph.results[0])
        for node, name in self._blocks.items():
            kind = name.partition("#")[0]
            places = lens.of(node)
            places = tuple(p for p in places if p.cell == cell) or places  # other cells may have an equal loop
            if node in here and places:
                iterations = (
                    f", {node.args[0]['bits'].array()} times" if kind == "loop" and node.args[0].op is CONSTANT else ""
                )
                role = ", for the gradient" if places[0].role == "adjoint" else ""
                self.notes.setdefault(f"{name.replace('#', ' ')} is the {kind} at {places[0]}{iterations}{role}")


def _cell(lens: site.Lens, node: Node) -> str:
    """Return the cell that a node was written in, the newest one."""
    spans = [s for s in lens.of(node) if s.role == "value"]
    return max(spans, key=lambda s: s.run).cell if spans else ""


def _is_cut(part: Any) -> bool:
    """Return whether something is left out in an expression."""
    if isinstance(part, tuple):
        return any(map(_is_cut, part))
    return isinstance(part, Cut) or (isinstance(part, Expression) and any(map(_is_cut, vars(part).values())))


def _fitting(writer: Writer, node: Node) -> tuple[tuple[str, ...], Expression]:
    """Return a formula, cut where no line of it would end on the page."""
    used, blocks, parts = dict(writer.used), set(writer.blocks), MOST
    while True:
        letters, right = writer.formula(node, parts)
        if parts < _FEWEST or max(width for _, width in broken(_bounded(latex(right)))) <= WIDEST:
            return letters, right
        parts = parts * 2 // 3
        writer.used = dict(used)
        for new in set(writer.blocks) - blocks:
            del writer.blocks[new]


def _names(shown: _Shown, named: Mapping[str, Node]) -> dict[Node, str]:
    """Return the names of a graph's nodes: its inputs, and variables of the notebook."""
    leaves = dict(zip(shown.graph.parameters, shown.closed.leaves, strict=True))
    whose = {node: name for name, node in reversed(list(named.items()))}
    names: dict[Node, str] = {}
    for parameter, leaf in leaves.items():
        name = leaf["source"].name if leaf.op is INPUT else "value"
        if re.fullmatch(r"array\d+", name):  # one that was not read from the notebook by name
            name = whose.get(leaf, f"array{len(names) + 1}")
        names[parameter] = name
    inputs, here = set(names.values()), set(shown.graph.nodes)
    for name, node in named.items():
        inner = shown.closed.mapping.get(node)
        if inner in here and inner not in names and inner.op is not CONSTANT:
            names[inner] = f"{name}′" if name in inputs else name  # an input's name, bound anew
    return names


def _sizes(closed: Closed, graph: Graph) -> dict[Any, int]:
    """Return the values of sizes, as far as the inputs determine them."""
    sources: list[Any] = [leaf.params.get("source") for leaf in closed.leaves]
    shapes = [() if source is None else np.shape(source.value) for source in sources]
    try:
        return graph.bind(shapes)
    except GuardError:
        return {}
