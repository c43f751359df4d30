"""The language of generated kernels, for numba-cuda: threads, vectors of 16 bytes, shared memory, shuffles, functions of numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import llvmlite.ir

from tensormagic.backend.cuda.compiling.dialect_numbers import NUMBERS, declared
from tensormagic.backend.cuda.compiling.front import part, text_of

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
_VECTOR = 16  # bytes of one vector load, and the alignment of arrays
_SHARED = 3  # the number of the address space

# compiling ------------------------------------------------------------------------------------------------------------


def lowered(kernel: Any, parameters: Any, written: Any, cc: tuple[int, int]) -> tuple[str, list[str]]:
    """Return the name of a kernel, and its LLVM text."""
    kinds = [_kind(p) for p in parameters]
    compiled = text_of(kernel, _types.void, kinds, cc, inline=False)
    library = compiled.library
    function = library.get_function(compiled.fndesc.llvm_func_name)
    _compiler.kernel_fixup(function, False)
    for argument, kind, stores in zip(function.args, kinds, written, strict=True):
        if isinstance(kind, Elements) and not stores:
            argument.add_attribute("noalias")
    return function.name, library.llvm_strs


_NAMED = {
    "bool": "boolean",
    "float16": "uint16",
    "bfloat16": "uint16",
}  # half floats are handled as their bits until they are widened


def _kind(name: str) -> Any:
    """Return Numba's type of a parameter."""
    kind = getattr(_types, _NAMED.get(name.lstrip("*"), name.lstrip("*")))
    return Elements(kind) if name.startswith("*") else kind


class Elements(_types.Type):
    """Numba's type of a pointer to the elements of an array.

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
        """Return the signature that gives an element."""
        del kws
        return _signature(args[0].dtype, args[0], _types.int64) if isinstance(args[0], Elements) else None


@_declare(operator.setitem)
class _SetItem(_AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        """Return the signature of a store, which casts the value to the dtype of the elements."""
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
    """Return an intrinsic that reads a special register as an int64."""

    def typed(_typing: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, _args: Any) -> Any:
            function = declared(builder, f"llvm.nvvm.read.ptx.sreg.{name}", _I32, [])
            return builder.zext(builder.call(function, []), _I64)

        return _types.int64(), generate

    typed.__name__, typed.__doc__ = name, doc
    return _intrinsic(typed)


@_intrinsic
def barrier(_typing: Any) -> Any:
    """Wait for all threads of the block."""

    def generate(context: Any, builder: Any, _sig: Any, _args: Any) -> Any:
        builder.call(declared(builder, "llvm.nvvm.barrier0", ir.VoidType(), []), [])
        return context.get_dummy_value()

    return _types.none(), generate


@_intrinsic
def shuffle(_typing: Any, value: Any, distance: Any, mask: Any) -> Any:
    """Return the value of the lane whose number differs in these bits; all lanes of the mask have to take part."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        raw, bits, lanes = args[0], builder.trunc(args[1], _I32), builder.trunc(args[2], _I32)
        kind = raw.type
        exchange = declared(builder, "llvm.nvvm.shfl.sync.bfly.i32", _I32, [_I32] * 4)

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
    """Load ``count`` neighbouring elements at once."""
    if not isinstance(count, _types.Literal):
        return None
    lanes, kind = count.literal_value, pointer.dtype

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        element = args[0].type.pointee
        whole = _words_of(element, lanes) or _vector_of(element, lanes)
        at = builder.bitcast(builder.gep(args[0], [args[1]]), whole.as_pointer())
        loaded = builder.load(at, align=min(_VECTOR, _size(element) * lanes))
        model = context.data_model_manager[kind]
        taken = _cut if _words_of(element, lanes) is not None else _taken
        parts = [model.from_data(builder, taken(builder, loaded, element, k)) for k in range(lanes)]
        return context.make_tuple(builder, sig.return_type, parts)

    return _types.UniTuple(kind, lanes)(pointer, place, count), generate


