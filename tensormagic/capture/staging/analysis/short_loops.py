"""Records what only a plain run can see: loops of at most one iteration, and folds of one element."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from tensormagic.capture.staging.analysis.text_features import name_of
from tensormagic.capture.staging.analysis.text_folds import FOLDS, SAME
from tensormagic.capture.staging.syntax.syntax_trees import copied, placed_at, walk

Shorts = dict[tuple[Any, ...], int]
"""Of loops, by their files and lines, that have at most one iteration: how many, or :data:`EITHER`. Of folds, by their columns too: 1."""

EITHER = 2  # the record of a loop that ran no iteration at first, and one later, or the reverse
_NAMES = FOLDS.keys() | SAME.keys()
_FOLDS, _METHODS = "__tensor_fold__", "__tensor_fold_method__"


def of_loop(shorts: Shorts, watch: Callable[..., Any], values: Any) -> Any:
    """Return what a loop iterates over; for at most one iteration, record their number (or :data:`EITHER`)."""
    if type(values) is range and len(values) < 2:
        frame: Any = inspect.currentframe()
        frame = frame.f_back
        while frame.f_code.co_filename == __file__:
            frame = frame.f_back  # up to the frame of the loop
        place = frame.f_code.co_filename, frame.f_lineno
        shorts[place] = len(values) if shorts.get(place, len(values)) == len(values) else EITHER
    return watch(values)


def of_range(watch: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``range`` as loops call it that run as written."""
    return lambda *of: watch(range(*of))


def names(shorts: Shorts) -> dict[str, Any]:
    """Return the functions that record folds, by the names that instrumented code has for them."""

    def noted(place: tuple[Any, ...], value: Any, result: Any) -> Any:
        if np.size(value) == np.size(result):
            shorts[place] = 1
        return result

    return {
        _FOLDS: lambda place, fold, value, *rest, **options: noted(place, value, fold(value, *rest, **options)),
        _METHODS: lambda place, name, value, *rest, **options: noted(
            place, value, getattr(value, name)(*rest, **options)
        ),
    }


def is_fold(node: ast.AST) -> bool:
    """Return whether a call is a fold, which is recorded."""
    return isinstance(node, ast.Call) and name_of(node.func) in _NAMES


def may_fold(code: CodeType) -> bool:
    """Return whether a function's text may contain folds, by its names."""
    return not _NAMES.isdisjoint(code.co_names)


def folds(root: ast.AST) -> list[ast.Call]:
    """Return the calls of folds in a text."""
    return [node for node in walk(root) if isinstance(node, ast.Call) and is_fold(node)]


def place_of(file: str, call: ast.Call) -> tuple[Any, ...]:
    """Return the key under which a fold is recorded."""
    return file, call.lineno, call.col_offset


def noting(code: CodeType, written: ast.Call, node: ast.Call) -> ast.Call:
    """Return the call ``node`` of a fold (``written`` originally), instrumented to record it."""
    place: Any = ast.Constant("")
    place.value = place_of(code.co_filename, written)
    function, own = node.func, copied(node)
    if isinstance(function, ast.Attribute) and not _is_module(function.value, code):
        own.func, own.args = _name(_METHODS), [place, ast.Constant(function.attr), function.value, *node.args]
    elif node.args:
        own.func, own.args = _name(_FOLDS), [place, function, *node.args]
    return placed_at(own, node)


def _is_module(node: ast.expr, code: CodeType) -> bool:
    return isinstance(node, ast.Name) and node.id not in code.co_varnames


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
