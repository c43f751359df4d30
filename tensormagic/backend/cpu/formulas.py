"""The functions of vecmath as functions of LLVM's module, which are inlined before anything else is done."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from inspect import signature
from typing import Any

from tensormagic.backend.cpu.target import abilities, described
from tensormagic.backend.vecmath import formulas, hyperbolic, inverse, roots, trig, unit
from tensormagic.backend.vecmath.ir import Emitter, Value, ir

FORMULAS: dict[str, Any] = {
    name: getattr(module, name)
    for module in (formulas, hyperbolic, inverse, roots, trig, unit)
    for name in module.__all__
}
Wanted = tuple[str, int]  # a formula, and the width of its floats


@cache
def operands(name: str) -> int:
    """Return how many operands a formula has."""
    return len(signature(FORMULAS[name]).parameters)


def named(wanted: Wanted) -> str:
    """Return the name of a formula in a module."""
    return f"{wanted[0]}.f{wanted[1]}"


def defined(wanted: Iterable[Wanted]) -> tuple[dict[str, str], list[str]]:
    """Return what a module declares and defines for some formulas, in LLVM's language."""
    return _defined(tuple(sorted(wanted)))


@cache
def _defined(wanted: tuple[Wanted, ...]) -> tuple[dict[str, str], list[str]]:
    module = ir.Module()
    for one in wanted:
        _define(module, one)
    declared: dict[str, str] = {}
    own: list[str] = []
    for value in module.global_values:
        if getattr(value, "is_declaration", False):
            declared[value.name] = str(value).strip()
        else:
            own.append(str(value))
    return declared, own


def _define(module: Any, wanted: Wanted) -> None:
    name, bits = wanted
    triple, _, features = described()
    kind = ir.DoubleType() if bits == 64 else ir.FloatType()
    function = ir.Function(module, ir.FunctionType(kind, [kind] * operands(name)), named(wanted))
    function.linkage = "internal"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    emitter = Emitter(builder, bits, 0, *abilities(triple, features))
    builder.ret(FORMULAS[name](*(Value(emitter, argument) for argument in function.args)).raw)
