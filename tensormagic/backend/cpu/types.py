"""What generated kernels are written in, for Numba: typed buffers, scratch memory, the stop flag, rounding; `cpu_calls` has the same.

Each buffer has a number of its own, and LLVM is told that no two overlap: loops vectorise without run-time checks. It
knows Numba's extension interface and nothing of graphs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.typing import templates
from numba.extending import intrinsic, lower_builtin

from tensormagic.backend.cpu.extrema import EXTREMA
from tensormagic.backend.cpu.kinds import MOST_BUFFERS
from tensormagic.backend.cpu.rows import ADDED_ROWS, MOST_PARTS, MOST_SHARES, ROW_STEP, ROW_TILE, SHARE, TILE_ROOM
from tensormagic.backend.vecmath import complex as vecmath_complex
from tensormagic.backend.vecmath import functions

ARRAY_DATA = 16  # where an ndarray object holds the address of its data: behind reference count and type

_infer_global: Any = templates.infer_global
_DTYPES: dict[str, Any] = {
    name: getattr(types, name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
} | {"bool": types.boolean, "complex128": types.complex128}


class Buffer(types.Type):
    """The elements of one array, which overlaps no other buffer of the kernel.

    Parameters
    ----------
    dtype
        Numba's type of the elements.
    number
        Which buffer of the kernel this is.
    """

    def __init__(self, dtype: Any, number: int) -> None:
        self.dtype = dtype
        self.number = number
        super().__init__(name=f"Buffer({dtype}, {number})")


@register_default(Buffer)
class _BufferModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Buffer) -> None:
        super().__init__(manager, kind, manager.lookup(kind.dtype).get_data_type().as_pointer())


@_infer_global(operator.getitem)
class _GetItem(templates.AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Buffer):
            return templates.signature(args[0].dtype, args[0], types.int64)
        return None


@_infer_global(operator.setitem)
class _SetItem(templates.AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Buffer):
            return templates.signature(types.none, args[0], types.int64, args[0].dtype)
        return None


def _say_apart(builder: Any, instruction: Any, number: int) -> None:
    """Metadata: this access is to buffer ``number``, and to no other one."""
    alias, apart = _scopes(builder.module, number)
    instruction.set_metadata("alias.scope", alias)
    instruction.set_metadata("noalias", apart)


def _scopes(module: Any, number: int) -> tuple[Any, Any]:
    known = module.__dict__.setdefault("buffer_scopes", {})
    if number not in known:
        domain = module.add_metadata(["tensormagic kernel"])
        scopes = [module.add_metadata([f"buffer {k}", domain]) for k in range(MOST_BUFFERS + 1)]
        apart = module.add_metadata([s for k, s in enumerate(scopes) if k != number])
        known[number] = module.add_metadata([scopes[number]]), apart
    return known[number]


@lower_builtin(operator.getitem, Buffer, types.int64)
def _load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    loaded = builder.load(builder.gep(args[0], [args[1]], inbounds=True))
    _say_apart(builder, loaded, sig.args[0].number)
    return context.data_model_manager[sig.return_type].from_data(builder, loaded)


@lower_builtin(operator.setitem, Buffer, types.int64, types.Any)
def _store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    raw = context.data_model_manager[sig.args[2]].as_data(builder, args[2])
    stored = builder.store(raw, builder.gep(args[0], [args[1]], inbounds=True))
    _say_apart(builder, stored, sig.args[0].number)
    return context.get_dummy_value()


def _entry(builder: Any, table: Any, place: int) -> Any:
    return builder.load(builder.gep(table, [ir.Constant(ir.IntType(64), place)]))


@intrinsic(prefer_literal=True)
def array(_typing: Any, table: Any, place: Any, dtype: Any, number: Any) -> Any:
    """The elements of the ndarray whose object's address is in the table at ``place``."""
    kind = Buffer(_DTYPES[dtype.literal_value], number.literal_value)

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        address = builder.add(_entry(builder, args[0], place.literal_value), ir.Constant(ir.IntType(64), ARRAY_DATA))
        pointer = context.get_value_type(kind)
        return builder.load(builder.inttoptr(address, pointer.as_pointer()))

    return kind(table, place, dtype, number), generate


