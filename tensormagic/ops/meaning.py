"""One-line explanations of operations for users: the op's own doc, and how NumPy or SciPy calls it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.op import registry

_LETTERS = ("x", "y", "z", "u", "v", "w")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?=\()")
_LONGEST = 60  # characters of a notation


def meaning(op: Operation) -> str:
    """Return the op's doc, followed by NumPy's or SciPy's name in brackets, if there is one.

    >>> meaning(registry["softplus"]), meaning(registry["xlogy"])
    ('log(1 + exp(x)), without overflow (np.logaddexp(x, 0))', 'x log(y), which is 0 for x = 0 (scipy.special.xlogy)')
    """
    return _joined(op.doc, _notation(op))


def of_node(node: Node) -> str:
    """Return :func:`meaning` of a node's op; for a contraction with its subscripts, as ``np.einsum`` takes them."""
    if node.op is not CONTRACT:
        return meaning(node.op)
    return _joined(node.op.doc, f'np.einsum("{node["subscripts"]}", ...)')


def brought_in(rules: Sequence[str], wanted: Collection[str] = ()) -> dict[str, str]:
    """Return the operations that rules introduce, by the rules' texts, each with its meaning; only those ``wanted``, if given.

    >>> brought_in(["log1p(exp(x)) -> softplus(x)"])
    {'softplus': 'log(1 + exp(x)), without overflow (np.logaddexp(x, 0))'}
    """
    found: dict[str, str] = {}
    for rule in rules:
        left, arrow, right = rule.partition("->")
        names = _CALL.findall(right) if arrow else [rule.strip()]
        for name in names:
            op = CONTRACT if name == "einsum" else registry.get(name)
            if op is not None and op.doc and not op.infix and name not in _CALL.findall(left if arrow else ""):
                found[name] = meaning(op)
    return {name: text for name, text in found.items() if not wanted or name in wanted}


def reason(rules: Sequence[str]) -> str:
    """Return why rules introduce an operation, as its doc says after a comma; empty if none says so.

    >>> reason(["log1p(exp(x)) -> softplus(x)"]), reason(["x + y -> y + x"])
    ('no overflow', '')
    """
    for name in brought_in(rules):
        op = CONTRACT if name == "einsum" else registry[name]
        _, _, why = op.doc.rstrip(".").partition(", ")
        if why.startswith(("without overflow", "accurate")):
            return why.replace("without overflow", "no overflow")
    return ""


def _joined(doc: str, notation: str) -> str:
    text = doc.rstrip(".")
    return f"{text} ({notation})" if text and notation and notation not in text else text or notation


def _notation(op: Operation) -> str:
    """Return ``np.logaddexp(x, 0)``, ``scipy.special.xlogy``, ``np.log1p``; empty if there is none, or it is long."""
    text = op.in_numpy
    if "{" in text:
        try:
            text = text.format(*_LETTERS)
        except (LookupError, ValueError):  # the text also names parameters
            text = ""
    elif not text and hasattr(np, op.name) and not op.infix:
        text = f"np.{op.name}"
    if op is CONTRACT:
        text = "np.einsum"
    return text if "." in text and len(text) <= _LONGEST else ""
