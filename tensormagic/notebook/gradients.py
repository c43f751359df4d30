"""Gradients of a cell's value: with respect to which nodes, containers taken apart; errors with their place in the cell."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from tensormagic.capture.cell import Captured, Code
from tensormagic.capture.inputs.items import input_of
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.stores.overlap import through_memory
from tensormagic.capture.tables.labelled import Labelled
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.gradients.gradient_nodes import gradient_nodes
from tensormagic.functions.gradients.value_grad import not_alone
from tensormagic.functions.gradients.zero_gradients import reason_of_zero
from tensormagic.ir.errors import CaptureError, ConstantGradientWarning, DifferentiationError, TensorError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import Site, record
from tensormagic.ir.site import of as sites_of
from tensormagic.notebook.errors import report
from tensormagic.notebook.options import Options
from tensormagic.notebook.parted import Parted, is_container, is_in, root_of
from tensormagic.ops.leaf import INPUT
from tensormagic.transform.grad import depends


def differentiated(
    code: Code, options: Options, captured: Captured, parted: Parted, target: Any
) -> tuple[dict[str, Tensor], dict[str, Node]]:
    """Return the gradients of ``target`` that are asked for, and the nodes that they are with respect to, by name."""
    parted.check()
    moving: dict[str, Node] = {}
    for wanted in options.grad:
        with placed(lambda name=wanted: name_site(code, root_of(name))):
            if (root := root_of(wanted)) in parted.parts:
                moving |= {part: tensor.node for part, tensor in parted.parts[root].items()}
            else:
                moving[wanted] = _moving(code, wanted, captured, parted)
    _refuse_lost(captured, moving)
    with placed(lambda: value_site(code, options.of)):
        if target is None and moving:
            raise _no_value(captured)
        found = _gradients(code, options, target, moving)
    _tell_taken(captured, moving)
    return found, moving


def _one_of(code: Code, result: Any) -> str:
    """Return the name of the first number among what a cell ends in; else one that the cell may give it."""
    last = code.parsed.last
    written = last.body.elts if last is not None and isinstance(last.body, ast.Tuple | ast.List) else []
    pairs = zip(written, result, strict=False) if isinstance(result, tuple | list) else ()
    numbers = (p.id for p, v in pairs if isinstance(p, ast.Name) and isinstance(v, Tensor) and not v.ndim)
    return next(numbers, "loss")


def _no_value(captured: Captured) -> UsageError:
    """Return the error for a cell that ends in no value, such as a call of print, with names that may be meant."""
    own = [*reversed(list(captured.outputs.items())), *((n, captured.values.get(n)) for n in captured.parsed.reads)]
    last = captured.parsed.last
    if last is not None and isinstance(last.body, ast.Name) and captured.values.get(last.body.id, "") is None:
        name = last.body.id
        return UsageError(f"%%tensor --grad: {name} is None, and has no gradient: a function without return gives None")
    number = next((n for n, v in own if isinstance(v, Tensor) and not v.ndim and n[0] != "_"), "")
    advice = (
        f"end it with {number}, or write --of {number}"
        if number
        else "end it with an expression, or name a value with --of"
    )
    return UsageError(f"%%tensor --grad: the cell has no value; {advice}")


def _gradients(code: Code, options: Options, result: Any, nodes: Mapping[str, Node]) -> dict[str, Tensor]:
    if not nodes:
        return {}
    if is_container(result):
        raise DifferentiationError(
            f"a gradient is of one number, but the cell's value is a {type(result).__name__}",
            f"End the cell with the number, or name it: --of {_one_of(code, result)}.",
        )
    top = node_of(result)
    if top.type.shape:
        alike = any(n.type.shape == top.type.shape for n in nodes.values())
        raise DifferentiationError(
            f"a gradient is of one number, but this is {top.type}",
            f"End the cell with one number, as {_reduced(code, options)}; "
            + ("tm.vmap(tm.grad(f)) takes the slope at each element." if alike else "tm.jacobian(f) takes arrays."),
        )
    moving = list(nodes.values())
    apart = [
        n for n in moving if any(m is not n and depends([m], n) for m in moving)
    ]  # another variable is computed from it
    together = [n for n in moving if n not in apart]
    found = dict(zip(together, gradient_nodes(top, together), strict=True))
    found |= {n: gradient_nodes(top, [n])[0] for n in apart}
    _tell_zeros(code, options, top, nodes)
    place = replace(value_site(code, options.of), role="adjoint")
    for slope in found.values():
        if slope.args and not sites_of(slope):  # else it would come from the line that uses it first
            record(slope, place)
    for name, node in nodes.items():
        numbers_taken.warn_of_taken_numbers(top, node, name)
    return {name: wrap(found[node]) for name, node in nodes.items()}


def _reduced(code: Code, options: Options) -> str:
    """Return the expression that reduces the cell's value to one number, as one would type it."""
    place = report.of_site(value_site(code, options.of))
    text = options.of or place.text[place.column : place.end_column]
    return f"np.sum({text}) or np.mean({text})" if text and len(text) <= _SHORT else "its sum or mean"


