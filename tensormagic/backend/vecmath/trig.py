"""Sine, cosine and tangent for every finite argument, vectorised for usual ones.

An argument below a bound is reduced by pi/2 in three parts. A larger one needs hundreds of digits of 2/pi, and a
branch. A branch in a loop would keep LLVM from vectorising it, so a kernel calls a function of its own module that has
vector variants (LLVM's vector function ABI): each reduces all lanes the usual way, and corrects the rare large ones
lane by lane. Nothing here knows Numba.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensormagic.backend.vecmath.ir import Emitter, Value, ir
from tensormagic.backend.vecmath.parts import FORMATS, divided, fast_sum
from tensormagic.backend.vecmath.tables import TWO_OVER_PI

__all__ = ["cos", "sin", "tan"]

_BOUND = {64: 2.0**30, 32: 2.0**16}
_TABLE = "tensormagic.two_over_pi"
_I32, _I64, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_BYTE = ir.IntType(8).as_pointer()


def reduced(x: Value) -> tuple[Value, Value, Value]:
    """Find n, r, tail with x = n pi/2 + r + tail, for x below the bound; the low bits of n tell the quadrant."""
    f = FORMATS[x.emitter.bits]
    first, second, third = f.polynomials.half_pi
    shifted = x.fma(f.polynomials.two_over_pi, f.round_to_int)
    n = shifted - f.round_to_int
    near = x.minus_product(n, first)
    low, error = n.product(second)
    r = near - low
    return shifted.bits(), r, n.fma(-third, ((near - r) - low) - error)


def _sine(quadrant: Value, r: Value, tail: Value) -> Value:
    """Return the sine of quadrant * pi/2 + r + tail, where abs(r) is at most pi/4."""
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


def _tangent(quadrant: Value, r: Value, tail: Value) -> Value:
    """Return the tangent of quadrant * pi/2 + r + tail, where abs(r) is at most pi/4."""
    z, lost = r.product(r)
    factor = z.polynomial(*FORMATS[r.emitter.bits].polynomials.tan)
    more = z * factor
    high = r.fma(more, r)
    low = r.fma(more, r - high) + r * lost * factor
    low = tail.fma(high.fma(high, 1.0), low)
    total, lost = fast_sum(high, low)  # near multiples of pi/2 the tail is no longer small beside r
    inverse, rest = divided(r.emitter.constant(-1.0, r.emitter.real), 0.0, total, lost)
    even = low.equals(0.0).select(high, total)  # which keeps -0.0
    return (quadrant & 1).equals(0).select(even, inverse + rest)


def of_quadrant(name: str, quadrant: Value, r: Value, tail: Value) -> Value:
    return _tangent(quadrant, r, tail) if name == "tan" else _sine(quadrant + int(name == "cos"), r, tail)


def is_large(x: Value) -> Value:
    magnitude = abs(x)
    return (magnitude >= _BOUND[x.emitter.bits]) & (magnitude < float("inf"))


def _declare(module: Any, name: str, result: Any, *parameters: Any) -> Any:
    function = ir.Function(module, ir.FunctionType(result, parameters), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "readnone", "willreturn"):
        _attribute(function, attribute)
    return function


def _attribute(function: Any, text: str) -> None:
    set[str].add(function.attributes, text)  # llvmlite's own method refuses those that it does not list


def _words(module: Any) -> Any:
    """Return the places of 2/pi as a table of the module, led by a word of zeros."""
    words = (0, *TWO_OVER_PI)
    table = ir.GlobalVariable(module, ir.ArrayType(_I64, len(words)), _TABLE)
    table.initializer = ir.Constant(table.type.pointee, list(words))
    table.global_constant = True
    table.linkage = "internal"
    return table


def _turns(x: Value) -> Value:
    """Return the double abs(x) in quarters of a turn modulo 4, as an integer of 128 bits with 126 binary places."""
    module, builder = x.emitter.builder.module, x.emitter.builder
    table = module.globals.get(_TABLE) or _words(module)
    bits = x.bits()
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    # abs(x) is mantissa * 2**exponent. Of 2/pi the places from exponent - 2 on matter: those before give whole turns.
    start = (bits.unsigned_shift(52) & 2047) - (1075 - 62)
    index, offset = start.unsigned_shift(6), start & 63
    addresses = [builder.gep(table, [ir.Constant(_I32, 0), (index + k).raw], inbounds=True) for k in range(4)]
    words = [Value(x.emitter, builder.load(address)) for address in addresses]
    # Three words of places, shifted to begin at the first that matters, times the mantissa.
    first, second, third = (x.emitter.call("fshl", words[k], words[k + 1], offset) for k in range(3))
    wide = mantissa.resized(128)
    carry = (wide * third.resized(128)).unsigned_shift(64)
    return ((mantissa * first).resized(128) << 64) + wide * second.resized(128) + carry


def _places(number: Value, start: int, count: int) -> Value:
    """Return `count` binary places, after the first `start`, of a fraction of 128 bits."""
    part = number.unsigned_shift(128 - start - count) & ((1 << count) - 1)
    return part.resized(64).to_real() * 2.0 ** -(start + count)


def reduced_large(x: Value) -> tuple[Value, Value, Value]:
    """Return the same as `reduced` for doubles beyond the bound: the reduction of Payne and Hanek, in integers."""
    turns = _turns(x)
    quadrant = (turns + (1 << 125)).unsigned_shift(126).resized(64)  # the nearest
    fraction = turns << 2  # of a quarter, signed, from there
    magnitude = (fraction < 0).select(-fraction, fraction)
    is_zero_undefined = x.emitter.constant(0, ir.IntType(1))
    zeros = x.emitter.call("ctlz", magnitude, is_zero_undefined)
    magnitude = magnitude << zeros
    scale = ((1023 - zeros.resized(64)) << 52).real()
    high, low = _places(magnitude, 0, 53) * scale, _places(magnitude, 53, 53) * scale
    first, second, _ = FORMATS[64].polynomials.half_pi
    r, error = high.product(first)
    tail = low.fma(first, high.fma(second, error))
    sign = (fraction.unsigned_shift(64).resized(64) ^ x.bits()) & -(1 << 63)
    quadrant = (x.bits() < 0).select(-quadrant, quadrant)
    return quadrant, (r.bits() ^ sign).real(), (tail.bits() ^ sign).real()


def _large(emitter: Emitter, function_name: str) -> Any:
    """Return the function of one double beyond the bound, made at the first use."""
    module = emitter.builder.module
    name = f"tensormagic.large.{function_name}"
    if name in module.globals:
        return module.globals[name]
    function = _declare(module, name, _DOUBLE, _DOUBLE)
    builder = ir.IRBuilder(function.append_basic_block())
    quadrant, r, tail = reduced_large(Value(replace(emitter, builder=builder, bits=64, lanes=0), function.args[0]))
    builder.ret(of_quadrant(function_name, quadrant, r, tail).raw)
    return function


def _any(builder: Any, mask: Any, lanes: int) -> Any:
    if not lanes:
        return mask
    kind = ir.IntType(lanes)
    return builder.icmp_unsigned("!=", builder.bitcast(mask, kind), ir.Constant(kind, 0))


def _corrected(x: Value, result: Value, large: Any) -> Any:
    """Return the result where no lane is large, else the result with those lanes replaced, one by one."""
    builder = x.emitter.builder
    mask = is_large(x).raw
    start, slow, done = builder.block, builder.append_basic_block("slow"), builder.append_basic_block("done")
    builder.cbranch(_any(builder, mask, x.emitter.lanes), slow, done)
    builder.position_at_end(slow)
    lanes = x.emitter.lanes
    replaced = _lane_loop(builder, x.raw, result.raw, mask, large) if lanes else _exact_call(builder, x.raw, large)
    last = builder.block
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


def _lane_loop(builder: Any, x: Any, result: Any, mask: Any, large: Any) -> Any:
    """Return a loop over the lanes that replaces those of the mask; the builder is left behind it."""
    before = builder.block
    loop, change, after, finish = (builder.append_basic_block(n) for n in ("lane", "change", "next", "finish"))
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
    return following


def _fill(function: Any, emitter: Emitter, lanes: int, name: str) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    x = Value(replace(emitter, builder=builder, lanes=lanes), function.args[0])
    quadrant, r, tail = reduced(x)
    builder.ret(_corrected(x, of_quadrant(name, quadrant, r, tail), _large(emitter, name)))


def _keep(module: Any, functions: list[Any]) -> None:
    """Keep functions that nothing calls yet, until the loop vectoriser has seen the calls it may widen."""
    name = "llvm.compiler.used"
    old = module.globals.get(name)
    kept = [f.bitcast(_BYTE) for f in functions]
    if old is not None:
        kept = [*old.initializer.constant, *kept]
        del module.globals[name]
        module.scope._useset.discard(name)  # noqa: SLF001 - llvmlite has no way to take a name back
    used = ir.GlobalVariable(module, ir.ArrayType(_BYTE, len(kept)), name)
    used.linkage, used.section = "appending", "llvm.metadata"
    used.initializer = ir.Constant(used.type.pointee, kept)


def _function(emitter: Emitter, function_name: str) -> Any:
    """Return the scalar function of the module with its vector variants, made at the first use."""
    module, scalar = emitter.builder.module, emitter.real
    name = f"tensormagic.{function_name}.f{emitter.bits}"
    if name in module.globals:
        return module.globals[name]
    function = _declare(module, name, scalar, scalar)
    full = emitter.register // emitter.bits
    widths = (full, full // 2) if full > 2 else (full,)  # half: loops that hold wider types too, and their remainders
    variants: list[Any] = []
    for lanes in widths:
        kind = ir.VectorType(scalar, lanes)
        variants.append(_declare(module, f"{name}.v{lanes}", kind, kind))
        _fill(variants[-1], emitter, lanes, function_name)
    mappings = ",".join(f"_ZGV_LLVM_N{lanes}v_{name}({name}.v{lanes})" for lanes in widths)
    _attribute(function, f'"vector-function-abi-variant"="{mappings}"')
    _fill(function, emitter, 0, function_name)
    _keep(module, variants)
    return function


def _call(x: Value, name: str) -> Value:
    return Value(x.emitter, x.emitter.builder.call(_function(x.emitter, name), [x.raw]))


def sin(x: Value) -> Value:
    """Return the sine."""
    return _call(x, "sin")


def cos(x: Value) -> Value:
    """Return the cosine."""
    return _call(x, "cos")


def tan(x: Value) -> Value:
    """Return the tangent."""
    return _call(x, "tan")
