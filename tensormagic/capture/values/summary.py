"""A lazy array in one line: its value if computed, otherwise its type and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.ir import site
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import Type, hint

if TYPE_CHECKING:
    from tensormagic.capture.values.lazy import Lazy


def type_text(t: Type, *, actual: bool = True) -> str:
    """Return the text of a type with the sizes that were seen: ``float64[569, 30]``."""
    if t.form == "python":
        return str(t)
    sizes = ", ".join(str(h if actual and (h := hint(s)) is not None else s).partition("#")[0] for s in t.shape)
    return f"{t.dtype}[{sizes}]" if t.shape or t.form == "array" else f"{t.dtype}"


def place_text(value: Lazy) -> str:
    """Return where the value was written down, by the last run of a cell that has done it: ``In[4] line 2``."""
    places = [s for s in site.of(value.node) if s.role == "value"]
    return str(max(places, key=lambda s: s.run)) if places else ""


def describe(value: Lazy, *, asked: bool = False) -> str:
    """Return the ``repr``: NumPy's own if a cell has ``asked``; else the value if computed or one cheap number, or type and place."""
    capture = context.current()
    if capture is None and is_on_device(value) and (value.type.shape or value.placed[1] == "refuse"):
        return f"Tensor({type_text(value.type)}, on the device)"
    if capture is None and asked:
        return repr(value.numpy())
    if capture is None and (is_computed(value) or _is_cheap(value.node)):
        return value_text(value.numpy())
    if capture is not None and not capture.abstract and not capture.heap.trials:
        return repr(value.numpy())
    where = place_text(value)
    return f"Tensor({type_text(value.type)}{', from ' + where if where else ''}, not computed yet)"


def is_computed(value: Lazy) -> bool:
    """Return whether the value of a lazy array has been computed at its level."""
    with value.leveled():
        return hooks.is_computed(value.node)


def is_on_device(value: Lazy) -> bool:
    """Return whether the value of a lazy array lies only on a device."""
    with value.leveled():
        return hooks.is_on_device(value.node)


FEW, SMALL = 64, 1_000_000  # operations, and elements of all of them: some milliseconds


def _is_cheap(node: Node) -> bool:
    """Return whether a value is a single number that takes only a few small operations."""
    if node.type.form == "array":
        return False
    found = topological([node], stop=hooks.is_computed)
    pending = [n for n in found if n.op.kind != "leaf" and not hooks.is_computed(n)]
    if len(pending) > FEW or any(n.op.kind not in _PLAIN for n in pending):
        return False
    return sum(hint(n.type.size) or SMALL for n in pending) < SMALL


_PLAIN = {"pointwise", "fold", "move", "contract"}  # no loop, no call of a library, no effect


def value_text(value: Any) -> str:
    """Return a number as Python shows it; an array as NumPy shows it, called a Tensor."""
    if isinstance(value, np.ndarray):
        return (
            "Tensor("
            + np.array2string(value, separator=", ", prefix="Tensor(", threshold=20, edgeitems=3)
            + f", {value.dtype}[{', '.join(map(str, value.shape))}])"
        )
    return repr(value)
