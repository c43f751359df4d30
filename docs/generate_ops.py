"""Writes docs/ops.md from the registry: one row an op. ``python docs/generate_ops.py``; a test holds that it is up to date."""

from __future__ import annotations

from pathlib import Path

import tensormagic  # noqa: F401 (fills the registry)
from tensormagic.ops.fold_kind import Fold
from tensormagic.ops.op import Op, registry
from tensormagic.ops.pointwise import Pointwise

HEAD = """# Operations

Made by `python docs/generate_ops.py` from the registry. *Loop*: for which dtype kinds (b bool, i and u integers, f floats, c complex) the
operation is printed into compiled loops; for the others NumPy runs it. *Derivative*: a rule of its own, from its body in simpler
operations, zero (piecewise constant), or none.
"""
KINDS = ("leaf", "pointwise", "fold", "move", "update", "contract", "opaque", "region")


def loop_kinds(op: Op) -> str:
    """The dtype kinds that the code generator has text for."""
    if not isinstance(op, Pointwise):
        taken = op.kinds if isinstance(op, Fold) else "biufc"
        return taken if getattr(op, "step", None) or getattr(op, "index", None) else ""
    if op.body is not None:
        return "f"
    return "f" if isinstance(op.source, str) else "".join(k for k in "biufc" if k in "".join(op.source))


def derivative(op: Op) -> str:
    """How the op is differentiated."""
    if op.kind == "leaf" and op.name != "item":
        return "–"
    if getattr(op, "step", None) is True or getattr(op, "differentiable", True) is False:
        return "zero"
    rules = ("partials", "linearise", "tangent", "back", "index")
    if (
        any(getattr(op, name, None) is not None for name in rules)
        or op.kind in {"update", "contract"}
        or "jvp" in vars(type(op))
    ):
        return "yes"
    return "–"


def told(op: Op) -> str:
    """Its line, in which a bar is no border of the table."""
    return op.doc.replace("|", "\\|")


def table() -> str:
    """The page."""
    lines = [HEAD]
    for kind in KINDS:
        ops = sorted((op for op in registry.values() if op.kind == kind), key=lambda op: op.name)
        if not ops:
            continue
        lines += [f"\n## {kind.capitalize()}\n", "| name | what it is | loop | derivative |", "|---|---|---|---|"]
        lines += [f"| `{op.name}` | {told(op)} | {loop_kinds(op)} | {derivative(op)} |" for op in ops]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("ops.md").write_text(table())
