"""The functions of complex numbers for Numba: jitted functions and no intrinsics, since they branch."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import extending

from tensormagic.backend.vecmath import FUNCTIONS as _FUNCTIONS
from tensormagic.backend.vecmath import machine
from tensormagic.backend.vecmath_complex_text import CONSTANTS, TEXTS
from tensormagic.backend.vecmath_ir import Emitter, Value

__all__ = ["FUNCTIONS"]

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


def _jitted(name: str) -> Any:
    """The function that a text is."""
    names: dict[str, Any] = {**_FUNCTIONS, **CONSTANTS, "fused": _fused, "np": np}
    exec(compile(TEXTS[name], f"<{name}>", "exec"), names)  # noqa: S102 (the project's own text)
    return _jit(names[name])


FUNCTIONS: dict[str, Any] = {name: _jitted(name) for name in TEXTS}
"""The functions by the names that kernels call them by."""
