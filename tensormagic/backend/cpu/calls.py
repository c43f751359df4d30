"""What kernels call, as instructions: typed arrays, scratch memory, the stop flag, rounding, extrema, BLAS.

Each buffer has a number of its own, and LLVM is told that no two overlap: loops vectorise without run-time checks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tensormagic.backend.cpu.formulas import FORMULAS, Wanted, named, operands
from tensormagic.backend.cpu.kinds import (
    FLOATS,
    KINDS,
    MOST_BUFFERS,
    Buffer,
    Kind,
    UnknownTextError,
    Value,
    Writer,
    in_memory,
    is_integer,
    is_signed,
    llvm,
    real,
)
from tensormagic.backend.cpu.rows import FUNCTIONS

LOOPS = {"few": 1000, "woven": 1003}
"""Metadata of loops by what their range is called.

``few``: of few iterations; to unroll them or to make vectors of them would only take the compiler's time. ``woven``: each iteration
is a long chain of operations that wait for each other; several vectors at a time keep the processor busy.
"""
WOVEN = 4  # vectors at a time
ARRAY_DATA = 16  # where an ndarray object holds the address of its data: behind reference count and type


@dataclass
class Module:
    """What the functions of a module share: declarations, called functions, and the buffers that they tell apart."""

    has_fma: bool
    declared: dict[str, str] = field(default_factory=dict)
    formulas: set[Wanted] = field(default_factory=set)
    buffers: set[int] = field(default_factory=set)
    helpers: dict[str, str] = field(default_factory=dict)


class Place(Protocol):
    """The context of a call: the instructions so far, the module, and the function that gives the values of operands."""

    code: Writer
    module: Module

    def value(self, expression: ast.expr) -> Value:
        """Return the value of an expression."""
        ...


Operands = Sequence[ast.expr]


def _literal(expression: ast.expr) -> Any:
    if not isinstance(expression, ast.Constant):
        raise UnknownTextError(f"{ast.unparse(expression)} where a constant is needed")
    return expression.value


def scopes(module: Module, number: int) -> str:
    """Return the metadata which says that an access is to buffer ``number``, and to no other one."""
    module.buffers.add(number)
    return f", !alias.scope !{3 * number + 2}, !noalias !{3 * number + 3}"


def metadata(module: Module) -> list[str]:
    """Return the scopes of buffers, and what is said of some loops."""
    few, woven = LOOPS["few"], LOOPS["woven"]
    lines = ['!0 = !{!"tensormagic kernel"}'] if module.buffers else []
    lines += [
        f"!{few} = distinct !{{!{few}, !{few + 1}, !{few + 2}}}",
        f'!{few + 1} = !{{!"llvm.loop.unroll.disable"}}',
        f'!{few + 2} = !{{!"llvm.loop.vectorize.enable", i1 false}}',
        f"!{woven} = distinct !{{!{woven}, !{woven + 1}}}",
        f'!{woven + 1} = !{{!"llvm.loop.interleave.count", i32 {WOVEN}}}',
    ]
    for k in sorted(module.buffers):
        apart = ", ".join(f"!{3 * j + 1}" for j in sorted(module.buffers) if j != k)
        lines += [
            f'!{3 * k + 1} = !{{!"buffer {k}", !0}}',
            f"!{3 * k + 2} = !{{!{3 * k + 1}}}",
            f"!{3 * k + 3} = !{{{apart}}}",
        ]
    return lines


# arrays and the table ---------------------------------------------------------------------------------------------------


def element(code: Writer, buffer: Value, index: Value) -> Value:
    """Return the address of an element."""
    if not isinstance(buffer.kind, Buffer):
        raise UnknownTextError(f"an element of {buffer.kind}")
    kind = in_memory(buffer.kind.element)
    at = code.cast(index, "int64").text
    return code.new(buffer.kind, f"getelementptr inbounds {kind}, ptr {buffer.text}, i64 {at}")


def entry(code: Writer, place: int) -> Value:
    """Return an entry of the table."""
    return _entry(code, "int64", place)


def _entry(code: Writer, kind: Kind, place: int) -> Value:
    address = code.new("int64", f"getelementptr i64, ptr %table, i64 {place}")
    return code.new(kind, f"load {llvm(kind)}, ptr {address.text}")


def _data(code: Writer, place: int, kind: Buffer) -> Value:
    """Return the data of the ndarray whose object's address is in the table at ``place``."""
    address = code.new("int64", f"add i64 {entry(code, place).text}, {ARRAY_DATA}")
    pointer = code.new(kind, f"inttoptr i64 {address.text} to ptr")
    return code.new(kind, f"load ptr, ptr {pointer.text}")


def _array(at: Place, given: Operands) -> Value:
    _, place, dtype, number = given
    return _data(at.code, _literal(place), Buffer(_literal(dtype), _literal(number)))


