"""Advice when another library refuses a lazy value: which libraries do, and how to pass the numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import TensorError
from tensormagic.ir.modules import may_be_users


def of_library(error: BaseException, read: Mapping[str, Tensor]) -> str:
    """Return the hint where another library has refused something, and the user's line reads lazy values."""
    module = _raising(error)
    by_class = isinstance(error, TypeError | KeyError | AttributeError) and module
    if not read or isinstance(error, TensorError) or not (by_class or re.search(r"\bTensor\b|buffer API", str(error))):
        return ""
    ways = [f"{name}.{'numpy' if value.ndim else 'item'}()" for name, value in read.items()]
    are = f"{' and '.join(read)} {'are' if len(read) > 1 else 'is'} lazy"
    return f"{are}. If {module or 'this function'} needs the numbers themselves, write {' and '.join(ways)}."


def _raising(error: BaseException) -> str:
    """Return the library whose code raised an error; nothing for the user's code and ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or may_be_users(trace.tb_frame.f_code.co_filename):
        return ""
    module = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    return "" if module in {"tensormagic", "IPython"} else module
