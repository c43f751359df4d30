"""``ufunc.at``: stores at indices that may contain a place twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_foreign_store
from tensormagic.capture.numbers.known_values import arithmetic
from tensormagic.capture.stores.storing import by_places, chosen_first, entries, fitted, is_advanced, spread
from tensormagic.capture.values.index_arrays import Items, arranged, resolve
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ops.indices import scatter
from tensormagic.ops.leaf import constant
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import Pointwise, astype

AT: dict[str, Opaque] = {
    "add": scatter.SCATTER_ADD,
    "subtract": scatter.SCATTER_ADD,
    "multiply": scatter.SCATTER_MULTIPLY,
    "maximum": scatter.SCATTER_MAXIMUM,
    "minimum": scatter.SCATTER_MINIMUM,
}


def at(ufunc: Any, op: Pointwise | None, x: Any, index: Any, *given: Any) -> None:
    """Store by ``ufunc.at(x, index, value)``: repeated indices are combined one after the other."""
    name = ufunc.__name__
    if not isinstance(x, Tensor):
        refuse_foreign_store(f"np.{name}.at")
    if name not in AT or op is None:
        refuse(f"np.{name}.at", f"Those of {', '.join(AT)} are captured.")
    if len(given) != 1:
        refuse(f"np.{name}.at with {len(given)} values", "Give one array of values.")
    (value,) = given
    if x.place.writeable is False:
        refuse(f"np.{name}.at into a read-only array, which NumPy does not check here,", "Store into a copy.")
    items = spread(entries(index), x.ndim)
    values = node_of(value)
    values = astype(values, values.type.dtype) if values.type.form != "python" else constant(np.asarray(0)) + values
    loop = ufunc.resolve_dtypes((x.dtype, node_of(value).type.dtype, None))[1]
    if not is_advanced(items):
        _at_once(op, x, items, values)
        return
    found = resolve(x, items)
    front, arrange = arranged(found) if found.mask is None else by_places(found, found.mask)
    combined = chosen_first(arrange, astype(values, loop))
    if name == "subtract":
        combined = -combined
    stored = scatter.scatter(AT[name], front, arrange.indices, combined)
    found.view.place.write(context.record(arrange.back(stored)))


def _at_once(op: Pointwise, x: Tensor, items: Items, value: Node) -> None:
    """Store by ``ufunc.at`` with slices, which contain no place twice."""
    view = x[(*items, Ellipsis)]
    given = fitted(value, view.type.shape, "array is not broadcastable to correct shape")
    view.place.write(context.record(astype(arithmetic(op, [view.node, given]), x.dtype)))
