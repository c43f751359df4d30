"""How many additions, multiplications and divisions a function of vecmath is made of: its formula is run and counted."""

from __future__ import annotations

import re
from functools import cache
from inspect import signature
from typing import Any

_COUNTED = re.compile(r"= (fadd|fsub|fmul|fdiv|frem)\b|@\"?llvm\.(fma|sqrt)\.")


@cache
def _formulas() -> dict[str, Any]:
    """Return the formulas by the names of the operations that they are; none where llvmlite is missing."""
    try:
        from tensormagic.backend.vecmath import formulas as vecmath_formulas
        from tensormagic.backend.vecmath import hyperbolic as vecmath_hyperbolic
        from tensormagic.backend.vecmath import inverse as vecmath_inverse
        from tensormagic.backend.vecmath import roots as vecmath_roots
        from tensormagic.backend.vecmath import trig as vecmath_trig
    except ImportError:
        return {}
    modules = (vecmath_formulas, vecmath_hyperbolic, vecmath_inverse, vecmath_roots, vecmath_trig)
    return {name: getattr(module, name) for module in modules for name in module.__all__}


@cache
def flops_of(name: str, bits: int = 64) -> int:
    """Return the floating-point operations in one application of an operation: 1 where it is no function of vecmath.

    A fused multiply-add counts as two, a square root as one; comparisons, selections and integer arithmetic are not
    counted, nor is what only huge arguments of sin, cos and tan need.

    Parameters
    ----------
    name
        The operation's name.
    bits
        Of the float format, 64 or 32.

    Examples
    --------
    >>> flops_of("add")
    1
    >>> 10 < flops_of("exp") < 60
    True
    """
    formula = _formulas().get(name)
    if formula is None:
        return 1
    from tensormagic.backend.vecmath.ir import Emitter, Value, ir

    count = len(signature(formula).parameters)
    kind = ir.DoubleType() if bits == 64 else ir.FloatType()
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(kind, [kind] * count), "formula")
    builder = ir.IRBuilder(function.append_basic_block())
    emitter = Emitter(builder, bits, 0, has_fma=True, register=256)
    builder.ret(formula(*(Value(emitter, argument) for argument in function.args)).raw)
    usual = [str(f) for f in module.functions if not f.is_declaration and ".large." not in f.name]
    return max(1, sum(2 if m[2] == "fma" else 1 for text in usual for m in _COUNTED.finditer(text)))
