"""From a kernel's source to object code: Numba's front end writes LLVM's language, and LLVM is run once.

Numba itself rewrites and prunes what kernels do not have, optimises every module three times, for a "large" code model
whose constants stand behind 64-bit addresses, and links it into the process. A kernel goes through the steps that it
needs, calls whose types were asked for before are not asked for again, and it is optimised once, for the small code model.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from functools import cache
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.core import codegen, compiler, compiler_machinery, registry, typed_passes, untyped_passes

from tensormagic.backend.cache import Code
from tensormagic.backend.cpu_types import NAMES
from tensormagic.backend.typing_context import RememberingContext

_llvm: Any = llvmlite.binding
_types: Any = numba.types
_compiler: Any = compiler
_PassManager: Any = compiler_machinery.PassManager
_untyped: Any = untyped_passes
_typed: Any = typed_passes
_cpu: Any = registry.cpu_target
_JITCodeLibrary: Any = codegen.JITCodeLibrary
FOREIGN = ("numba", "NRT", "Py", "_Py")


class _Library(_JITCodeLibrary):
    """Keeps what Numba has written, and neither optimises nor compiles it."""

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
        """The steps in order."""
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


@cache
def _target() -> Any:
    """LLVM's target machine for this processor."""
    _, cpu, features = _cpu.target_context.codegen().magic_tuple()
    target = _llvm.Target.from_triple(_llvm.get_process_triple())
    reloc, model = ("default", "jitdefault") if os.name == "nt" else ("pic", "small")
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc=reloc, codemodel=model, jit=True)


def compile_source(source: str) -> Code:
    """Object code for a kernel's source; the function is called as Numba calls: ``f(result*, exception*, table*)``.

    Raises
    ------
    RuntimeError
        Where the code needs a symbol that a process without Numba does not have.
    """
    begin = time.perf_counter()
    names: dict[str, Any] = {**NAMES, "np": np, "math": math}
    exec(compile(source, "<kernel>", "exec"), names)  # noqa: S102 (the project's own text)
    library, symbol = _lowered(names["kernel"])
    module = _llvm.parse_assembly(library.text)
    _link(module, library)
    _optimise(module)
    _refuse_foreign(module)
    return Code(symbol, _target().emit_object(module), time.perf_counter() - begin)


def _lowered(kernel: Any) -> tuple[Any, str]:
    """What Numba writes for a kernel, and the function's name there."""
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


def _optimise(module: Any) -> None:
    module.data_layout = str(_target().target_data)
    options = _llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = _llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)


def _refuse_foreign(module: Any) -> None:
    process = ctypes.CDLL(None)
    names = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    missing = [name for name in names if name.startswith(FOREIGN) or not hasattr(process, name)]
    if missing:
        raise RuntimeError(f"the code needs {', '.join(missing)}")
