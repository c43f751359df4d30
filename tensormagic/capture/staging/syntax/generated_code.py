"""Builds generated code: calls of the run time, and functions for parts of the user's code."""

from __future__ import annotations

import ast

from tensormagic.capture.staging.syntax.syntax_trees import placed_at

RUNTIME = "\0tensormagic.capture.staging"  # a constant, for which the run time is put into the compiled code
PART = "__tensor__"  # the parameter that marks a function made here


def call(name: str, like: ast.AST, *args: ast.expr) -> ast.expr:
    """A call of the run time."""
    return placed_at(ast.Call(ast.Attribute(ast.Constant(RUNTIME), name, ast.Load()), list(args), []), like)


def arguments(*names: str) -> ast.arguments:
    """The parameters of a function that is made here."""
    mark = ast.arg(PART)
    return ast.arguments([], [ast.arg(n) for n in names], None, [mark], [ast.Constant(None)], None, [])


def thunk(value: ast.expr) -> ast.expr:
    """A function that gives an expression's value."""
    return placed_at(ast.Lambda(arguments(), value), value)
