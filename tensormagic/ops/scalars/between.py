"""Bounds of integer values as sizes, by which comparisons of sizes that depend on them are decided."""

from __future__ import annotations

import numpy as np

from tensormagic.ir.node import Node, as_size
from tensormagic.ir.operation import Bounds
from tensormagic.ir.size import Size, apply, lower_bound
from tensormagic.ops.pointwise import whole_number


def of_mask(node: Node) -> Bounds:
    """Return the bounds of ``bitwise_and`` with a nonnegative constant."""
    masks = [m for m in map(whole_number, node.args) if m is not None and m >= 0]
    return (0, min(masks)) if masks else (None, None)


def of_power(node: Node) -> Bounds:
    """Return the bounds of a positive constant to a power that is nonnegative and too small to overflow."""
    base, exponent = whole_number(node.args[0]), as_size(node.args[1])
    if base is None or base < 1 or exponent is None:
        return None, None
    low, high = lower_bound(exponent), lower_bound(-exponent)
    if low is None or high is None or not 0 <= low <= -high <= _BITS:
        return None, None
    largest = base**-high
    return (base**low, largest) if largest <= np.iinfo(node.type.dtype).max else (None, None)


def of_choice(node: Node) -> Bounds:
    """Return the bounds of a choice between two integers."""
    (low, high), (other_low, other_high) = map(_ends, node.args[1:])
    return (
        None if low is None or other_low is None else apply("min", low, other_low),
        None if high is None or other_high is None else apply("max", high, other_high),
    )


def _ends(node: Node) -> Bounds:
    size: Size | None = as_size(node)
    return (size, size) if size is not None else node.bounds


_BITS = 64