_MEMORY = Buffer("int64", 0)


def _growing(at: Place, given: Operands) -> Value:
    _, place, dtype, number = given
    kind = Buffer(_literal(dtype), _literal(number))
    return at.code.new(kind, f"load ptr, ptr {_data(at.code, _literal(place), _MEMORY).text}")


def _size_of(code: Writer, memory: Value) -> Value:
    return code.new(_MEMORY, f"getelementptr i64, ptr {memory.text}, i64 1")


def _room(at: Place, given: Operands) -> Value:
    memory = _data(at.code, _literal(given[1]), _MEMORY)
    return at.code.new("int64", f"load i64, ptr {_size_of(at.code, memory).text}")


def _grow(at: Place, given: Operands) -> Value:
    """More memory for an array that grows, as a pointer and a size; whether there was any."""
    code = at.code
    wanted = code.cast(at.value(given[2]), "int64")
    memory = _data(code, _literal(given[1]), _MEMORY)
    more = code.new("int64", f"add i64 {wanted.text}, 32")
    size = code.new("int64", f"mul i64 {more.text}, 2")
    old = code.new(_MEMORY, f"load ptr, ptr {memory.text}")
    code.declared["realloc"] = "declare ptr @realloc(ptr, i64)"
    moved = code.new(_MEMORY, f"call ptr @realloc(ptr {old.text}, i64 {size.text})")
    done = code.new("bool", f"icmp ne ptr {moved.text}, null")
    kept, after = code.fresh("kept"), code.fresh("after")
    code.branch(done, kept, after)
    code.begin(kept)
    code.do(f"store ptr {moved.text}, ptr {memory.text}")
    code.do(f"store i64 {size.text}, ptr {_size_of(code, memory).text}")
    code.begin(after)
    return done


def _scratch(at: Place, given: Operands) -> Value:
    extent, dtype, number = map(_literal, given)
    room = at.code.room(in_memory(dtype), f", i64 {extent}, align 64")
    return Value(Buffer(dtype, number), room)


def _own(at: Place, given: Operands) -> Value:
    """Return a thread's own part of memory for tiles: its number, and how many elements each has."""
    buffer, count = (at.value(g) for g in given)
    worker = at.code.new("int64", "load i64, ptr %local")
    offset = at.code.new("int64", f"mul i64 {worker.text}, {at.code.cast(count, 'int64').text}")
    return element(at.code, buffer, offset)


def _part_of(at: Place, given: Operands) -> Value:
    """Return where a share adds up elements: the first share in the array itself, others one after another in memory of their own."""
    code = at.code
    array, parts, number, count = (at.value(g) for g in given)
    before = code.new("int64", f"sub i64 {number.text}, 1")
    offset = code.new("int64", f"mul i64 {before.text}, {code.cast(count, 'int64').text}")
    own = element(code, parts, offset)
    first = code.new("bool", f"icmp eq i64 {number.text}, 0")
    return code.new(array.kind, f"select i1 {first.text}, ptr {array.text}, ptr {own.text}")


def _rule(name: str) -> Callable[[Place, Operands], Value]:
    """Return a function of integers that the compiled module has once."""

    def emit(at: Place, given: Operands) -> Value:
        at.module.helpers[name] = FUNCTIONS[name]
        arguments = ", ".join(f"i64 {at.code.cast(at.value(g), 'int64').text}" for g in given)
        return at.code.new("int64", f"call i64 @{name}({arguments})")

    return emit


def _real(at: Place, given: Operands) -> Value:
    return _entry(at.code, "float64", _literal(given[1]))


def _stopped(at: Place, _given: Operands) -> Value:
    """Return an atomic load, which stays in its loop."""
    code = at.code
    pointer = code.new(_MEMORY, f"inttoptr i64 {entry(code, 0).text} to ptr")
    flag = code.new("int8", f"load atomic i8, ptr {pointer.text} monotonic, align 1")
    return code.new("bool", f"icmp ne i8 {flag.text}, 0")


def _asked(at: Place, _given: Operands) -> Value:
    """Return the flag and the byte behind it, which asks how far it is."""
    code = at.code
    pointer = code.new(_MEMORY, f"inttoptr i64 {entry(code, 0).text} to ptr")
    both = code.new("int16", f"load atomic i16, ptr {pointer.text} monotonic, align 2")
    return code.new("bool", f"icmp ne i16 {both.text}, 0")


def _told(at: Place, given: Operands) -> Value:
    """Return how far the loop is goes behind the flag and what asks, which is cleared; whether the flag is raised."""
    code = at.code
    first = code.new(_MEMORY, f"inttoptr i64 {entry(code, 0).text} to ptr")
    for k in (1, 2):
        place = code.new(_MEMORY, f"getelementptr i64, ptr {first.text}, i64 {k}")
        value = code.cast(at.value(given[k]), "int64")
        code.do(f"store i64 {value.text}, ptr {place.text}{scopes(at.module, MOST_BUFFERS)}")
    ask = code.new(_MEMORY, f"getelementptr i8, ptr {first.text}, i64 1")
    code.do(f"store atomic i8 0, ptr {ask.text} release, align 1")
    return _stopped(at, given)


