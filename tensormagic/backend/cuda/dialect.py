"""What generated kernels are written in, for numba-cuda: threads, vectors of 16 bytes, shared memory, shuffles, functions.

The functions of numbers are those of `vecmath`: the same polynomials as on the processor, so that both agree.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from inspect import signature
from typing import Any

import llvmlite.ir

from tensormagic.backend import vecmath_formulas as formulas
from tensormagic.backend import vecmath_hyperbolic as hyperbolic
from tensormagic.backend import vecmath_inverse as inverse
from tensormagic.backend import vecmath_roots as roots
from tensormagic.backend import vecmath_trig as trig
from tensormagic.backend import vecmath_unit as unit
from tensormagic.backend.cuda.front import part, text_of
from tensormagic.backend.vecmath_ir import Emitter, Value

ir: Any = llvmlite.ir
_types = part("numba.cuda").types
_compiler = part("numba.cuda.compiler")
_intrinsic = part("numba.cuda.extending").intrinsic
_register_model = part("numba.cuda.extending").register_model
_PrimitiveModel = part("numba.cuda.extending").core_models.PrimitiveModel
_AbstractTemplate = part("numba.cuda.typing.templates").AbstractTemplate
_signature = part("numba.cuda.typing.templates").signature
_declare = part("numba.cuda.cudadecl").registry.register_global
_implement = part("numba.cuda.cudaimpl").registry.lower
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SHARED = 3  # the number of the address space

# compiling ------------------------------------------------------------------------------------------------------------


def lowered(kernel: Any, parameters: Any, written: Any, cc: tuple[int, int]) -> tuple[str, list[str]]:
    """The name of a kernel, and LLVM's text of it."""
    kinds = [_kind(p) for p in parameters]
    compiled = text_of(kernel, _types.void, kinds, cc, inline=False)
    library = compiled.library
    function = library.get_function(compiled.fndesc.llvm_func_name)
    _compiler.kernel_fixup(function, False)
    for argument, kind, stores in zip(function.args, kinds, written, strict=True):
        if isinstance(kind, Elements) and not stores:
            argument.add_attribute("noalias")
    return function.name, library.llvm_strs


_NAMED = {"bool": "boolean", "float16": "uint16"}  # half floats are their bits until they are widened


def _kind(name: str) -> Any:
    """Numba's type of a parameter."""
    kind = getattr(_types, _NAMED.get(name.lstrip("*"), name.lstrip("*")))
    return Elements(kind) if name.startswith("*") else kind


class Elements(_types.Type):
    """The elements of one array, by their address.

    Parameters
    ----------
    dtype
        Numba's type of the elements.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Elements({dtype})")


@_register_model(Elements)
class _ElementsModel(_PrimitiveModel):
    def __init__(self, manager: Any, kind: Elements) -> None:
        super().__init__(manager, kind, manager.lookup(kind.dtype).get_data_type().as_pointer())


@_declare(operator.getitem)
class _GetItem(_AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        """The dtype of the elements."""
        del kws
        return _signature(args[0].dtype, args[0], _types.int64) if isinstance(args[0], Elements) else None


@_declare(operator.setitem)
class _SetItem(_AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        """Values are cast to the dtype of the elements."""
        del kws
        return _signature(_types.none, args[0], _types.int64, args[0].dtype) if isinstance(args[0], Elements) else None


@_implement(operator.getitem, Elements, _types.int64)
def _load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    loaded = builder.load(builder.gep(args[0], [args[1]]))
    return context.data_model_manager[sig.return_type].from_data(builder, loaded)


@_implement(operator.setitem, Elements, _types.int64, _types.Any)
def _keep(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    raw = context.data_model_manager[sig.args[2]].as_data(builder, args[2])
    builder.store(raw, builder.gep(args[0], [args[1]]))
    return context.get_dummy_value()


# threads --------------------------------------------------------------------------------------------------------------


def _register(name: str, doc: str) -> Any:
    """A special register as an int64."""

    def typed(_typing: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, _args: Any) -> Any:
            function = _declared(builder, f"llvm.nvvm.read.ptx.sreg.{name}", _I32, [])
            return builder.zext(builder.call(function, []), _I64)

        return _types.int64(), generate

    typed.__name__, typed.__doc__ = name, doc
    return _intrinsic(typed)


def _declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    module = builder.module
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


@_intrinsic
def barrier(_typing: Any) -> Any:
    """Wait for all threads of the block."""

    def generate(context: Any, builder: Any, _sig: Any, _args: Any) -> Any:
        builder.call(_declared(builder, "llvm.nvvm.barrier0", ir.VoidType(), []), [])
        return context.get_dummy_value()

    return _types.none(), generate


@_intrinsic
def shuffle(_typing: Any, value: Any, distance: Any, mask: Any) -> Any:
    """The value of the lane whose number differs in these bits; all lanes of the mask have to be there."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        raw, bits, lanes = args[0], builder.trunc(args[1], _I32), builder.trunc(args[2], _I32)
        kind = raw.type
        exchange = _declared(builder, "llvm.nvvm.shfl.sync.bfly.i32", _I32, [_I32] * 4)

        def one(word: Any) -> Any:
            return builder.call(exchange, [lanes, word, bits, ir.Constant(_I32, 31)])

        if isinstance(kind, ir.FloatType):
            return builder.bitcast(one(builder.bitcast(raw, _I32)), kind)
        whole = builder.bitcast(raw, _I64) if isinstance(kind, ir.DoubleType) else raw
        if whole.type.width <= 32:
            return builder.trunc(one(builder.zext(whole, _I32)), kind) if whole.type.width < 32 else one(whole)
        low = one(builder.trunc(whole, _I32))
        high = one(builder.trunc(builder.lshr(whole, ir.Constant(_I64, 32)), _I32))
        joined = builder.or_(builder.zext(low, _I64), builder.shl(builder.zext(high, _I64), ir.Constant(_I64, 32)))
        return builder.bitcast(joined, kind) if isinstance(kind, ir.DoubleType) else joined

    return value(value, _types.int64, _types.int64), generate


