"""Time that is measured in plain cells: lazy values are computed before a clock is read, and in each run that is timed.

IPython hands the code of a cell, and of ``%time`` and ``%timeit``, to AST transformers before it compiles it. Lines and columns stay.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from tensormagic import session
from tensormagic.capture import clocks
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.tree import tensors_in
from tensormagic.capture.values.value import Tensor

_CLOCKS = clocks.NAMES | {"default_timer", "now"}
_MAGICS = {"time", "timeit"}
_STEPS = 3  # functions that call functions, which are looked at for lazy values


class Timed(ast.NodeTransformer):
    """Has clocks read by :func:`tensormagic.capture.clocks.read_clock`, and what ``%time`` and ``%timeit`` time computed within.

    Parameters
    ----------
    space
        The notebook's variables.
    """

    def __init__(self, space: Mapping[str, Any]) -> None:
        self._space = space
        self._imported: set[str] = set()  # other names for clocks, in the code that is visited

    def visit(self, node: ast.AST) -> Any:
        """Rewrite the code of a cell, or of a magic that times it."""
        if isinstance(node, ast.Module) and (magic := _timing()) and self._is_lazy(node):
            return ast.fix_missing_locations(_computing(node, again if magic == "timeit" else computed))
        if isinstance(node, ast.Module):
            imports = [part for part in ast.walk(node) if isinstance(part, ast.ImportFrom)]
            self._imported = {a.asname for part in imports for a in part.names if a.asname and a.name in _CLOCKS}
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Rewrite ``time.time()`` as ``read_clock(time.time)``."""
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        other = clocks.is_clock(self._space.get(name)) or name in self._imported
        if node.args or node.keywords or not (name in _CLOCKS or other):
            return node
        read = ast.Call(_named(clocks.__name__, clocks.read_clock), [node.func], [])
        return ast.fix_missing_locations(ast.copy_location(read, node))

    def _is_lazy(self, code: ast.Module) -> bool:
        """Return whether code names a lazy value, or a function that does."""
        names = {part.id for part in ast.walk(code) if isinstance(part, ast.Name)}
        return any(_leads_to_lazy(self._space[name], _STEPS) for name in names if name in self._space)


def computed(value: Any) -> Any:
    """Compute the lazy parts of ``value``, and return it."""
    for tensor in tensors_in(value):
        with tensor.leveled():
            clocks.compute([tensor.node])
    return value


def again(value: Any) -> Any:
    """Like `computed`, for one of many runs: the results are dropped, so that the next run computes them again."""
    for tensor in tensors_in(value):
        with tensor.leveled():
            session.drop(clocks.compute([tensor.node]))
    return value


def _timing() -> str:
    """Return which magic that times code has its code transformed; empty for a cell."""
    frame = inspect.currentframe()
    for _ in range(4):
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code.co_name in _MAGICS and "IPython" in frame.f_code.co_filename:
            return frame.f_code.co_name
    return ""


def _leads_to_lazy(value: Any, steps: int) -> bool:
    if type(value) is FunctionType:
        names = names_in(value.__code__) if steps else ()
        return any(_leads_to_lazy(value.__globals__[n], steps - 1) for n in names if n in value.__globals__)
    return isinstance(value, Tensor) or (isinstance(value, list | tuple | dict) and bool(tensors_in(value)))


def _computing(code: ast.Module, compute: Callable[[Any], Any]) -> ast.Module:
    """Return code that also computes the lazy values that it binds and ends in."""
    *before, last = code.body
    if isinstance(last, ast.Expr):
        last.value = ast.copy_location(ast.Call(_named(__name__, compute), [last.value], []), last.value)
    names = {
        part.id
        for statement in code.body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    after = [ast.copy_location(_if_bound(name, compute), last) for name in sorted(names)]
    return ast.Module([*before, *after, last] if isinstance(last, ast.Expr) else [*before, last, *after], [])


def _if_bound(name: str, compute: Callable[[Any], Any]) -> ast.Try:
    """Return code that computes a variable, unless it is unbound because a loop had no iterations."""
    call = ast.Expr(ast.Call(_named(__name__, compute), [ast.Name(name, ast.Load())], []))
    handler = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [ast.Pass()])
    return ast.Try([call], [handler], [], [])


def _named(module: str, function: Callable[..., Any]) -> ast.expr:
    """Return an expression for a function of a module that does not depend on the notebook's names."""
    imported = f"__import__({module!r}, fromlist=['*']).{function.__name__}"
    return ast.parse(imported, mode="eval").body
