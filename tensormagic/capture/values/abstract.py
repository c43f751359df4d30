"""Lazy arrays without values, which stand for what a captured function is given and reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.inputs import door
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, input_node, open_type


def fresh_input(value: Any, name: str) -> Node:
    """Return an input without a value, of the type of ``value`` with its sizes left open."""
    source = Source(name)
    value = door.variable(value, name)
    if isinstance(value, np.ndarray):
        door.check_dtype(value.dtype, name)
        return input_node(source, open_type(source, value.dtype, value.shape))
    form = "python" if type(value) in {float, complex} else "scalar"
    return input_node(source, Type(np.asarray(value).dtype, (), form))


def abstract_tensor(value: Any, name: str) -> Tensor:
    """Return a lazy array that stands for an argument."""
    return _own(fresh_input(value, name), name)


def found_input(value: Any, name: str, capture: Capture) -> Tensor:
    """Return a lazy array for a value that a trace has found to be read."""
    found = abstract_tensor(value, name)
    found.place.buffer.born = 0  # it existed before, even if code on trial reads it first
    capture.inputs.values[found.node] = value
    return found


def stand_in_tensor(node: Node, name: str) -> Tensor:
    """Return a lazy array for an argument, valid only inside the function; ``name`` is for messages."""
    context.stands_in(node)
    return _own(node, name)


def _own(node: Node, name: str) -> Tensor:
    """Return a lazy array with a buffer of its own."""
    return Tensor(Place(Buffer(node, None, name, argument=True)))
