"""Sine and cosine for every finite argument, vectorised for usual ones.

An argument below a bound is reduced by pi/2 in three parts. A larger one needs hundreds of digits of 2/pi, and a branch. A branch
in a loop would keep LLVM from vectorising it, so a kernel calls a function of its own module that has vector variants (LLVM's
vector function ABI): each reduces all lanes the usual way, and corrects the rare large ones lane by lane. Nothing here knows Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from tensormagic.backend.vecmath_formulas import FORMATS
from tensormagic.backend.vecmath_ir import Emitter, Value
from tensormagic.backend.vecmath_tables import TWO_OVER_PI

__all__ = ["cos", "sin"]

_BOUND = {64: 2.0**30, 32: 2.0**16}
_I32, _I64, _I128, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.IntType(128), ir.DoubleType()
_BYTE = ir.IntType(8).as_pointer()


def _reduce(x: Value) -> tuple[Value, Value, Value]:
    """n, r, tail with n pi/2 + r + tail = x, where x is below the bound; the low bits of n tell the quadrant."""
    f = FORMATS[x.emitter.bits]
    first, second, third = f.polynomials.half_pi
    shifted = x.fma(f.polynomials.two_over_pi, f.round_to_int)
    n = shifted - f.round_to_int
    near = x.minus_product(n, first)
    low, error = n.product(second)
    r = near - low
    return shifted.bits(), r, n.fma(-third, ((near - r) - low) - error)


def _sine(quadrant: Value, r: Value, tail: Value) -> Value:
    """The sine of quadrant * pi/2 + r + tail, where abs(r) is at most pi/4."""
    f = FORMATS[r.emitter.bits]
    leading, *others = f.polynomials.sin
    z = r * r
    cube = z * r
    bend = z * (tail * 0.5 - cube * z.polynomial(*others)) - tail
    sine = r - (bend - cube * leading)
    half = z * 0.5
    level = 1.0 - half
    drop = (1.0 - level) - half
    cosine = level + (drop + (z * z).fma(z.polynomial(*f.polynomials.cos), -(r * tail)))
    sign = (quadrant & 2) << (r.emitter.bits - 2)
    return ((quadrant & 1).equals(0).select(sine, cosine).bits() ^ sign).real()


def _usual(x: Value, quarter: int) -> Value:
    quadrant, r, tail = _reduce(x)
    return _sine(quadrant + quarter, r, tail)


def _is_large(x: Value) -> Value:
    magnitude = abs(x)
    return (magnitude >= _BOUND[x.emitter.bits]) & (magnitude < float("inf"))


def _declare(module: Any, name: str, result: Any, *parameters: Any) -> Any:
    function = ir.Function(module, ir.FunctionType(result, parameters), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "readnone", "willreturn"):
        set.add(function.attributes, attribute)      # llvmlite's own list of attributes lacks some
    return function


def _words(module: Any) -> Any:
    """The digits of 2/pi as a table of the module, led by a word of zeros."""
    words = (0, *TWO_OVER_PI)
    table = ir.GlobalVariable(module, ir.ArrayType(_I64, len(words)), "tensormagic.two_over_pi")
    table.initializer = ir.Constant(table.type.pointee, list(words))
    table.global_constant = True
    table.linkage = "internal"
    return table


def _large(emitter: Emitter, quarter: int) -> Any:
    """The function of one double beyond the bound: the reduction of Payne and Hanek, in integers."""
    module = emitter.builder.module
    name = f"tensormagic.large.{quarter}"
    if name in module.globals:
        return module.globals[name]
    function = _declare(module, name, _DOUBLE, _DOUBLE)
    builder = ir.IRBuilder(function.append_basic_block())
    scalar = Emitter(builder, 64, 0, emitter.has_fma)
    table = module.globals.get("tensormagic.two_over_pi") or _words(module)

    def wide(value: Any) -> Any:
        return builder.zext(value, _I128)

    bits = Value(scalar, function.args[0]).bits()
    mantissa = ((bits & ((1 << 52) - 1)) | (1 << 52)).raw
    # x is mantissa * 2**exponent. Of 2/pi the places from exponent - 2 on matter: those before give whole turns.
    exponent = (bits.unsigned_shift(52) & 2047) - (1075 - 62)
    index, offset = exponent.unsigned_shift(6), (exponent & 63).raw
    words = []
    for k in range(4):
        address = builder.gep(table, [ir.Constant(_I32, 0), (index + k).raw], inbounds=True)
        words.append(builder.load(address))
    # Three words of places, shifted to begin at the first that matters.
    digits = [builder.call(_funnel(module), [words[k], words[k + 1], offset]) for k in range(3)]
    turns = builder.shl(wide(builder.mul(mantissa, digits[0])), ir.Constant(_I128, 64))
    turns = builder.add(turns, builder.mul(wide(mantissa), wide(digits[1])))
    turns = builder.add(turns, builder.lshr(builder.mul(wide(mantissa), wide(digits[2])), ir.Constant(_I128, 64)))
    # The top two bits are the quadrant, the rest its fraction, here rounded to the nearest quadrant.
    rounded = builder.add(turns, ir.Constant(_I128, 1 << 125))
    quadrant = Value(scalar, builder.trunc(builder.lshr(rounded, ir.Constant(_I128, 126)), _I64))
    fraction = builder.shl(turns, ir.Constant(_I128, 2))
    negative = builder.icmp_signed("<", fraction, ir.Constant(_I128, 0))
    magnitude = builder.select(negative, builder.neg(fraction), fraction)
    zeros = builder.ctlz(magnitude, ir.Constant(ir.IntType(1), 0))
    magnitude = builder.shl(magnitude, zeros)

    def places(start: int, count: int) -> Value:
        part = builder.and_(builder.lshr(magnitude, ir.Constant(_I128, 128 - start - count)), ir.Constant(_I128, (1 << count) - 1))
        return Value(scalar, builder.trunc(part, _I64)).to_real() * 2.0 ** -(start + count)

    scale = ((1023 - Value(scalar, builder.trunc(zeros, _I64))) << 52).real()
    high, low = places(0, 53) * scale, places(53, 53) * scale
    first, second, _ = FORMATS[64].polynomials.half_pi
    r, error = high.product(first)
    tail = low.fma(first, high.fma(second, error))
    sine_sign = Value(scalar, builder.zext(negative, _I64)) << 63
    r, tail = (r.bits() ^ sine_sign).real(), (tail.bits() ^ sine_sign).real()
    # The sign of x: sin(-y) = -sin(y) and cos(-y) = cos(y).
    x_sign = bits & -(1 << 63)
    r, tail = (r.bits() ^ x_sign).real(), (tail.bits() ^ x_sign).real()
    quadrant = (bits < 0).select(-quadrant, quadrant)
    builder.ret(_sine(quadrant + quarter, r, tail).raw)
    return function


def _funnel(module: Any) -> Any:
    name = "llvm.fshl.i64"
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(_I64, [_I64] * 3), name)


def _corrected(x: Value, result: Value, large: Any) -> Any:
    """The result where no lane is large, else the result with those lanes replaced, one by one."""
    builder, lanes = x.emitter.builder, x.emitter.lanes
    mask = _is_large(x).raw
    flag = builder.icmp_unsigned("!=", builder.bitcast(mask, ir.IntType(lanes)), ir.Constant(ir.IntType(lanes), 0)) if lanes else mask
    start = builder.block
    slow, done = builder.append_basic_block("slow"), builder.append_basic_block("done")
    builder.cbranch(flag, slow, done, )
    builder.position_at_end(slow)
    replaced, last = (_lane_loop if lanes else _one)(builder, x.raw, result.raw, mask, large)
    builder.branch(done)
    builder.position_at_end(done)
    merged = builder.phi(x.raw.type)
    merged.add_incoming(result.raw, start)
    merged.add_incoming(replaced, last)
    return merged


def _exact_call(builder: Any, x: Any, large: Any) -> Any:
    if isinstance(x.type, ir.DoubleType):
        return builder.call(large, [x])
    return builder.fptrunc(builder.call(large, [builder.fpext(x, _DOUBLE)]), x.type)


def _one(builder: Any, x: Any, _result: Any, _mask: Any, large: Any) -> tuple[Any, Any]:
    return _exact_call(builder, x, large), builder.block


def _lane_loop(builder: Any, x: Any, result: Any, mask: Any, large: Any) -> tuple[Any, Any]:
    before = builder.block
    loop, change, after = (builder.append_basic_block(name) for name in ("lane", "change", "next"))
    finish = builder.append_basic_block("finish")
    builder.branch(loop)
    builder.position_at_end(loop)
    lane, current = builder.phi(_I32), builder.phi(x.type)
    builder.cbranch(builder.extract_element(mask, lane), change, after)
    builder.position_at_end(change)
    changed = builder.insert_element(current, _exact_call(builder, builder.extract_element(x, lane), large), lane)
    builder.branch(after)
    builder.position_at_end(after)
    following = builder.phi(x.type)
    following.add_incoming(current, loop)
    following.add_incoming(changed, change)
    step = builder.add(lane, ir.Constant(_I32, 1))
    lane.add_incoming(ir.Constant(_I32, 0), before)
    lane.add_incoming(step, after)
    current.add_incoming(result, before)
    current.add_incoming(following, after)
    builder.cbranch(builder.icmp_unsigned("<", step, ir.Constant(_I32, x.type.count)), loop, finish)
    builder.position_at_end(finish)
    return following, finish


def _body(function: Any, bits: int, lanes: int, has_fma: bool, quarter: int) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    emitter = Emitter(builder, bits, lanes, has_fma)
    x = Value(emitter, function.args[0])
    builder.ret(_corrected(x, _usual(x, quarter), _large(emitter, quarter)))


def _keep(module: Any, functions: list[Any]) -> None:
    """Keep functions that nothing calls yet, until the loop vectoriser has seen the calls it may widen."""
    name = "llvm.compiler.used"
    old = module.globals.get(name)
    kept = [f.bitcast(_BYTE) for f in functions]
    if old is not None:
        kept = [*old.initializer.constant, *kept]
        del module.globals[name]
        module.scope._useset.discard(name)                                                                     # noqa: SLF001
    used = ir.GlobalVariable(module, ir.ArrayType(_BYTE, len(kept)), name)
    used.linkage, used.section = "appending", "llvm.metadata"
    used.initializer = ir.Constant(used.type.pointee, kept)


def _function(emitter: Emitter, quarter: int, widths: tuple[int, ...]) -> Any:
    """The scalar function of the module with its vector variants, made at the first use."""
    module, scalar = emitter.builder.module, emitter.real
    name = f"tensormagic.{('sin', 'cos')[quarter]}.f{emitter.bits}"
    if name in module.globals:
        return module.globals[name]
    function = _declare(module, name, scalar, scalar)
    variants = []
    for lanes in widths:
        kind = ir.VectorType(scalar, lanes)
        variants.append(_declare(module, f"{name}.v{lanes}", kind, kind))
        _body(variants[-1], emitter.bits, lanes, emitter.has_fma, quarter)
    mappings = ",".join(f"_ZGV_LLVM_N{lanes}v_{name}({name}.v{lanes})" for lanes in widths)
    set.add(function.attributes, f'"vector-function-abi-variant"="{mappings}"')
    _body(function, emitter.bits, 0, emitter.has_fma, quarter)
    _keep(module, variants)
    return function


def _define(quarter: int, text: str) -> Callable[[Value, tuple[int, ...]], Value]:
    def call(x: Value, widths: tuple[int, ...]) -> Value:
        function = _function(x.emitter, quarter, widths)
        return Value(x.emitter, x.emitter.builder.call(function, [x.raw]))

    call.__doc__ = text
    return call


sin = _define(0, "The sine, in variants for the given numbers of lanes.")
cos = _define(1, "The cosine, in variants for the given numbers of lanes.")
