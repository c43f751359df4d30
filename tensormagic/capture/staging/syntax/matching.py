"""Lowers ``match`` to ``if``, ``elif`` and ``else``: a pattern tests a lazy value as it would test NumPy's."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from tensormagic.capture.staging.syntax.syntax_trees import cloned, walk

# calls of these names become calls of run-time functions
SEQUENCE, CLASS, MAPPING = "__tensor_sequence__", "__tensor_class__", "__tensor_mapping__"
MEMBER, BETWEEN, BESIDE = "__tensor_member__", "__tensor_between__", "__tensor_beside__"

Alternative = tuple[
    list[ast.expr], list[ast.stmt]
]  # the tests that a value must pass, and the assignments to names that follow


def lowered(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements with ``match`` lowered; functions in them stay unchanged."""
    lowering = _Matches()
    return [s for statement in statements for s in lowering.several(statement)]


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self.serial = itertools.count(1)

    def several(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements that replace one statement."""
        found = self.visit(statement)
        return found if isinstance(found, list) else [found]

    def _as_it_is(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _as_it_is

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        name = f"__tensor_subject{next(self.serial)}__"
        rest = self._cases(node.cases, name)
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
        alternatives = _alternatives(case.pattern, ast.Name(name, ast.Load()))
        rest = self._cases(more, name)
        like = case.pattern
        if case.guard is None and len(alternatives) == 1:
            tests, binds = alternatives[0]
            return _choice(tests, [*binds, *case.body], rest, like)
        if len(alternatives) == 1 and not alternatives[0][1]:
            return _choice([*alternatives[0][0], case.guard or ast.Constant(True)], case.body, rest, like)
        flag = f"__tensor_case{next(self.serial)}__"

        def told(value: ast.expr) -> ast.stmt:
            return ast.Assign([ast.Name(flag, ast.Store())], value)

        first = [told(ast.Constant(False))]
        for tests, binds in reversed(alternatives):
            guard = ast.Constant(True) if case.guard is None else cloned(case.guard)
            first = _choice(tests, [*binds, told(guard)], first, like)
        return [*first, *_choice([ast.Name(flag, ast.Load())], case.body, rest, like)]


def _choice(tests: list[ast.expr], body: list[ast.stmt], rest: list[ast.stmt], like: ast.AST) -> list[ast.stmt]:
    if not tests:
        return body
    return [ast.copy_location(ast.If(ast.copy_location(_all(tests), like), body, rest), like)]


def _all(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _alternatives(pattern: ast.pattern, value: ast.expr) -> list[Alternative]:
    """Return the alternatives for a value to match, in order; the first that matches binds its names."""
    if isinstance(pattern, ast.MatchValue):
        return [([ast.Compare(value, [ast.Eq()], [pattern.value])], [])]
    if isinstance(pattern, ast.MatchSingleton):
        return [([ast.Compare(value, [ast.Is()], [ast.Constant(pattern.value)])], [])]
    if isinstance(pattern, ast.MatchAs):
        return _named(pattern, value)
    if isinstance(pattern, ast.MatchOr):
        return _either([way for part in pattern.patterns for way in _alternatives(part, value)])
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(pattern, value)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(pattern, value)
    if isinstance(pattern, ast.MatchClass):
        return _of_class(pattern, value)
    raise AssertionError(pattern)


def _named(pattern: ast.MatchAs, value: ast.expr) -> list[Alternative]:
    found: list[Alternative] = [([], [])] if pattern.pattern is None else _alternatives(pattern.pattern, value)
    if pattern.name is None:
        return found
    return [(tests, [*binds, _bound(pattern.name, value)]) for tests, binds in found]


def _bound(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _either(found: list[Alternative]) -> list[Alternative]:
    """Return several alternatives as one, if none binds a name."""
    if len(found) == 1 or any(binds or not tests for tests, binds in found):
        return found
    return [([ast.BoolOp(ast.Or(), [_all(tests) for tests, _ in found])], [])]


def _of_parts(
    first: ast.expr, parts: Sequence[tuple[ast.pattern, ast.expr]], last: Sequence[ast.stmt] = ()
) -> list[Alternative]:
    """Return the alternatives that match where ``first`` holds and each of some parts matches its pattern."""
    ways = itertools.product(*(_alternatives(pattern, value) for pattern, value in parts))
    return [
        ([first, *(t for tests, _ in way for t in tests)], [*(b for _, binds in way for b in binds), *last])
        for way in ways
    ]


def _ours(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _sequence(pattern: ast.MatchSequence, value: ast.expr) -> list[Alternative]:
    patterns = pattern.patterns
    star = next((k for k, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
    count, open_ended = len(patterns) - (star is not None), ast.Constant(star is not None)
    places = [k if star is None or k < star else k - len(patterns) for k in range(len(patterns))]
    parts: list[tuple[ast.pattern, ast.expr]] = [
        (p, ast.Subscript(value, ast.Constant(k), ast.Load()))
        for p, k in zip(patterns, places, strict=True)
        if not isinstance(p, ast.MatchStar)
    ]
    last: list[ast.stmt] = []
    if star is not None and (name := getattr(patterns[star], "name", None)):
        last = [_bound(name, _ours(BETWEEN, value, ast.Constant(star), ast.Constant(count - star)))]
    return _of_parts(_ours(SEQUENCE, value, ast.Constant(count), open_ended), parts, last)


def _mapping(pattern: ast.MatchMapping, value: ast.expr) -> list[Alternative]:
    keys = ast.Tuple(list(pattern.keys), ast.Load())
    parts = [(p, ast.Subscript(value, k, ast.Load())) for k, p in zip(pattern.keys, pattern.patterns, strict=True)]
    last = [] if pattern.rest is None else [_bound(pattern.rest, _ours(BESIDE, value, keys))]
    return _of_parts(_ours(MAPPING, value, keys), parts, last)


def _of_class(pattern: ast.MatchClass, value: ast.expr) -> list[Alternative]:
    names = ast.Tuple([ast.Constant(n) for n in pattern.kwd_attrs], ast.Load())
    first = _ours(CLASS, value, pattern.cls, ast.Constant(len(pattern.patterns)), names)
    placed = [(p, _ours(MEMBER, value, pattern.cls, ast.Constant(k))) for k, p in enumerate(pattern.patterns)]
    named = [
        (p, ast.Attribute(value, n, ast.Load())) for n, p in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)
    ]
    return _of_parts(first, [*placed, *named])
