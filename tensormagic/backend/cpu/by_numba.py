"""A kernel's source by Numba's own front end: what it means, where this compiler does not know the text, and what it is tested by.

A kernel goes through the steps of Numba that it needs; calls whose types were asked for before are not asked for again.
"""

from __future__ import annotations

import math
import re
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.core import codegen, compiler, compiler_machinery, registry, typed_passes, untyped_passes

from tensormagic.backend.cpu.types import NAMES
from tensormagic.backend.cpu.typing_context import RememberingContext

_llvm: Any = llvmlite.binding
_types: Any = numba.types
_compiler: Any = compiler
_PassManager: Any = compiler_machinery.PassManager
_untyped: Any = untyped_passes
_typed: Any = typed_passes
_cpu: Any = registry.cpu_target
_JITCodeLibrary: Any = codegen.JITCodeLibrary


class _Library(_JITCodeLibrary):
    """A code library that keeps what Numba has written, and neither optimises nor compiles it."""

    text = ""

    def add_ir_module(self, ir_module: Any) -> None:
        """Keep the text of the module."""
        self.text = str(ir_module)


class _Steps(_compiler.CompilerBase):
    """The steps of Numba's compiler that text without closures, literals as types and array expressions needs.

    A name has one type throughout, so that names need not be told apart by assignment, and nothing is counted, so that
    it need not be found out where a name is used last.
    """

    def define_pipelines(self) -> list[Any]:
        """Return the steps in order."""
        steps = _PassManager("kernel")
        for step in (
            _untyped.TranslateByteCode,
            _untyped.FixupArgs,
            _untyped.IRProcessing,
            _typed.NopythonTypeInference,
            _typed.NativeLowering,
            _typed.NoPythonBackend,
        ):
            steps.add_pass(step, step.__name__)
        steps.finalize()
        return [steps]


_typing = RememberingContext(_cpu.typing_context)


def lowered_by_numba(source: str) -> tuple[Any, str]:
    """Return LLVM's module for a kernel, and the function's name there."""
    source = (
        re.sub(r"in parallel\((.*?), (.*?), .*\):", r"in range(0, \1, \2):", source)
        .replace(" in few(", " in range(")
        .replace(" in woven(", " in range(")
    )
    names: dict[str, Any] = {**NAMES, "np": np, "math": math}
    exec(compile(source, "<kernel>", "exec"), names)  # noqa: S102 (the project's own text)
    library, symbol = _lowered(names["kernel"])
    module = _llvm.parse_assembly(library.text)
    _link(module, library)
    return module, symbol


def _lowered(kernel: Any) -> tuple[Any, str]:
    """Return what Numba writes for a kernel, and the function's name there."""
    flags: Any = _compiler.Flags()
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    target = _cpu.target_context
    library = _Library(target.codegen(), "kernel")
    arguments = (_types.CPointer(_types.int64),)
    result = _compiler.compile_extra(_typing, target, kernel, arguments, _types.void, flags, {}, library, _Steps)
    return library, result.fndesc.llvm_func_name


def _link(module: Any, library: Any) -> None:
    """Add what Numba has compiled apart and the kernel calls."""
    wanted = {f.name for f in module.functions if f.is_declaration}
    for other in library._linking_libraries:  # noqa: SLF001 (Numba has no public way to them)
        part = other._get_module_for_linking()  # noqa: SLF001
        if any(f.name in wanted and not f.is_declaration for f in part.functions):
            module.link_in(part, preserve=True)