def _memory(builder: Any, table: Any, place: int) -> Any:
    """Return where address and size of memory that grows are: the data of the ndarray whose address is in the table."""
    integer = ir.IntType(64)
    address = builder.add(_entry(builder, table, place), ir.Constant(integer, ARRAY_DATA))
    return builder.load(builder.inttoptr(address, integer.as_pointer().as_pointer()))


def _after(builder: Any, pointer: Any) -> Any:
    return builder.gep(pointer, [ir.Constant(ir.IntType(64), 1)])


@intrinsic(prefer_literal=True)
def growing(_typing: Any, table: Any, place: Any, dtype: Any, number: Any) -> Any:
    """The elements of the array that grows whose memory is in the table at ``place``."""
    kind = Buffer(_DTYPES[dtype.literal_value], number.literal_value)

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        address = builder.load(_memory(builder, args[0], place.literal_value))
        return builder.inttoptr(address, context.get_value_type(kind))

    return kind(table, place, dtype, number), generate


@intrinsic(prefer_literal=True)
def room(_typing: Any, table: Any, place: Any) -> Any:
    """How many bytes an array that grows has."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.load(_after(builder, _memory(builder, args[0], place.literal_value)))

    return types.int64(table, place), generate


@intrinsic(prefer_literal=True)
def grow(_typing: Any, table: Any, place: Any, wanted: Any) -> Any:
    """Make room for ``wanted`` bytes, and as many more, in an array that grows; whether there was memory for that."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        integer, bytes_ = ir.IntType(64), ir.IntType(8).as_pointer()
        memory = _memory(builder, args[0], place.literal_value)
        size = builder.mul(builder.add(args[2], ir.Constant(integer, 32)), ir.Constant(integer, 2))
        realloc = cgutils.get_or_insert_function(builder.module, ir.FunctionType(bytes_, [bytes_, integer]), "realloc")
        moved = builder.call(realloc, [builder.inttoptr(builder.load(memory), bytes_), size])
        done = builder.icmp_unsigned("!=", builder.ptrtoint(moved, integer), ir.Constant(integer, 0))
        with builder.if_then(done):
            builder.store(builder.ptrtoint(moved, integer), memory)
            builder.store(size, _after(builder, memory))
        return done

    return types.boolean(table, place, types.int64), generate


@intrinsic(prefer_literal=True)
def scratch(_typing: Any, extent: Any, dtype: Any, number: Any) -> Any:
    """Room for ``extent`` elements on the stack."""
    kind = Buffer(_DTYPES[dtype.literal_value], number.literal_value)

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        element = context.data_model_manager[kind.dtype].get_data_type()
        room = cgutils.alloca_once(builder, element, size=ir.Constant(ir.IntType(64), extent.literal_value))
        room.align = 64
        return room

    return kind(extent, dtype, number), generate


@intrinsic
def own(_typing: Any, buffer: Any, count: Any) -> Any:
    """The memory for tiles of the only thread."""

    def generate(_context: Any, _builder: Any, _sig: Any, args: Any) -> Any:
        return args[0]

    return buffer(buffer, count), generate


