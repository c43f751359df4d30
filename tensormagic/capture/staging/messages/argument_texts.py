"""Texts in the arguments of ``print`` and of exceptions: they may hold values that are known only when the graph runs."""

from __future__ import annotations

import ast
import re

from tensormagic.capture.staging.syntax.syntax_trees import walk

FORMATTED = "__tensor_formatted__"  # a call of this name becomes one of the run time
_PERCENT = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)([a-zA-Z%])")
_FIELD = re.compile(r"\{(\d*)(?:!([rsa]))?(?::([^{}]*))?\}")


def visit(node: ast.expr) -> ast.expr:
    """Return an argument with f-strings, and other expressions that make texts of values, as calls of the run time."""
    pieces = pieces_of(node)
    if pieces is None or all(isinstance(p, ast.Constant) for p in pieces):
        return node
    call = ast.Call(ast.Name(FORMATTED, ast.Load()), pieces, [])
    for part in walk(call):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return call


def visit_exception(node: ast.expr) -> ast.expr:
    """Return the expression of a ``raise``, with texts in the arguments of its class rewritten."""
    if isinstance(node, ast.Call):
        node.args = [a if isinstance(a, ast.Starred) else visit(a) for a in node.args]
    return node


def pieces_of(node: ast.expr) -> list[ast.expr] | None:
    """Return the pieces of a text: constants, and tuples of a value, its conversion and its format; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node]
    if isinstance(node, ast.JoinedStr):
        return [_formatted(p) if isinstance(p, ast.FormattedValue) else p for p in node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = pieces_of(node.left), pieces_of(node.right)
        return None if left is None or right is None else [*left, *right]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _percent(node.left, node.right)
    return _called(node) if isinstance(node, ast.Call) and not node.keywords else None


def _formatted(part: ast.FormattedValue) -> ast.expr:
    return _piece(part.value, "" if part.conversion < 0 else chr(part.conversion), part.format_spec)


def _piece(value: ast.expr, conversion: str = "", form: ast.expr | None = None) -> ast.expr:
    return ast.Tuple([value, ast.Constant(conversion), form or ast.Constant("")], ast.Load())


def _called(node: ast.Call) -> list[ast.expr] | None:
    """Return the pieces of ``str(value)``, ``repr(value)``, or ``"...".format(values)``; None for other calls."""
    function, values = node.func, node.args
    if any(isinstance(v, ast.Starred) for v in values):
        return None
    if isinstance(function, ast.Name) and function.id in {"str", "repr"} and len(values) == 1:
        return [_piece(values[0], function.id[0])]
    if isinstance(function, ast.Attribute) and function.attr == "format" and isinstance(function.value, ast.Constant):
        text = function.value.value
        return _fields(text, values) if isinstance(text, str) else None
    return None


def _fields(text: str, values: list[ast.expr]) -> list[ast.expr] | None:
    """Return the pieces of a text for ``str.format``; None unless its fields are plain."""
    parts: list[ast.expr] = []
    end = 0
    for used, match in enumerate(_FIELD.finditer(text)):
        number = int(match[1]) if match[1] else used
        if number >= len(values):
            return None
        parts += [
            ast.Constant(text[end : match.start()]),
            _piece(values[number], match[2] or "", ast.Constant(match[3] or "")),
        ]
        end = match.end()
    rest = "".join(_FIELD.split(text)[::4])
    return None if {"{", "}"} & set(rest) else [*parts, ast.Constant(text[end:])]


def _percent(left: ast.expr, right: ast.expr) -> list[ast.expr] | None:
    """Return the pieces of ``"..." % values``; None if the text has unusual fields."""
    if not (isinstance(left, ast.Constant) and isinstance(left.value, str)):
        return None
    whole = not isinstance(right, ast.Tuple)  # it may turn out to be a tuple at run time
    values = [right] if whole else list(right.elts)
    parts: list[ast.expr] = []
    end = 0
    if "%" in _PERCENT.sub("", left.value):
        return None
    for match in _PERCENT.finditer(left.value):
        parts.append(ast.Constant(left.value[end : match.start()]))
        end = match.end()
        if match[2] == "%":
            parts.append(ast.Constant("%"))
        elif values:
            parts.append(_piece(values.pop(0), "%%" if whole else "%", ast.Constant(match[0])))
        else:
            return None
    return None if values else [*parts, ast.Constant(left.value[end:])]