_SHORT = 40  # characters that are written twice


def _tell_zeros(code: Code, options: Options, top: Node, nodes: Mapping[str, Node]) -> None:
    """Warn of what gradients are asked for with respect to, and the value does not depend on, or by steps alone."""
    for name in options.grad:
        parts = [n for part, n in nodes.items() if is_in(part, name)]
        reasons = [reason_of_zero(through_memory(top, n), name, [n]) for n in parts]
        if all(reasons):
            reason = next((r for r in reasons if "only through" in r), f"does not depend on {name}")
            what = options.of or "the cell's value"
            others = [] if "only through" in reason else _computed_from(top)
            told = (
                f"{what} {reason}: grad_{name} is zero{'; it is computed from ' + ', '.join(others) if others else ''}"
            )
            place = report.of_site(value_site(code, options.of))
            message = "\n".join([told, *place.drawn()])
            warnings.warn_explicit(message, ConstantGradientWarning, code.cell.label, place.line)


def _computed_from(top: Node) -> list[str]:
    """Return the variables that a value is computed from and that have a derivative, a few of them."""
    inputs = (n["source"] for n in topological([top]) if n.op is INPUT and n.type.inexact)
    return list(dict.fromkeys(source.name for source in inputs if source.name))[:5]


def _refuse_lost(captured: Captured, nodes: Mapping[str, Node]) -> None:
    """Raise where what depends on a variable was stored into an array that is not captured: a gradient would leave it out."""
    for number, site in captured.capture.outside.lost.items():
        for name, node in nodes.items():
            if depends([number], node):
                with placed(lambda site=site: site):
                    raise CaptureError(
                        f"what depends on {name} is stored here into an array that is not captured: grad_{name} would leave it out",
                        "Give the array a name in an earlier cell, and store into that; or make a new array: w = w - g.",
                    )


def _tell_taken(captured: Captured, nodes: Mapping[str, Node]) -> None:
    """Warn, once for each place, where Python read numbers that depend on a variable: they carry no derivative."""
    told = {
        (name, site)
        for number, site in captured.capture.outside.taken.items()
        for name, node in nodes.items()
        if depends([number], node)
    }
    for name, site in sorted(told, key=lambda t: (t[1].line, t[1].column, t[0])):
        place = report.of_site(site)
        message = (
            f"a number that depends on {name} was read here: grad_{name} leaves out whatever was computed from it\n"
        )
        warnings.warn_explicit(message + "\n".join(place.drawn()), ConstantGradientWarning, site.cell, place.line)


@contextmanager
def placed(site: Callable[[], Site]) -> Generator[None]:
    """Give an error of a gradient its place in the cell."""
    try:
        yield
    except TensorError as error:
        error.tensor_site = site()  # type: ignore[attr-defined]
        raise


def value_site(code: Code, of: str = "") -> Site:
    """Return where the cell gives its value, or last binds the name ``of``."""
    tree = ast.parse(code.cell.source)
    found: ast.AST = tree.body[-1] if tree.body else tree
    if of:
        stores = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == of and isinstance(n.ctx, ast.Store)]
        found = max(stores, key=lambda n: (n.lineno, n.col_offset), default=found)
    elif isinstance(found, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign) and found.value is not None:
        found = found.value
    return _site(code, found)