@intrinsic
def part_of(_typing: Any, array: Any, parts: Any, number: Any, count: Any) -> Any:
    """Where a share adds up elements: the first in the array itself, others in memory of their own behind one another."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        one, zero = ir.Constant(ir.IntType(64), 1), ir.Constant(ir.IntType(64), 0)
        own = builder.gep(args[1], [builder.mul(builder.sub(args[2], one), args[3])])
        return builder.select(builder.icmp_signed("==", args[2], zero), args[0], own)

    return array(array, parts, number, count), generate


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed(">", a, b), a, b)


@intrinsic
def tile_rows(_typing: Any, width: Any) -> Any:
    """How many rows a tile has: see `cpu_rows`."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        number = ir.IntType(64)
        room, most, step = (ir.Constant(number, n) for n in (TILE_ROOM, ROW_TILE, ROW_STEP))
        several = builder.mul(args[0], step)
        one = ir.Constant(number, 1)  # instead of a divisor that is 0
        whole = builder.mul(builder.udiv(room, _larger(builder, several, one)), step)
        few = builder.udiv(room, _larger(builder, args[0], one))
        wide = builder.select(builder.icmp_signed("<", args[0], room), few, one)
        found = builder.select(builder.icmp_signed("<=", several, room), whole, wide)
        return builder.select(builder.icmp_signed("<=", builder.mul(args[0], most), room), most, found)

    return types.int64(types.int64), generate


@intrinsic
def share_rows(_typing: Any, rows: Any, step: Any, width: Any, kept: Any) -> Any:
    """How many rows a share has: see `cpu_rows`."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        number = ir.IntType(64)
        one, most, share, added, parts = (
            ir.Constant(number, n) for n in (1, MOST_SHARES, SHARE, ADDED_ROWS, MOST_PARTS)
        )
        rows, step, width, kept = args
        tiles = builder.sdiv(builder.sdiv(builder.sub(builder.add(rows, step), one), step), most)
        least = builder.sdiv(share, builder.mul(step, builder.add(width, one)))
        tiles = _larger(builder, builder.add(tiles, one), least)
        more = _larger(builder, tiles, builder.add(builder.sdiv(added, step), one))
        room = builder.sdiv(builder.sdiv(builder.mul(rows, kept), parts), step)
        more = _larger(builder, more, builder.add(room, one))
        nothing = builder.icmp_signed("==", kept, ir.Constant(number, 0))
        return builder.mul(step, builder.select(nothing, tiles, more))

    return types.int64(*[types.int64] * 4), generate


@intrinsic(prefer_literal=True)
def real(_typing: Any, table: Any, place: Any) -> Any:
    """The table's entry at ``place`` as the float64 whose bits it is."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.bitcast(_entry(builder, args[0], place.literal_value), ir.DoubleType())

    return types.float64(table, place), generate


@intrinsic
def bits(_typing: Any, number: Any) -> Any:
    """The bits of a number as a float64."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide = context.cast(builder, args[0], sig.args[0], types.float64)
        return builder.bitcast(wide, ir.IntType(64))

    return types.int64(number), generate


@intrinsic
def stopped(_typing: Any, table: Any) -> Any:
    """Whether the flag at the table's first address is raised: an atomic load, which stays in its loop."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(_entry(builder, args[0], 0), ir.IntType(8).as_pointer())
        flag = builder.load_atomic(pointer, "monotonic", 1)
        return builder.icmp_unsigned("!=", flag, ir.Constant(ir.IntType(8), 0))

    return types.boolean(table), generate


@intrinsic
def asked(_typing: Any, table: Any) -> Any:
    """Whether the flag is raised, or the byte behind it, which asks how far it is."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(_entry(builder, args[0], 0), ir.IntType(16).as_pointer())
        both = builder.load_atomic(pointer, "monotonic", 2)
        return builder.icmp_unsigned("!=", both, ir.Constant(ir.IntType(16), 0))

    return types.boolean(table), generate


@intrinsic
def told(_typing: Any, table: Any, done: Any, count: Any) -> Any:
    """Write how far the loop is behind the flag and what asks, which is cleared; whether the flag is raised."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first = _entry(builder, args[0], 0)
        for k, kind in ((1, done), (2, count)):
            place = builder.add(first, ir.Constant(ir.IntType(64), 8 * k))
            value = context.cast(builder, args[k], kind, types.int64)
            stored = builder.store(value, builder.inttoptr(place, ir.IntType(64).as_pointer()))
            _say_apart(builder, stored, MOST_BUFFERS)
        byte = ir.IntType(8)
        ask = builder.inttoptr(builder.add(first, ir.Constant(ir.IntType(64), 1)), byte.as_pointer())
        builder.store_atomic(ir.Constant(byte, 0), ask, "release", 1)
        flag = builder.load_atomic(builder.inttoptr(first, byte.as_pointer()), "monotonic", 1)
        return builder.icmp_unsigned("!=", flag, ir.Constant(byte, 0))

    return types.boolean(table, done, count), generate


