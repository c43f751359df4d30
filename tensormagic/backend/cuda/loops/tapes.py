"""Tapes whose entries are arrays of the device: written, read, extended and stacked without copies to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Device
from tensormagic.ir.node import Node
from tensormagic.ops.interpret import is_alone
from tensormagic.ops.op import Value
from tensormagic.ops.reverse.tape import (
    ADD_RECORD,
    ADD_TAPES,
    LEAD_TAPE,
    RECORD,
    REPLAY,
    SUM_TAPE,
    Chosen,
    Reshaped,
    Tape,
)
from tensormagic.ops.reverse.tape_stack import EXTENT, STACK_TAPE, UNSTACK_TAPE

_INDEXED = frozenset([RECORD, ADD_RECORD, REPLAY, EXTENT])  # whose second operand is an index
_WHOLE = frozenset([ADD_TAPES, LEAD_TAPE, SUM_TAPE, STACK_TAPE, UNSTACK_TAPE])


def is_on_tapes(node: Node) -> bool:
    """Return whether a node writes or reads tapes with one entry per place; elements of a batch may have their own."""
    return node.op in _WHOLE or (node.op in _INDEXED and not node.args[1].type.shape)


def has_own(value: Value) -> bool:
    """Return whether a value is a tape of a batch, each of whose elements has entries of its own."""
    return isinstance(value, Chosen) or (isinstance(value, Tape) and any(map(has_own, value.entries)))


def taped(device: Device, node: Node, given: list[Value], size: Any) -> Value:
    """Return the value of a node on tapes, leaving their entries where they are."""
    if node.op in _INDEXED and device.is_array(given[1]):
        given[1] = device.read(given[1])
    if isinstance(node.op, Reshaped):
        return node.op.by(node, given[0], size, lambda entry: device.library if device.is_array(entry) else np)
    if node.op is STACK_TAPE:
        return _stacked(device, node, given[0], size)
    if node.op is UNSTACK_TAPE and device.is_array(given[0]):
        return Tape([given[0][k].copy() for k in range(given[0].shape[0])])
    reuse = getattr(node.op, "reuse", None)
    if reuse is not None and is_alone(given):
        return reuse(node, given, size)
    return node.op.evaluate(node, given, size)


def _stacked(device: Device, node: Node, tape: Tape, size: Any) -> Value:
    count, *shape = (size(s) for s in node["shape"])
    dtype, xp = node.type.dtype, device.library
    result = xp.zeros((count, *shape), dtype)
    for k in range(count):
        found = tape.array(k, tuple(shape), dtype)
        result[k] = found if device.is_array(found) or not found.ndim else device.put(found)
    return result
