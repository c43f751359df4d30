"""Liveness: which names statements bind, read, and still need afterwards, so what a loop carries and what a branch returns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tensormagic.capture.python.builtin_facts import CONSUMING
from tensormagic.capture.staging.syntax.jumps import STOPS
from tensormagic.capture.staging.syntax.syntax_trees import children, walk

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CONSUMERS = CONSUMING | {
    "extend",
    "fromiter",
    "fsum",
    "join",
    "prod",
    "update",
}  # consume their arguments before they return
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING = {
    *(ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping, *_COMPREHENSIONS),
}


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Yield ``root`` and the nodes below it, except inside functions and classes, and except operators and contexts."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending += children(node)
        elif not isinstance(node, ast.Lambda):  # parts evaluated where the function is made
            pending += [*node.decorator_list, *_outer_parts(node)]
        else:
            pending += _outer_parts(node)


def _outer_parts(scope: ast.AST) -> list[ast.AST]:
    if isinstance(scope, ast.ClassDef):
        return [*scope.bases, *(k.value for k in scope.keywords)]
    args: ast.arguments = scope.args  # type: ignore[attr-defined]
    return [*args.defaults, *(d for d in args.kw_defaults if d is not None)]


def bound(statements: Iterable[ast.AST]) -> dict[str, None]:
    """Return the names that statements bind or delete in their own scope, in order."""
    found: dict[str, None] = {}
    for statement in statements:
        nodes = [n for n in own_nodes(statement) if n.__class__ in _BINDING]
        hidden = {id(n) for c in nodes if isinstance(c, _COMPREHENSIONS) for n in _targets(c)}
        for node in nodes:
            if id(node) not in hidden:
                found.update(dict.fromkeys(_bound_by(node)))
    return found


def _cached(statement: ast.AST, what: str, ask: Callable[[], Any]) -> Any:
    """Return ``ask()``, cached on a statement under ``what``: nested loops ask often. Only for what staging alone changes."""
    if what not in statement.__dict__:
        statement.__dict__[what] = ask()
    return statement.__dict__[what]


def bound_once(statement: ast.AST) -> dict[str, None]:
    """Return the names that a statement binds, cached."""
    return _cached(statement, "tensor_binds", lambda: bound([statement]))


def _read_once(statement: ast.AST) -> set[str]:
    return _cached(statement, "tensor_reads", lambda: read(statement))


def _targets(comprehension: ast.AST) -> Iterator[ast.AST]:
    for generator in comprehension.generators:  # type: ignore[attr-defined]
        yield from walk(generator.target)


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [a.asname or a.name.partition(".")[0] for a in node.names]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def rebound(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements bind other than by an augmented assignment, which may store in place."""
    augmented: set[int] = set()
    found: set[str] = set()
    for statement in statements:
        for node in own_nodes(statement):
            if isinstance(node, ast.AugAssign):
                augmented.add(id(node.target))
            if node.__class__ in _BINDING and id(node) not in augmented:
                found.update(_bound_by(node))
    return found