def _gemm(at: Place, given: Operands) -> Value:
    """BLAS at an address: by columns, which is its way, everything is transposed, and so the operands change places."""
    code = at.code
    function, *buffers = (at.value(g) for g in given[:7])
    starts = [_offset(code, buffers[k], buffers[k + 1]) for k in (0, 2, 4)]
    m, n, k, *apart = (code.new("int32", f"trunc i64 {_whole(at, g)} to i32") for g in given[7:13])
    turned = [_letter(code, _whole(at, g)) for g in given[13:]]
    kind = starts[0].kind.element if isinstance(starts[0].kind, Buffer) else ""
    one, zero = (_stored(code, real(number, kind)) for number in (1.0, 0.0))
    sizes = [_stored(code, v) for v in (n, m, k)]
    ends = [_stored(code, v) for v in (apart[1], apart[0], apart[2])]
    letters = [_stored(code, v) for v in (turned[1], turned[0])]
    matrices = [starts[k].text for k in (1, 0, 2)]
    places = [
        *letters, *sizes, one, matrices[0], ends[0], matrices[1], ends[1], zero, matrices[2], ends[2],
    ]  # fmt: skip
    address = code.new(_MEMORY, f"inttoptr i64 {function.text} to ptr")
    code.do(f"call void {address.text}({', '.join(f'ptr {place}' for place in places)})")
    return function


def _whole(at: Place, expression: ast.expr) -> str:
    return at.code.cast(at.value(expression), "int64").text


def _offset(code: Writer, buffer: Value, index: Value) -> Value:
    if not isinstance(buffer.kind, Buffer):
        raise UnknownTextError("a matrix that is no array")
    kind = in_memory(buffer.kind.element)
    return code.new(buffer.kind, f"getelementptr {kind}, ptr {buffer.text}, i64 {code.cast(index, 'int64').text}")


def _letter(code: Writer, turned: str) -> Value:
    """Return T where a matrix is stored transposed, else N."""
    is_turned = code.new("bool", f"icmp ne i64 {turned}, 0")
    return code.new("int8", f"select i1 {is_turned.text}, i8 {ord('T')}, i8 {ord('N')}")


def _stored(code: Writer, value: Value) -> str:
    place = code.room(llvm(value.kind))
    code.do(f"store {llvm(value.kind)} {value.text}, ptr {place}")
    return place


# numbers ----------------------------------------------------------------------------------------------------------------


def _floats(at: Place, given: Operands, count: int) -> list[Value]:
    """Return operands that are floats of one kind; raise for others."""
    values = [at.value(g) for g in given]
    if len(values) != count or len({v.kind for v in values}) != 1 or values[0].kind not in FLOATS:
        raise UnknownTextError(f"a function of {[v.kind for v in values]}")
    return values


def _rounding(name: str) -> Callable[[Place, Operands], Value]:
    return lambda at, given: at.code.intrinsic(name, *_floats(at, given, 1))


def _pair(name: str, flags: str = "") -> Callable[[Place, Operands], Value]:
    return lambda at, given: at.code.intrinsic(name, *_floats(at, given, 2), flags=flags)


def _add_reassoc(at: Place, given: Operands) -> Value:
    a, b = _floats(at, given, 2)
    return at.code.new(a.kind, f"fadd reassoc {llvm(a.kind)} {a.text}, {b.text}")


def _multiply_add(at: Place, given: Operands) -> Value:
    a, b, c = _floats(at, given, 3)
    kind = llvm(a.kind)
    product = at.code.new(a.kind, f"fmul contract {kind} {a.text}, {b.text}")
    return at.code.new(a.kind, f"fadd contract {kind} {product.text}, {c.text}")


def _fused(at: Place, given: Operands) -> Value:
    """Return ``a * b + c``, rounded once where the machine can do that."""
    a, b, c = _floats(at, given, 3)
    if at.module.has_fma:
        return at.code.intrinsic("fma", a, b, c)
    product = at.code.new(a.kind, f"fmul {llvm(a.kind)} {a.text}, {b.text}")
    return at.code.new(a.kind, f"fadd {llvm(a.kind)} {product.text}, {c.text}")


