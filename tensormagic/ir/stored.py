"""bfloat16, the dtype of the package ``ml_dtypes``: such numbers are stored in memory, and computed with in single precision.

Nodes that move, store or convert values may be of this dtype; no other node takes it. Whoever builds a function of
such values builds it in single precision, between two conversions. The package is imported where a text names the
dtype, and nowhere else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic.ir.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensormagic.ir.node import Node
    from tensormagic.ir.operation import Operation

NAME, PACKAGE = "bfloat16", "ml_dtypes"
SINGLE = np.dtype(np.float32)
INSTALL = "pip install ml_dtypes"
SEEN: set[np.dtype[Any]] = set()  # empty as long as the process has met no such dtype: then nodes are not checked
HINT = "Convert it first, by .astype(np.float32); .astype(ml_dtypes.bfloat16) makes a result narrow again."


def is_stored(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is bfloat16."""
    return dtype.kind == "V" and dtype.type.__name__ == NAME and dtype.type.__module__ == PACKAGE


def is_narrow(kind: type) -> bool:
    """Return whether a class is bfloat16's scalar class."""
    return issubclass(kind, np.generic) and kind.__name__ == NAME and kind.__module__ == PACKAGE


def text_of(dtype: np.dtype[Any]) -> str:
    """Return the text by which :func:`dtype_of` finds a dtype again."""
    return NAME if is_stored(dtype) else dtype.str


def dtype_of(text: Any) -> np.dtype[Any]:
    """Return the dtype that a text names."""
    if isinstance(text, str) and text == NAME:
        try:
            found = np.dtype(import_module(PACKAGE).bfloat16)
        except ImportError:
            raise DTypeError(f"{NAME} is a dtype of the package {PACKAGE}, which is not installed", INSTALL) from None
        SEEN.add(found)
        return found
    return np.dtype(text)


def check(op: Operation, args: Sequence[Node]) -> None:
    """Raise an error for an op that would compute with bfloat16."""
    if not (op.any_dtype or op.hands_on or op.takes) and any(is_stored(t.dtype) for a in args for t in a.types):
        raise DTypeError(f"{op.plainly or op.name} is not computed of {NAME}", HINT)
