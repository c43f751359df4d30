"""The text of a cell with its gradients computed anew where it uses them: what the warning of stale gradients offers.

It rewrites text by its syntax; it knows neither values nor widgets.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

ANEW = "*"  # every gradient may be bound anew here
_RUNS_CELLS = {"run_cell_magic", "run_line_magic", "run_cell", "magic"}
_WALLS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_LOOPS = ast.For | ast.While


def events(node: ast.AST, rounds: int = 2, steps: Collection[str] = ()) -> Iterator[tuple[str, bool]]:
    """Names with whether they are stored into, as code reads and stores them; the body of a loop as often as said.

    ``steps`` are gradients: a loop over their elements is one step, for which they are read before anything is stored.
    """
    if isinstance(node, _WALLS):
        return
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        yield from events(node.value, rounds, steps) if node.value is not None else ()
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _stored(target, rounds, steps)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_CELLS:
        for argument in node.args:
            yield from events(argument, rounds, steps)
        yield ANEW, True
    elif isinstance(node, ast.keyword) and node.arg == "out":
        yield from _stored(node.value, rounds, steps)
    elif isinstance(node, _LOOPS):
        yield from _of_loop(node, rounds, steps)
    else:
        for child in ast.iter_child_nodes(node):
            yield from events(child, rounds, steps)


def _of_loop(loop: ast.For | ast.While, rounds: int, steps: Collection[str]) -> Iterator[tuple[str, bool]]:
    if goes_over_elements(loop, steps):
        yield from [event for event in events_of(loop.body, rounds) if event[0] in steps and not event[1]]
        rounds, steps_left = 1, set(steps)
    else:
        steps_left = set[str]()
    if isinstance(loop, ast.For):
        yield from events(loop.iter, rounds, steps)
    again = [loop.target, *loop.body] if isinstance(loop, ast.For) else [loop.test, *loop.body]
    for _ in range(rounds):
        found = events_of(again, rounds, steps)
        yield from (event for event in found if event[0] not in steps_left or event[1])
    yield from events_of(loop.orelse, rounds, steps)


def events_of(nodes: Iterable[ast.AST], rounds: int, steps: Collection[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yield the events of one piece of code after the other."""
    for node in nodes:
        yield from events(node, rounds, steps)


def _stored(target: ast.expr, rounds: int, steps: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield what an assignment to ``target`` changes: ``w``, and also ``w[0]``."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _stored(part, rounds, steps)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value, rounds, steps)
    elif isinstance(target, ast.Subscript):
        yield from events(target.slice, rounds, steps)
        yield from _stored(target.value, rounds, steps)
    elif isinstance(target, ast.Name):
        yield target.id, True


def loaded(node: ast.AST) -> set[str]:
    """Return the names that code reads as it runs."""
    return {name for name, stored in events(node, 1) if not stored}


def goes_over_elements(loop: ast.stmt, names: Collection[str]) -> bool:
    """Return whether a loop uses these names by items at its own variable alone (``w[i] -= 0.1 * grad_w[i]``): it is one step."""
    if not names or not isinstance(loop, ast.For) or loaded(loop.iter).intersection(names):
        return False
    mine = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    items = {
        id(item.value)
        for item in ast.walk(loop)
        if isinstance(item, ast.Subscript) and mine & {n.id for n in ast.walk(item.slice) if isinstance(n, ast.Name)}
    }
    uses = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id in names]
    return bool(uses) and all(id(use) in items for use in uses)


def fresh(
    text: str,
    gradients: Mapping[str, str],
    changed: set[str],
    function: str,
    taken: Collection[str] = (),
    package: str = "",
    value: str = "",
) -> str:
    r"""Return a cell's text in which ``gradients`` are computed anew where they are used after their variables have changed.

    Parameters
    ----------
    text
        The cell.
    gradients
        Variables by the names of the gradients that belong to them.
    changed
        The variables that have changed before the cell.
    function
        The name of the captured cell.
    taken
        Names that must not be assigned.
    package
        What the package is called where it is imported already.
    value
        The name of what the gradients are of, which a cell that reads it gets anew, too.

    Returns
    -------
    str
        The text, or an empty one where no simple place for the computation is found.

    Examples
    --------
    >>> print(fresh("for k in range(9):\n    w -= 0.1 * grad_w", {"grad_w": "w"}, set(), "loss", package="tm"))
    step = tm.value_and_grad(loss, "w")
    for k in range(9):
        value, grad_w = step(w=w)
        w -= 0.1 * grad_w
    """
    tree = ast.parse(text)
    used = {n: v for n, v in gradients.items() if n in {e.id for e in ast.walk(tree) if isinstance(e, ast.Name)}}
    writing = _Writing(used, text)
    if not writing.whole_lines(tree):
        return fresh(ast.unparse(tree), gradients, changed, function, taken, package, value)
    writing.body(tree.body, set(changed))
    if writing.impossible or (not writing.before and not writing.behind):
        return ""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}.union(taken)
    step, other = (next(n for n in free(like) if n not in names) for like in ("step", "value"))
    stored = {name for name, into in events(tree, 1) if into}
    value = value if value in names - stored else other
    return writing.written(tree.body, function, step, value, package)