@intrinsic
def multiply_add(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where that is one instruction."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        factor = builder.fmul(args[0], args[1], flags=["contract"])
        return builder.fadd(factor, args[2], flags=["contract"])

    return c(a, b, c), generate


@intrinsic
def gemm(
    _typing: Any, address: Any, left: Any, left_at: Any, right: Any, right_at: Any, out: Any, out_at: Any,
    rows: Any, columns: Any, terms: Any, left_apart: Any, right_apart: Any, out_apart: Any, left_turned: Any,
    right_turned: Any,
) -> Any:  # fmt: skip
    """Call BLAS at an address: ``out = left @ right``, each a buffer and an offset.

    ``apart``: how far apart rows are. ``turned``: 1 where a matrix lies there transposed, else 0.
    """
    operands = (
        address, left, left_at, right, right_at, out, out_at, rows, columns, terms, left_apart, right_apart, out_apart,
        left_turned, right_turned,
    )  # fmt: skip

    def generate(context: Any, builder: Any, _sig: Any, given: Any) -> Any:
        function, *buffers = given[:7]
        starts = [builder.gep(buffers[k], [buffers[k + 1]]) for k in (0, 2, 4)]
        m, n, k, *apart = (builder.trunc(v, ir.IntType(32)) for v in given[7:13])
        zero, byte = ir.Constant(ir.IntType(64), 0), ir.IntType(8)
        turned = [
            builder.select(builder.icmp_signed("!=", v, zero), byte(ord("T")), byte(ord("N"))) for v in given[13:]
        ]
        real = starts[0].type.pointee

        def place(value: Any) -> Any:
            room = cgutils.alloca_once(builder, value.type)
            builder.store(value, room)
            return room

        # by columns, which is BLAS's way, everything is transposed, and so the operands change places
        arguments = [
            *(place(v) for v in (turned[1], turned[0], n, m, k, real(1.0))),
            *(starts[1], place(apart[1]), starts[0], place(apart[0]), place(real(0.0)), starts[2], place(apart[2])),
        ]
        kind = ir.FunctionType(ir.VoidType(), [a.type for a in arguments])
        builder.call(builder.inttoptr(function, kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.none(*operands), generate


def _rounding(name: str, llvm_name: str) -> Callable[..., Any]:
    def typed(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = args[0].type
            full = f"llvm.{llvm_name}.{kind.intrinsic_name}"
            function = builder.module.globals.get(full) or ir.Function(
                builder.module, ir.FunctionType(kind, [kind]), full
            )
            return builder.call(function, args)

        return x(x), generate

    typed.__name__ = name
    typed.__doc__ = f"llvm.{llvm_name} of a float."
    return intrinsic(typed)


NAMES: dict[str, Any] = {
    **{name: _rounding(name, name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    **functions.FUNCTIONS,
    **functions.PARTIAL,
    **EXTREMA,
    **functions.FOLDS,
    **vecmath_complex.FUNCTIONS,
    "array": array,
    "growing": growing,
    "room": room,
    "grow": grow,
    "scratch": scratch,
    "own": own,
    "part_of": part_of,
    "tile_rows": tile_rows,
    "share_rows": share_rows,
    "bits": bits,
    "real": real,
    "stopped": stopped,
    "asked": asked,
    "told": told,
    "multiply_add": multiply_add,
    "gemm": gemm,
}