# memory ---------------------------------------------------------------------------------------------------------------


@_intrinsic
def vector(_typing: Any, pointer: Any, place: Any, count: Any) -> Any:
    """So many neighbouring elements, by one load."""
    if not isinstance(count, _types.Literal):
        return None
    lanes, kind = count.literal_value, pointer.dtype

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        element = args[0].type.pointee
        whole = ir.VectorType(element, lanes)
        at = builder.bitcast(builder.gep(args[0], [args[1]]), whole.as_pointer())
        loaded = builder.load(at, align=_size(element) * lanes)
        model = context.data_model_manager[kind]
        parts = [model.from_data(builder, builder.extract_element(loaded, ir.Constant(_I32, k))) for k in range(lanes)]
        return context.make_tuple(builder, sig.return_type, parts)

    return _types.UniTuple(kind, lanes)(pointer, place, count), generate


@_intrinsic
def store(_typing: Any, pointer: Any, place: Any, values: Any) -> Any:
    """Store neighbouring elements at once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        element, lanes = args[0].type.pointee, sig.args[2].count
        whole = ir.VectorType(element, lanes)
        model = context.data_model_manager[pointer.dtype]
        packed = ir.Constant(whole, ir.Undefined)
        for k in range(lanes):
            value = context.cast(builder, builder.extract_value(args[2], k), sig.args[2].dtype, pointer.dtype)
            packed = builder.insert_element(packed, model.as_data(builder, value), ir.Constant(_I32, k))
        at = builder.bitcast(builder.gep(args[0], [args[1]]), whole.as_pointer())
        builder.store(packed, at, align=_size(element) * lanes)
        return context.get_dummy_value()

    return _types.none(pointer, place, values), generate


def _size(element: Any) -> int:
    if isinstance(element, ir.IntType):
        return max(1, element.width // 8)
    return 8 if isinstance(element, ir.DoubleType) else 4


@_intrinsic
def shared(_typing: Any, dtype: Any, count: Any) -> Any:
    """Memory of the block for so many elements."""
    if not isinstance(count, _types.Literal):
        return None
    kind = _kind(dtype.literal_value)

    def generate(context: Any, builder: Any, _sig: Any, _args: Any) -> Any:
        element = context.data_model_manager[kind].get_data_type()
        array = ir.ArrayType(element, count.literal_value)
        name = builder.module.get_unique_name("shared")
        room = ir.GlobalVariable(builder.module, array, name, _SHARED)
        room.linkage, room.initializer, room.align = "internal", ir.Constant(array, ir.Undefined), 16
        return builder.addrspacecast(builder.gep(room, [ir.Constant(_I32, 0)] * 2), element.as_pointer())

    return Elements(kind)(dtype, count), generate


@_intrinsic
def dynamic(_typing: Any, dtype: Any, offset: Any) -> Any:
    """The block's memory whose size the launch says, from a byte on."""
    if not isinstance(dtype, _types.Literal):
        return None
    kind = _kind(dtype.literal_value)

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        element = context.data_model_manager[kind].get_data_type()
        name, array = "dynamic_shared", ir.ArrayType(ir.IntType(8), 0)
        room = builder.module.globals.get(name)
        if room is None:
            room = ir.GlobalVariable(builder.module, array, name, _SHARED)
            room.linkage, room.align = "external", 16
        at = builder.gep(room, [ir.Constant(_I64, 0), args[1]])
        return builder.addrspacecast(builder.bitcast(at, element.as_pointer(_SHARED)), element.as_pointer())

    return Elements(kind)(dtype, offset), generate


