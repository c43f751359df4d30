"""``match`` as ``if``, ``elif`` and ``else``, where its patterns are values, names, alternatives and sequences of these."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from tensormagic.capture.staging.trees import walk

SEQUENCE = "__tensor_sequence__"  # a call of this name becomes one of the run time


def lowered(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements without such ``match`` statements; those of functions in them stay as they are."""
    lowering = _Matches()
    return [s for statement in statements for s in lowering.several(statement)]


class _Refused(Exception):  # noqa: N818 (a pattern that stays Python's)
    pass


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self.serial = itertools.count(1)

    def several(self, statement: ast.stmt) -> list[ast.stmt]:
        """What a statement becomes."""
        found = self.visit(statement)
        return found if isinstance(found, list) else [found]

    def _as_it_is(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _as_it_is

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        name = f"__tensor_subject{next(self.serial)}__"
        try:
            rest = self._cases(node.cases, name)
        except _Refused:
            return node
        done: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], node.subject), *rest]
        for statement in done:
            for part in walk(statement):
                if not hasattr(part, "lineno"):
                    ast.copy_location(part, node.subject)
        return done

    def _cases(self, cases: Sequence[ast.match_case], name: str) -> list[ast.stmt]:
        if not cases:
            return []
        case, *more = cases
        tests, binds = _pattern(case.pattern, ast.Name(name, ast.Load()))
        rest = self._cases(more, name)
        like = case.pattern
        if case.guard is None:
            return _choice(tests, [*binds, *case.body], rest, like)
        if not binds:
            return _choice([*tests, case.guard], case.body, rest, like)
        if not tests:
            return [*binds, *_choice([case.guard], case.body, rest, like)]
        flag = f"__tensor_case{next(self.serial)}__"

        def told(value: ast.expr) -> ast.stmt:
            return ast.Assign([ast.Name(flag, ast.Store())], value)

        first = _choice(tests, [*binds, told(case.guard)], [told(ast.Constant(False))], like)
        return [*first, *_choice([ast.Name(flag, ast.Load())], case.body, rest, like)]


def _choice(tests: list[ast.expr], body: list[ast.stmt], rest: list[ast.stmt], like: ast.AST) -> list[ast.stmt]:
    if not tests:
        return body
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    return [ast.copy_location(ast.If(ast.copy_location(test, like), body, rest), like)]


def _pattern(pattern: ast.pattern, value: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    """What has to hold of a value, and the names that it then has."""
    if isinstance(pattern, ast.MatchValue):
        return [ast.Compare(value, [ast.Eq()], [pattern.value])], []
    if isinstance(pattern, ast.MatchSingleton):
        return [ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)])], []
    if isinstance(pattern, ast.MatchAs):
        tests, binds = ([], []) if pattern.pattern is None else _pattern(pattern.pattern, value)
        named: list[ast.stmt] = [ast.Assign([ast.Name(pattern.name, ast.Store())], value)] if pattern.name else []
        return tests, [*binds, *named]
    if isinstance(pattern, ast.MatchOr):
        return [_either(pattern, value)], []
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(pattern, value)
    raise _Refused


def _either(pattern: ast.MatchOr, value: ast.expr) -> ast.expr:
    ways: list[ast.expr] = []
    for part in pattern.patterns:
        tests, binds = _pattern(part, value)
        if binds or not tests:
            raise _Refused
        ways.append(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests))
    return ast.BoolOp(ast.Or(), ways)


def _sequence(pattern: ast.MatchSequence, value: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    if any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        raise _Refused
    count = ast.Constant(len(pattern.patterns))
    tests: list[ast.expr] = [ast.Call(ast.Name(SEQUENCE, ast.Load()), [value, count], [])]
    binds: list[ast.stmt] = []
    for k, part in enumerate(pattern.patterns):
        more, names = _pattern(part, ast.Subscript(value, ast.Constant(k), ast.Load()))
        tests += more
        binds += names
    return tests, binds