@_intrinsic
def store(_typing: Any, pointer: Any, place: Any, values: Any) -> Any:
    """Store neighbouring elements at once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        element, lanes = args[0].type.pointee, sig.args[2].count
        whole = _vector_of(element, lanes)
        model = context.data_model_manager[pointer.dtype]
        packed = ir.Constant(whole, ir.Undefined)
        values = [
            model.as_data(
                builder,
                context.cast(builder, builder.extract_value(args[2], k), sig.args[2].dtype, pointer.dtype),
            )
            for k in range(lanes)
        ]
        if _words_of(element, lanes) is not None:
            whole, packed = _words_of(element, lanes), _joined(builder, values)
        else:
            for k, value in enumerate(values):
                for word, number in enumerate(_words(builder, value)):
                    packed = builder.insert_element(packed, number, ir.Constant(_I32, k * _count(element) + word))
        at = builder.bitcast(builder.gep(args[0], [args[1]]), whole.as_pointer())
        builder.store(packed, at, align=min(_VECTOR, _size(element) * lanes))
        return context.get_dummy_value()

    return _types.none(pointer, place, values), generate


def _count(element: Any) -> int:
    """Return the number of scalars in an element: two for a complex number."""
    return len(element.elements) if isinstance(element, ir.LiteralStructType) else 1


def _vector_of(element: Any, lanes: int) -> Any:
    number = element.elements[0] if _count(element) > 1 else element
    return ir.VectorType(number, lanes * _count(element))


def _words_of(element: Any, lanes: int) -> Any:
    """Return the type of 32-bit words for neighbours that are narrower, since PTX vectors have four items at most, or None."""
    size = _size(element)
    return ir.VectorType(_I32, lanes * size // 4) if size < 4 and lanes * size > 4 and lanes * size % 4 == 0 else None


def _cut(builder: Any, words: Any, element: Any, lane: int) -> Any:
    """Return one element of loaded words."""
    size = _size(element)
    word = builder.extract_element(words, ir.Constant(_I32, lane * size // 4))
    bits = builder.trunc(builder.lshr(word, ir.Constant(_I32, 8 * (lane * size % 4))), ir.IntType(8 * size))
    return bits if isinstance(element, ir.IntType) else builder.bitcast(bits, element)


def _joined(builder: Any, values: Sequence[Any]) -> Any:
    """Return narrow elements packed into words."""
    size = _size(values[0].type)
    whole = ir.Constant(_words_of(values[0].type, len(values)), ir.Undefined)
    for first in range(0, len(values), 4 // size):
        word = ir.Constant(_I32, 0)
        for k, value in enumerate(values[first : first + 4 // size]):
            bits = value if isinstance(value.type, ir.IntType) else builder.bitcast(value, ir.IntType(8 * size))
            word = builder.or_(word, builder.shl(builder.zext(bits, _I32), ir.Constant(_I32, 8 * size * k)))
        whole = builder.insert_element(whole, word, ir.Constant(_I32, first * size // 4))
    return whole


def _taken(builder: Any, loaded: Any, element: Any, lane: int) -> Any:
    """Return one element of a loaded vector."""
    count = _count(element)
    parts = [builder.extract_element(loaded, ir.Constant(_I32, lane * count + k)) for k in range(count)]
    if count == 1:
        return parts[0]
    found = ir.Constant(element, ir.Undefined)
    for k, number in enumerate(parts):
        found = builder.insert_value(found, number, k)
    return found


def _words(builder: Any, raw: Any) -> list[Any]:
    """Return the scalars in an element."""
    count = _count(raw.type)
    return [raw] if count == 1 else [builder.extract_value(raw, k) for k in range(count)]


def _size(element: Any) -> int:
    if isinstance(element, ir.LiteralStructType):
        return sum(map(_size, element.elements))
    if isinstance(element, ir.IntType):
        return max(1, element.width // 8)
    return 8 if isinstance(element, ir.DoubleType) else 4


@_intrinsic
def shared(_typing: Any, dtype: Any, count: Any) -> Any:
    """Allocate shared memory for ``count`` elements."""
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
    """Return the launch-sized shared memory of the block, from a byte offset on."""
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
    **NUMBERS,
}