# numbers --------------------------------------------------------------------------------------------------------------


def _unsigned(name: str, emit: str, doc: str) -> Any:
    """A quotient or remainder of indices, which are never negative: an unsigned division, which is quicker."""

    def typed(_typing: Any, a: Any, b: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return getattr(builder, emit)(*args)

        return _types.int64(_types.int64, _types.int64), generate

    typed.__name__, typed.__doc__ = name, doc
    return _intrinsic(typed)


def _rounding(name: str, llvm_name: str) -> Any:
    def typed(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = args[0].type
            full = f"llvm.{llvm_name}.{kind.intrinsic_name}"
            return builder.call(_declared(builder, full, kind, [kind]), args)

        return x(x), generate

    typed.__name__, typed.__doc__ = name, f"llvm.{llvm_name} of a float."
    return _intrinsic(typed)


def _extremum(name: str, *, largest: bool) -> Any:
    """The larger or smaller of two floats; nan where either is nan; 0.0 is above -0.0."""

    def typed(_typing: Any, a: Any, _b: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            x, y = args
            bits = _I64 if isinstance(x.type, ir.DoubleType) else _I32
            join = builder.and_ if largest else builder.or_
            zeros = builder.bitcast(join(builder.bitcast(x, bits), builder.bitcast(y, bits)), x.type)
            first = builder.select(builder.fcmp_ordered(">" if largest else "<", x, y), x, y)
            found = builder.select(builder.fcmp_ordered("==", x, y), zeros, first)
            found = builder.select(builder.fcmp_unordered("uno", y, y), y, found)
            return builder.select(builder.fcmp_unordered("uno", x, x), x, found)

        return a(a, a), generate

    typed.__name__, typed.__doc__ = name, _extremum.__doc__
    return _intrinsic(typed)


@_intrinsic
def absolute(_typing: Any, x: Any) -> Any:
    """A number without its sign, of its own type."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = args[0].type
        if isinstance(kind, ir.IntType):
            negative = builder.icmp_signed("<", args[0], ir.Constant(kind, 0))
            return builder.select(negative, builder.neg(args[0]), args[0])
        return builder.call(_declared(builder, f"llvm.fabs.{kind.intrinsic_name}", kind, [kind]), args)

    return x(x), generate


@_intrinsic
def widened(_typing: Any, bits: Any) -> Any:
    """A half float, by its bits, in single precision."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        function = _declared(builder, "llvm.convert.from.fp16.f32", ir.FloatType(), [ir.IntType(16)])
        return builder.call(function, args)

    return _types.float32(bits), generate


@_intrinsic
def narrowed(_typing: Any, x: Any) -> Any:
    """The bits of the nearest half float."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = args[0].type
        function = _declared(builder, f"llvm.convert.to.fp16.{kind.intrinsic_name}", ir.IntType(16), [kind])
        return builder.call(function, args)

    return _types.uint16(x), generate


@_intrinsic
def leap(_typing: Any, high: Any, low: Any, by_high: Any, by_low: Any, and_high: Any, and_low: Any) -> Any:
    """A product and a sum of 128 bits, each by its upper and its lower half."""
    word, wide = _types.uint64, ir.IntType(128)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        shift = ir.Constant(wide, 64)
        x, y, z = (
            builder.or_(builder.shl(builder.zext(args[k], wide), shift), builder.zext(args[k + 1], wide))
            for k in (0, 2, 4)
        )
        found = builder.add(builder.mul(x, y), z)
        parts = [builder.trunc(builder.lshr(found, shift), _I64), builder.trunc(found, _I64)]
        return context.make_tuple(builder, sig.return_type, parts)

    return _types.UniTuple(word, 2)(*[word] * 6), generate


@_intrinsic
def unit_of_pcg(_typing: Any, high: Any, low: Any) -> Any:
    """The number from 0 to 1 that a state of PCG64 gives."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        mixed, count = builder.xor(*args), builder.lshr(args[0], ir.Constant(_I64, 58))
        left = builder.and_(builder.sub(ir.Constant(_I64, 64), count), ir.Constant(_I64, 63))
        turned = builder.or_(builder.lshr(mixed, count), builder.shl(mixed, left))
        whole = builder.uitofp(builder.lshr(turned, ir.Constant(_I64, 11)), ir.DoubleType())
        return builder.fmul(whole, ir.Constant(ir.DoubleType(), 2.0**-53))

    return _types.float64(_types.uint64, _types.uint64), generate


def _function(formula: Callable[..., Value]) -> Any:
    """A formula of `vecmath`, for operands of one kind of float."""

    def emit(kind: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            emitter = Emitter(builder, kind.bitwidth, 0, has_fma=True, register=64)
            return formula(*(Value(emitter, argument) for argument in args)).raw

        return generate

    def of_one(_typing: Any, x: Any) -> Any:
        return x(x), emit(x)

    def of_two(_typing: Any, a: Any, b: Any) -> Any:
        return a(a, b), emit(a)

    typed = of_one if len(signature(formula).parameters) == 1 else of_two
    typed.__name__, typed.__doc__ = formula.__name__, formula.__doc__
    return _intrinsic(typed)


class _CardEmitter(Emitter):
    """Instructions that NVVM's language lacks, by others."""

    def call(self, name: str, *values: Value) -> Value:
        """As the general one."""
        if name == "fshl":
            first, second, count = values
            return (first << count) | Value(self, self.builder.lshr(second.unsigned_shift(1).raw, (63 - count).raw))
        if name == "ctlz" and values[0].raw.type.width > 64:
            return self._zeros_of_wide(values[0])
        return super().call(name, *values)

    def _zeros_of_wide(self, number: Value) -> Value:
        builder = self.builder
        count = _declared(builder, "llvm.ctlz.i64", _I64, [_I64, ir.IntType(1)])
        plain = ir.Constant(ir.IntType(1), 0)
        high, low = number.unsigned_shift(64).resized(64).raw, number.resized(64).raw
        below = builder.add(builder.call(count, [low, plain]), ir.Constant(_I64, 64))
        is_zero = builder.icmp_signed("==", high, ir.Constant(_I64, 0))
        found = builder.select(is_zero, below, builder.call(count, [high, plain]))
        return Value(self, found).resized(number.raw.type.width)


def _trigonometric(name: str) -> Any:
    """The sine, cosine or tangent: arguments that are large are reduced apart."""

    def typed(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            value = Value(_CardEmitter(builder, x.bitwidth, 0, has_fma=True, register=64), args[0])
            plain = trig.of_quadrant(name, *trig.reduced(value)).raw
            large = trig.is_large(value).raw
            start, kind = builder.block, args[0].type
            with builder.if_then(large, likely=False):
                wide = args[0] if x.bitwidth == 64 else builder.fpext(args[0], ir.DoubleType())
                exact = Value(_CardEmitter(builder, 64, 0, has_fma=True, register=64), wide)
                found = trig.of_quadrant(name, *trig.reduced_large(exact)).raw
                found = found if x.bitwidth == 64 else builder.fptrunc(found, kind)
                last = builder.block
            merged = builder.phi(kind)
            merged.add_incoming(plain, start)
            merged.add_incoming(found, last)
            return merged

        return x(x), generate

    typed.__name__, typed.__doc__ = name, _trigonometric.__doc__
    return _intrinsic(typed)


NAMES: dict[str, Any] = {
    "thread": _register("tid.x", "The number of the thread in its block."),
    "block": _register("ctaid.x", "The number of the block."),
    "blocks": _register("nctaid.x", "How many blocks there are."),
    "barrier": barrier,
    "shuffle": shuffle,
    "vector": vector,
    "store": store,
    "shared": shared,
    "dynamic": dynamic,
    "quotient": _unsigned("quotient", "udiv", "a // b of numbers that are not negative."),
    "rest": _unsigned("rest", "urem", "a % b of numbers that are not negative."),
    **{name: _rounding(name, name) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    "max_propagate": _extremum("max_propagate", largest=True),
    "min_propagate": _extremum("min_propagate", largest=False),
    **{
        name: _function(getattr(module, name))
        for module in (formulas, hyperbolic, inverse, roots, unit)
        for name in module.__all__
    },
    **{name: _trigonometric(name) for name in ("sin", "cos", "tan")},
    "math": math,
    "abs": absolute,
    "leap": leap,
    "unit_of_pcg": unit_of_pcg,
    "widened": widened,
    "narrowed": narrowed,
}
