"""What generated kernels are written in, for Numba: typed buffers, scratch memory, the stop flag, rounding.

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

from tensormagic.backend import vecmath
from tensormagic.backend.kernel_text import MOST_BUFFERS

ARRAY_DATA = 16  # where an ndarray object holds the address of its data: behind reference count and type

_infer_global: Any = templates.infer_global
_DTYPES: dict[str, Any] = {
    name: getattr(types, name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
} | {"bool": types.boolean}


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
        scopes = [module.add_metadata([f"buffer {k}", domain]) for k in range(MOST_BUFFERS)]
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


@intrinsic(prefer_literal=True)
def real(_typing: Any, table: Any, place: Any) -> Any:
    """The table's entry at ``place`` as the float64 whose bits it is."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.bitcast(_entry(builder, args[0], place.literal_value), ir.DoubleType())

    return types.float64(table, place), generate


@intrinsic
def stopped(_typing: Any, table: Any) -> Any:
    """Whether the flag at the table's first address is raised: an atomic load, which stays in its loop."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(_entry(builder, args[0], 0), ir.IntType(8).as_pointer())
        flag = builder.load_atomic(pointer, "monotonic", 1)
        return builder.icmp_unsigned("!=", flag, ir.Constant(ir.IntType(8), 0))

    return types.boolean(table), generate


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
    **vecmath.FUNCTIONS,
    **vecmath.FOLDS,
    "array": array,
    "scratch": scratch,
    "real": real,
    "stopped": stopped,
}
