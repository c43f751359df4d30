"""The functions of complex numbers, and remainders, for Numba: jitted functions and no intrinsics, since they branch."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import extending

from tensormagic.backend.vecmath import division_text as divisions
from tensormagic.backend.vecmath.complex_text import CONSTANTS, TEXTS
from tensormagic.backend.vecmath.functions import FUNCTIONS as _FUNCTIONS
from tensormagic.backend.vecmath.functions import PARTIAL, machine
from tensormagic.backend.vecmath.ir import Emitter, Value

_intrinsic: Any = extending.intrinsic
_jit: Any = numba.njit(error_model="numpy")


@_intrinsic
def _fused(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where the machine can do that."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: tuple[Any, ...]) -> Any:
        emitter = Emitter(builder, a.bitwidth, 0, *machine(context))
        left, right, term = (Value(emitter, argument) for argument in arguments)
        return left.fma(right, term).raw

    return a(a, b, c), generate


FUNCTIONS: dict[str, Any] = {}
"""The functions by the names that kernels call them by."""

_known: dict[str, Any] = {**_FUNCTIONS, **PARTIAL, **divisions.CONSTANTS, **CONSTANTS, "fused": _fused, "np": np}
_known |= {function.__name__: function for function in (math.sqrt, np.trunc, np.floor)}
for _name, _text in {**divisions.TEXTS, **TEXTS}.items():
    _names: dict[str, Any] = {**_known, **FUNCTIONS}
    exec(compile(_text, f"<{_name}>", "exec"), _names)  # noqa: S102 (the project's own text)
    FUNCTIONS[_name] = _jit(_names[_name])