def free(like: str) -> Iterator[str]:
    """Yield names like a given one that may be free."""
    yield like
    yield f"{like}_now"
    k = 2
    while True:
        yield f"{like}_{k}"
        k += 1


def named(cell: str, name: str) -> str:
    """Return a ``%%tensor`` cell that gets a name."""
    first, _, rest = cell.partition("\n")
    return f"{first.replace('%%tensor', f'%%tensor {name}', 1)}\n{rest}"


@dataclass
class _Writing:
    """Where the computation of gradients has to stand, by lines."""

    gradients: Mapping[str, str]
    text: str
    before: dict[int, int] = field(default_factory=dict[int, int])  # line -> indentation
    behind: dict[int, int] = field(default_factory=dict[int, int])
    impossible: bool = False

    def whole_lines(self, tree: ast.Module) -> bool:
        """Return whether every statement begins its own line."""
        lines = self.text.splitlines()
        starts = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)]
        own = [s for s in starts if not lines[s.lineno - 1].encode()[: s.col_offset].strip()]
        return len(own) == len(starts) == len({s.lineno for s in starts})

    def body(self, statements: Sequence[ast.stmt], changed: set[str]) -> None:
        """Follow statements; ``changed`` are the variables that are not what the gradients were computed for."""
        for statement in statements:
            if self.stale(statement, changed):
                self.place(statement, changed)
            changed |= self.changed_by(statement)

    def changed_by(self, node: ast.AST) -> set[str]:
        variables = set(self.gradients.values())
        return {name for name, stored in events(node, 1) if stored and name in variables}

    def stale(self, node: ast.AST, changed: set[str]) -> bool:
        """Return whether a gradient is used in it after its variable has changed."""
        now = set(changed)
        for name, stored in events(node, steps=self.gradients):
            if not stored and self.gradients.get(name) in now:
                return True
            if stored and name in self.gradients:
                return False
            if stored:
                now.add(name)
        return False

    def place(self, statement: ast.stmt, changed: set[str]) -> None:
        """Put the computation before a statement, or into it."""
        names = set(self.gradients)
        if isinstance(statement, ast.While) and names & loaded(statement.test):
            self.put_before(statement, changed)
            self.at_the_end(statement)
        elif isinstance(statement, _LOOPS) and not self.is_one(statement):
            self.body(statement.body, set(self.gradients.values()))
            changed |= set(self.gradients.values())
        elif isinstance(statement, ast.If | ast.With | ast.Try) and not names & self.head(statement):
            parts = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
            parts += [handler.body for handler in getattr(statement, "handlers", ())]
            for part in parts:
                self.body(part, set(changed))
        else:
            self.put_before(statement, changed)

    def is_one(self, loop: ast.stmt) -> bool:
        """Return whether a loop uses its gradients as one step, or before its first iteration alone."""
        names = set(self.gradients)
        inside = {name for part in getattr(loop, "body", ()) for name in loaded(part)}
        return goes_over_elements(loop, names) or not names & inside

    @staticmethod
    def head(statement: ast.stmt) -> set[str]:
        """Return the names that are read before the first statement inside."""
        if isinstance(statement, ast.If):
            return loaded(statement.test)
        return {name for item in getattr(statement, "items", ()) for name in loaded(item.context_expr)}

    def put_before(self, statement: ast.stmt, changed: set[str]) -> None:
        self.before[statement.lineno] = statement.col_offset
        changed -= set(self.gradients.values())

    def at_the_end(self, loop: ast.While) -> None:
        """Handle a loop whose condition reads a gradient, which is then recomputed at the end of each iteration."""
        if any(isinstance(n, ast.Continue) for n in ast.walk(loop)) or loop.orelse:
            self.impossible = True
        last = loop.body[-1]
        self.behind[last.end_lineno or last.lineno] = loop.body[0].col_offset

    def written(self, body: Sequence[ast.stmt], function: str, step: str, value: str, package: str) -> str:
        """Return the text with its new lines."""
        variables = {variable: name for name, variable in self.gradients.items()}
        quoted, bound = (", ".join(names) for names in ((f'"{v}"' for v in variables), variables.values()))
        if len(variables) > 1:
            quoted, bound = f"({quoted})", f"({bound})"
        given = ", ".join(f"{v}={v}" for v in variables)
        call = f"{value}, {bound} = {step}({given})"
        makes = [] if package else ["import tensormagic as tm"]
        makes.append(f"{step} = {package or 'tm'}.value_and_grad({function}, {quoted})")
        first = min([*self.before, *self.behind])
        top = max(s.lineno for s in body if s.lineno <= first)
        lines: list[str] = []
        for number, line in enumerate(self.text.splitlines(), 1):
            lines += makes if number == top else []
            lines += [" " * self.before[number] + call] if number in self.before else []
            lines.append(line)
            lines += [" " * self.behind[number] + call] if number in self.behind else []
        return "\n".join(lines)