def stored_into(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names of the objects that statements store into, by an index, an attribute or an augmented assignment."""
    found: set[str] = set()
    for statement in statements:
        for node in own_nodes(statement):
            target: ast.AST = node.target if isinstance(node, ast.AugAssign) else node
            if isinstance(target, ast.Subscript | ast.Attribute) and not isinstance(target.ctx, ast.Load):
                while isinstance(target, ast.Subscript | ast.Attribute):
                    target = target.value
            elif not isinstance(node, ast.AugAssign):
                continue
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


def appended_to(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names on which statements only call ``append``."""
    nodes = [n for s in statements for n in walk(s)]
    calls = [n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    ways = [c.func for c in calls if len(c.args) == 1 and not c.keywords and isinstance(c.func, ast.Attribute)]
    held = [w.value for w in ways if w.attr == "append" and isinstance(w.value, ast.Name)]
    own = {id(n) for n in held}
    other = {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in own}
    return {n.id for n in held} - other


_METHODS = {"append", "extend", "insert", "pop"}


def lists_changed(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names of possible lists that statements change, or of objects that hold such lists."""
    found: set[str] = set()
    for node in (n for s in statements for n in walk(s)):
        changed: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            changed = node.func.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            changed = node.target
        while isinstance(changed, ast.Subscript | ast.Attribute):
            changed = changed.value
        if isinstance(changed, ast.Name):
            found.add(changed.id)
    return found


def read(*nodes: ast.AST | None) -> set[str]:
    """Return the names read in ``nodes``, including functions in them; deleted names count, as they must exist."""
    return {
        n.id
        for node in nodes
        if node is not None
        for n in walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load | ast.Del)
    }


def read_in_scopes(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names that functions and classes in ``statements`` take from around them: they may be read at any time."""
    return {name for s in statements for node in own_nodes(s) if isinstance(node, _SCOPES) for name in _free(node)}


def _free(scope: ast.AST) -> set[str]:
    """Return the free names of a function or a class."""
    body: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else list(getattr(scope, "body", []))
    declared = {n for b in body for s in own_nodes(b) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names}
    given = getattr(scope, "args", ast.Pass())  # a class has none
    arguments = [n.arg for n in walk(given) if isinstance(n, ast.arg)]
    own = ({*bound(body), *arguments} | _comprehended(body)) - declared
    names = {n.id for b in body for n in own_nodes(b) if isinstance(n, ast.Name)}
    inner = {name for b in body for n in own_nodes(b) if isinstance(n, _SCOPES) for name in _free(n)}
    return (names | inner | declared) - (set() if isinstance(scope, ast.ClassDef) else own)


def keeps(names: Iterable[str], *nodes: ast.AST) -> bool:
    """Return whether functions or generators made in ``nodes`` may read ``names`` later, when these hold something else."""
    wanted, at_once = set(names), _used_on_the_spot(nodes)
    for node in (n for root in nodes for n in walk(root)):
        if id(node) in at_once:
            continue
        if isinstance(node, ast.Lambda) and wanted & _free(node):
            return True
        if isinstance(node, ast.GeneratorExp) and wanted & read(node):
            return True
    return False


def _used_on_the_spot(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the ids of functions and generators used on the spot: called, or passed to something that consumes them."""
    found: set[int] = set()
    for call in (n for root in nodes for n in walk(root) if isinstance(n, ast.Call)):
        made = [call.func, *(call.func.args if isinstance(call.func, ast.Call) else ())]
        found |= {id(part) for part in made if isinstance(part, ast.Lambda)}
        if getattr(call.func, "attr", getattr(call.func, "id", None)) in _CONSUMERS:
            found |= {id(part) for part in call.args if isinstance(part, ast.GeneratorExp)}
            found |= {id(k.value) for k in call.keywords if k.arg == "key"}
    return found


def _comprehended(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that comprehensions bind."""
    found = [c for b in body for c in own_nodes(b) if isinstance(c, _COMPREHENSIONS)]
    return {n.id for c in found for t in _targets(c) if isinstance(n := t, ast.Name)}


def changed_by_scopes(statements: Iterable[ast.AST]) -> set[str]:
    """Return the names of this scope that functions inside it declare, and so may change when they are called."""
    found: set[str] = set()
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= {name for s in walk(node) if isinstance(s, ast.Nonlocal | ast.Global) for name in s.names}
    return found


def before_block(statements: Sequence[ast.stmt], after: set[str]) -> set[str]:
    """Return the names needed before a block, given those needed ``after`` it."""
    for statement in reversed(statements):
        after = before(statement, after)
    return after


def before(statement: ast.stmt, after: set[str]) -> set[str]:
    """Return the names needed before a statement, given those needed ``after`` it."""
    if isinstance(statement, ast.If):
        return _read_once(statement.test) | before_block(statement.body, after) | before_block(statement.orelse, after)
    if isinstance(statement, ast.For | ast.While):
        return before_loop(statement, after)
    if isinstance(statement, ast.Return | ast.Raise):
        return _read_once(statement)
    if isinstance(statement, ast.With | ast.Try | ast.Match | ast.AsyncFor | ast.AsyncWith | ast.TryStar):
        return after | _read_once(statement) | _augmented(statement)
    if isinstance(statement, ast.AugAssign):
        return (
            after | _read_once(statement) | ({statement.target.id} if isinstance(statement.target, ast.Name) else set())
        )
    return (after - bound_once(statement).keys()) | _read_once(statement)


def _augmented(statement: ast.stmt) -> set[str]:
    return {n.target.id for n in walk(statement) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}


def before_loop(loop: ast.For | ast.While, after: set[str]) -> set[str]:
    """Return the names needed before a loop."""
    return before_iteration(loop, after) | _read_once(loop.iter if isinstance(loop, ast.For) else loop.test)


def entering(loop: ast.For | ast.While, after: set[str]) -> set[str]:
    """Return the names whose value before an iteration matters in it or later, or after the loop if an iteration leaves it."""
    targets = set(bound_once(loop.target)) if isinstance(loop, ast.For) else set[str]()
    test = _asked(loop)
    return (before_block(loop.body, before_iteration(loop, after)) - targets) | test


def _asked(loop: ast.For | ast.While) -> set[str]:
    """Return the names that decide whether there is another iteration."""
    return _read_once(loop.test) if isinstance(loop, ast.While) else set(getattr(loop, STOPS, []))


def before_iteration(loop: ast.For | ast.While, after: set[str]) -> set[str]:
    """Return the names needed at the beginning of an iteration that others may follow."""
    needed = set(after)
    test = _asked(loop)
    targets = set(bound_once(loop.target)) if isinstance(loop, ast.For) else set[str]()
    while True:
        again = (before_block(loop.body, needed | test) - targets) | after | test
        if again <= needed:
            return needed
        needed |= again
