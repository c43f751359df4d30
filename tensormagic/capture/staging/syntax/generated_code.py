"""Builds generated code: calls of the run time, and functions for parts of the user's code."""

from __future__ import annotations

import ast

from tensormagic.capture.staging.syntax.syntax_trees import placed_at

RUNTIME = (
    "\0tensormagic.capture.staging"  # a constant, in whose place the run-time module is put into the compiled code
)
PART = "__tensor__"  # the parameter that marks a generated function


def call(name: str, like: ast.AST, *args: ast.expr) -> ast.expr:
    """Return the syntax of a call of a run-time function."""
    return placed_at(ast.Call(ast.Attribute(ast.Constant(RUNTIME), name, ast.Load()), list(args), []), like)


def arguments(*names: str) -> ast.arguments:
    """Return the parameters of a generated function."""
    mark = ast.arg(PART)
    return ast.arguments([], [ast.arg(n) for n in names], None, [mark], [ast.Constant(None)], None, [])


def thunk(value: ast.expr) -> ast.expr:
    """Return a lambda that gives an expression's value."""
    return placed_at(ast.Lambda(arguments(), value), value)
