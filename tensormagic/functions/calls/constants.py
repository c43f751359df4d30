"""Arguments of a call that are constant in its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture.random.generators import is_generator
from tensormagic.capture.tree import is_container, parts_in
from tensormagic.functions.reads import value_kinds
from tensormagic.functions.reads.wrappers import WRAPPERS

_CONTAINERS = {tuple, list, dict}


def constants_of(tree: Any) -> list[Any]:
    """Return the arguments of a call that are no inputs: objects, and the classes of containers."""
    found: list[Any] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if (
            isinstance(value, np.ndarray)
            or is_generator(value)
            or (value_kinds.is_constant(value) and type(value) not in WRAPPERS)
        ):
            continue
        if type(value) not in _CONTAINERS:
            found.append(type(value) if is_container(value) else value)
        if is_container(value):
            pending += parts_in(value)
    return found