def _absolute(at: Place, given: Operands) -> Value:
    (value,) = (at.value(g) for g in given)
    if value.kind in FLOATS:
        return at.code.intrinsic("fabs", value)
    if not is_integer(value.kind):
        raise UnknownTextError(f"the absolute value of {value.kind}")
    if not is_signed(value.kind):
        return value
    kind = llvm(value.kind)
    below = at.code.new("bool", f"icmp slt {kind} {value.text}, 0")
    negated = at.code.new(value.kind, f"sub {kind} 0, {value.text}")
    return at.code.new(value.kind, f"select i1 {below.text}, {kind} {negated.text}, {kind} {value.text}")


def _bits(at: Place, given: Operands) -> Value:
    (value,) = (at.code.cast(at.value(g), "float64") for g in given)
    return at.code.new("int64", f"bitcast double {value.text} to i64")


def _complex(at: Place, given: Operands) -> Value:
    re, im = (at.code.cast(at.value(g), "float64") for g in given)
    return at.code.complex(re, im)


def _truth(at: Place, given: Operands) -> Value:
    (value,) = (at.value(g) for g in given)
    return at.code.cast(value, "bool")


def _float(at: Place, given: Operands) -> Value:
    """Return an integer as a float64; a float as it is."""
    (value,) = (at.value(g) for g in given)
    if value.kind in FLOATS:
        return value
    if not is_integer(value.kind):
        raise UnknownTextError(f"float of {value.kind}")
    return at.code.cast(value, "float64")


# extrema in three parts: see cpu_extrema ----------------------------------------------------------------------------------


def _extremum_step(name: str) -> Callable[[Place, Operands], Value]:
    return _pair(name, "nnan nsz ")


def _nan_seen(at: Place, given: Operands) -> Value:
    seen, x = (at.value(g) for g in given)
    nan = at.code.new("bool", f"fcmp uno {llvm(x.kind)} {x.text}, {x.text}")
    return at.code.new("bool", f"or i1 {at.code.cast(seen, 'bool').text}, {nan.text}")


def _bits_of(x: Value) -> str:
    return "int64" if x.kind == "float64" else "int32"


def _signs(instruction: str) -> Callable[[Place, Operands], Value]:
    def emit(at: Place, given: Operands) -> Value:
        signs, x = (at.value(g) for g in given)
        kind = _bits_of(x)
        own = at.code.new(kind, f"bitcast {llvm(x.kind)} {x.text} to {KINDS[kind]}")
        return at.code.new(kind, f"{instruction} {KINDS[kind]} {at.code.cast(signs, kind).text}, {own.text}")

    return emit


def _extremum(at: Place, given: Operands) -> Value:
    code = at.code
    number, nan, bits = (at.value(g) for g in given)
    whole, kind = KINDS[_bits_of(number)], llvm(number.kind)
    lowest = -(1 << (63 if number.kind == "float64" else 31))
    sign = code.new(bits.kind, f"and {whole} {bits.text}, {lowest}")
    zero = code.new(number.kind, f"bitcast {whole} {sign.text} to {kind}")
    is_zero = code.new("bool", f"fcmp oeq {kind} {number.text}, 0.0")
    found = code.new(number.kind, f"select i1 {is_zero.text}, {kind} {zero.text}, {kind} {number.text}")
    other = real(float("nan"), str(number.kind))
    return code.new(number.kind, f"select i1 {nan.text}, {kind} {other.text}, {kind} {found.text}")


def _formula(name: str) -> Callable[[Place, Operands], Value]:
    def emit(at: Place, given: Operands) -> Value:
        values = _floats(at, given, operands(name))
        kind = str(values[0].kind)
        wanted = name, 64 if kind == "float64" else 32
        at.module.formulas.add(wanted)
        arguments = ", ".join(f"{KINDS[kind]} {v.text}" for v in values)
        return at.code.new(kind, f'call {KINDS[kind]} @"{named(wanted)}"({arguments})')

    return emit


CALLS: dict[str, Callable[[Place, Operands], Value]] = {
    **{name: _formula(name) for name in FORMULAS},
    **{name: _rounding(name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    "array": _array,
    "growing": _growing,
    "room": _room,
    "grow": _grow,
    "scratch": _scratch,
    "own": _own,
    "part_of": _part_of,
    **{name: _rule(name) for name in FUNCTIONS},
    "real": _real,
    "stopped": _stopped,
    "asked": _asked,
    "told": _told,
    "gemm": _gemm,
    "add_reassoc": _add_reassoc,
    "max_propagate": _pair("maximum"),
    "min_propagate": _pair("minimum"),
    "multiply_add": _multiply_add,
    "fused": _fused,
    "abs": _absolute,
    "bits": _bits,
    "complex": _complex,
    "bool": _truth,
    "float": _float,
    "larger": _extremum_step("maxnum"),
    "smaller": _extremum_step("minnum"),
    "nan_seen": _nan_seen,
    "common_sign": _signs("and"),
    "any_sign": _signs("or"),
    "extremum": _extremum,
}
"""The functions by the names that kernels call them by."""
