"""Turn a captured cell into a function: its arguments, its text with the imports and definitions before it, its results."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from tensormagic.capture.inputs.items import changed_roots, root_of
from tensormagic.capture.python.cell_text import Parsed, parse
from tensormagic.notebook.export.scope import CONTAINER, FUNCTION, Scope, always_bound, bound_by, is_no_number
from tensormagic.notebook.export.source import Cell
from tensormagic.notebook.options import Options

_GROWING = set("append extend insert pop remove clear update add discard setdefault popitem appendleft popleft".split())  # noqa: SIM905 (a table)
_STREAMS = {"default_rng", "RandomState", "Generator", "SeedSequence"}
_AT_HOME = (ast.Delete, ast.Global, ast.Nonlocal)


@dataclass
class Body:
    """A cell, split into the parts of a function and its call.

    Parameters
    ----------
    before, after
        The statements before the call: imports, and definitions that read nothing of the cell; and those after it:
        other definitions, repeated over the names of the program.
    lines
        The function's own lines, without the return statement.
    parameters
        Its arguments.
    outputs
        The names that it returns.
    value
        The text of the cell's value; empty if it has none.
    shown
        Whether the cell ends in that expression.
    grows
        Whether it changes lists or dictionaries of the notebook, makes random generators, or returns text: this stays
        Python.
    inline
        Why it cannot be a function; empty if it can.
    """

    cell: Cell
    tree: ast.Module
    parsed: Parsed
    before: list[str] = field(default_factory=list[str])
    after: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    value: str = ""
    shown: bool = False
    grows: bool = False
    inline: str = ""

    @property
    def options(self) -> Options:
        """Return the options of the cell."""
        return self.cell.options or Options()


def taken_apart(cell: Cell, text: str, scope: Scope) -> Body:
    """Take a captured cell apart; ``text`` is it without IPython's lines."""
    try:
        tree, parsed = ast.parse(text), parse(text, cell.label)
    except SyntaxError as error:
        raise cell.error(f"line {error.lineno}: {error.msg}") from None
    made = Body(cell, tree, parsed)
    _value(made)
    _parameters(made, scope)
    hoisted = _hoisted(made)
    _outputs(made, hoisted, scope)
    _text(made, text, hoisted)
    _judge(made, scope)
    return made


def _value(body: Body) -> None:
    last = body.tree.body[-1] if body.tree.body else None
    if isinstance(last, ast.Expr):
        body.value, body.shown = ast.unparse(last.value), True
    else:
        body.value = body.parsed.last_name


def _parameters(body: Body, scope: Scope) -> None:
    options, reads = body.options, body.parsed.reads
    moving = {*options.grad, *(name for name, _ in options.live)}
    wanted = set(reads if options.inputs is None else options.inputs)
    body.parameters = [n for n in reads if n in moving or (n in wanted and scope.is_argument(n))]
    body.parameters += [n for n in options.grad if n not in body.parameters and n not in body.parsed.binds]


def _hoisted(body: Body) -> list[ast.stmt]:
    """Return the imports, and the definitions that do not read names that the cell binds or takes as arguments."""
    statements = [s for s in body.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    defining = [s for s in body.tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)]
    own = {*body.parsed.binds, *body.parameters} - {n for s in (*statements, *defining) for n in bound_by(s)}
    while True:
        kept = [s for s in defining if _read(s) & own]
        grown = own | {s.name for s in kept}
        if grown == own:
            return [*statements, *(s for s in defining if s not in kept)]
        own = grown


def _read(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _outputs(body: Body, hoisted: list[ast.stmt], scope: Scope) -> None:
    options = body.options
    bound = [n for n in body.parsed.binds if not n.startswith("_")]
    bound = [n for n in bound if options.outputs is None or n in options.outputs]
    inside = {n for s in body.tree.body for n in bound_by(s)}
    body.outputs = [n for n in bound if n not in inside]
    again = [s for s in body.tree.body if s not in hoisted and bound_by(s) & set(bound)]
    body.after = [line for s in again for line in ast.unparse(s).splitlines()]
    sure = always_bound(body.tree.body)
    for name in body.outputs:
        if name in sure or name in body.parameters:
            continue
        if scope.kinds.get(name, FUNCTION) != FUNCTION:  # a branch that does not bind it leaves it as it is
            body.parameters.append(name)
        else:
            body.inline = f"it assigns {name} in one branch only"


def _text(body: Body, text: str, hoisted: list[ast.stmt]) -> None:
    statements = body.tree.body
    removed = [*hoisted, *(statements[-1:] if body.shown else [])]
    spans = [(s.lineno - _decorators(s), s.end_lineno or s.lineno) for s in statements]
    alone = all(a[1] < b[0] for a, b in itertools.pairwise(spans))
    lines = text.splitlines()
    span = dict(zip(map(id, statements), spans, strict=True))
    if alone:
        for s in hoisted:
            body.before += lines[span[id(s)][0] - 1 : span[id(s)][1]]
        gone = {k for s in removed for k in range(*_range(span[id(s)]))}
        within = _within_strings(body.tree)
        body.lines = [
            line if k in within else f"    {line}".rstrip() for k, line in enumerate(lines, 1) if k not in gone
        ]
    else:
        body.before = [line for s in hoisted for line in ast.unparse(s).splitlines()]
        rest = [s for s in statements if s not in removed]
        body.lines = [f"    {line}".rstrip() for s in rest for line in ast.unparse(s).splitlines()]
    while body.lines and not body.lines[0].strip():
        del body.lines[0]
    while body.lines and not body.lines[-1].strip():
        del body.lines[-1]


def _decorators(statement: ast.stmt) -> int:
    found: list[ast.expr] = getattr(statement, "decorator_list", [])
    return statement.lineno - min((d.lineno for d in found), default=statement.lineno)


def _range(span: tuple[int, int]) -> tuple[int, int]:
    return span[0], span[1] + 1


def _within_strings(tree: ast.AST) -> set[int]:
    """Return the lines that begin inside a string: these are not indented."""
    found: set[int] = set()
    for n in ast.walk(tree):
        if not isinstance(n, ast.JoinedStr | ast.Constant) or n.end_lineno is None:
            continue
        if isinstance(n, ast.JoinedStr) or isinstance(n.value, str | bytes):
            found.update(range(n.lineno + 1, n.end_lineno + 1))
    return found


def _judge(body: Body, scope: Scope) -> None:
    """Record what the cell does that a captured function cannot."""
    for n in ast.walk(body.tree):
        if isinstance(n, _AT_HOME):
            body.inline = "it deletes names or declares global ones"
        elif isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names):
            body.inline = "it imports all names of a module"
    own = set(body.parameters)
    called = [n.func for n in ast.walk(body.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    growing = {root_of(f.value) for f in called if f.attr in _GROWING} & own
    held = {n for n in changed_roots(body.tree) & own if scope.kinds.get(n) == CONTAINER}
    streams = any(f.attr in _STREAMS for f in called)
    last = body.tree.body[-1] if body.tree.body else None
    text = isinstance(last, ast.Expr) and is_no_number(last.value)
    body.grows = bool(growing or held) or streams or text
    if not body.lines and not body.value and not body.inline:
        body.inline = "it only defines or imports"


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines one level deeper."""
    return [f"    {line}".rstrip() for line in lines]
