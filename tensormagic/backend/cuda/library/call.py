"""A call of the device's library: its operands, and the table of calls by the name of the op that each computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ops.op import Value

Raises = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Call:
    """One node with its operands: arrays of the device, and numbers in the dtypes of the node's operands.

    Parameters
    ----------
    fails
        ``fails(flag, raises)``: where the flag turns out to be true, what is raised.
    """

    device: Device
    node: Node
    values: Sequence[Any]
    size: Callable[[Size], int]
    fails: Callable[[DeviceArray, Raises], None]

    @property
    def xp(self) -> Any:
        """Return the device's library."""
        return self.device.library

    def array(self, k: int) -> DeviceArray:
        """Return an operand as an array of the device."""
        value = self.values[k]
        return value if self.device.is_array(value) else self.xp.asarray(value, dtype=self.node.args[k].type.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape stated by the node's parameters."""
        return tuple(map(self.size, self.node["shape"]))


Function = Callable[[Call], Value]
LIBRARY: dict[str, Function] = {}


def call(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the library call for the ops of these names."""

    def add(function: Function) -> Function:
        for name in names:
            LIBRARY[name] = function
        return function

    return add