def name_site(code: Code, name: str) -> Site:
    """Return where the cell first mentions a name; where it gives its value, if it does not."""
    nodes = [n for n in ast.walk(ast.parse(code.cell.source)) if isinstance(n, ast.Name) and n.id == name]
    first = min(nodes, key=lambda n: (n.lineno, n.col_offset), default=None)
    return value_site(code) if first is None else _site(code, first)


def _site(code: Code, node: Any) -> Site:
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end, last = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", 0)
    return Site(code.cell.label, code.cell.run, line, column, end, last)


def _moving(code: Code, name: str, captured: Captured, parted: Parted) -> Node:
    """Return the node of a variable: the notebook's value, as the cell read it, before one that the cell binds."""
    notebook = parted.notebook
    own = name in captured.values and name in captured.parsed.binds and name not in captured.parsed.reads
    value = captured.values[name] if own or name not in notebook else captured.inputs.get(name, notebook[name])
    tensor = value if isinstance(value, Tensor) else input_of(value, name)
    if isinstance(tensor, Labelled) and tensor.detached:
        raise DifferentiationError(
            f"{name} is used by pandas methods in this cell, and these have no derivative",
            f"Use {name}.to_numpy() and NumPy functions instead.",
        )
    node = None
    if tensor is not None:
        if told := not_alone(tensor, name):
            place = report.of_site(name_site(code, name))
            warnings.warn_explicit(told, UserWarning, code.cell.label, place.line)
        node = tensor.node if own else parted.entry.get(name) or _at_entry(tensor)
    if own and node is not None:
        first, before = captured.capture.names.bound.get(name, (value, node))
        if first is not value and depends([node], before):
            _tell_rebound(code, name)
    if node is None or not node.type.inexact:
        what = f"{node.type}" if node is not None else _kind(value)
        raise DifferentiationError(
            f"{name} is {what}: there is no derivative with respect to it", _as_floats(name, value)
        )
    return node


def _tell_rebound(code: Code, name: str) -> None:
    """Warn where a name has several values in the cell, each computed from the one before: the gradient is with respect to the last."""
    place = report.of_site(value_site(code, name))
    message = (
        f"grad_{name} is with respect to the last value of {name}, which the cell has computed from its first one\n"
        + "\n".join(place.drawn())
        + f"\n  For the first value give it a name of its own: {name}0 = ...; {name} = {name}0; and --grad {name}0."
    )
    warnings.warn_explicit(message, UserWarning, code.cell.label, place.line)


def _kind(value: Any) -> str:
    """Return the class of a value that is no number: ``a list``."""
    kind = type(value).__name__
    return kind if np.isscalar(value) or value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _as_floats(name: str, value: Any) -> str:
    """Return how to make a variable one that has a derivative."""
    if isinstance(value, int):
        return f"Write {float(value)} for {value}, or {name} = float({name})."
    if hasattr(value, "astype") and not isinstance(value, ModuleType):  # NumPy has it, too
        return f"Convert it: {name} = {name}.astype(float)."
    if isinstance(value, list | tuple) and _whole_numbers(value):
        return f"Make it an array of floats: {name} = np.array({name}, dtype=float)."
    if isinstance(value, list | tuple | dict):
        return f"If it holds floats, assign {name} in a cell before this one."
    return "There are derivatives with respect to floats, arrays of floats, and containers and objects that hold such."


def _whole_numbers(value: Any) -> bool:
    """Return whether lists hold integers alone, and would be an array of them."""
    try:
        return np.asarray(value).dtype.kind in "iu"
    except (ValueError, OverflowError):
        return False


def _at_entry(tensor: Tensor) -> Node:
    """Return the node of an array of the notebook as the cell found it, also where the cell has stored into it."""
    place = tensor.place
    return place.buffer.first if place.parent is None and place.buffer.array is not None else tensor.node
