"""The compiler's steps: numba-cuda types functions and writes LLVM text, NVVM makes PTX of it. Neither needs a GPU."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from tensormagic.backend.cpu.typing_context import RememberingContext


def part(name: str) -> Any:
    """Return a module of the compiler, imported by name as it is not installed everywhere."""
    return import_module(name)


_nvvm = part("cuda.bindings.nvvm")
_types = part("numba.cuda").types
_compiler = part("numba.cuda.compiler")
_CUDACompiler = _compiler.CUDACompiler
_PassManager = part("numba.cuda.core.compiler_machinery").PassManager
_untyped = part("numba.cuda.core.untyped_passes")
_typed = part("numba.cuda.core.typed_passes")
_Flags = part("numba.cuda.flags").CUDAFlags
_CUDACallConv = part("numba.cuda.core.callconv").CUDACallConv
_target = part("numba.cuda.descriptor").cuda_target
_target_override = part("numba.cuda.utils").numba_target_override
_old_text = part("numba.cuda.cudadrv.nvvm").llvm_replace
_CUDADispatcher = part("numba.cuda.dispatcher").CUDADispatcher
_ANY = (9, 0)  # the text is the same for all GPUs
_NEGATED = re.compile(r"= fneg (float|double) ")  # an instruction newer than the LLVM that NVVM reads


class _Steps(_CUDACompiler):
    """The compiler passes for text in which each name has one type, without rewriting or pruning."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes in order."""
        steps = _PassManager("kernel")
        for step in (
            _compiler.CUDATranslateBytecode,
            _untyped.FixupArgs,
            _untyped.IRProcessing,
            _untyped.GenericRewrites,  # for items of tuples by constant indices
            _typed.NopythonTypeInference,
            _compiler.CreateLibrary,
            _compiler.CUDANativeLowering,
            _compiler.CUDABackend,
        ):
            steps.add_pass(step, step.__name__)
        steps.finalize()
        return [steps]


def text_of(function: Any, result: Any, kinds: Any, cc: tuple[int, int], *, inline: bool) -> Any:
    """Return the LLVM text of a function for types of operands."""
    flags: Any = _Flags()
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.forceinline = inline
    flags.nvvm_options = {"opt": 3}
    flags.compute_capability = cc
    if not _typing:
        _typing.append(RememberingContext(_target.typing_context, lambda f: isinstance(f, _types.Dispatcher)))
    context = _target.target_context
    with _target_override():
        found = _compiler.compile_extra(
            _typing[0], context, function, tuple(kinds), result, flags, {}, None, _Steps, _CUDACallConv(context), {}
        )
    found.library.finalize()
    return found


_typing: list[Any] = []


class _Inlined(_CUDADispatcher):
    """A function that kernels call, inlined at each call; numba-cuda's own class would query the GPU."""

    def compile_device(self, args: Any, return_type: Any = None) -> Any:
        """Return the LLVM text of the function for types of operands."""
        found = self.overloads.get(args)
        if found is None:
            found = self.overloads[args] = text_of(self.py_func, return_type, args, _ANY, inline=True)
            found.target_context.insert_user_function(found.entry_point, found.fndesc, [found.library])
        return found


def inlined(function: Any) -> Any:
    """Return a function as one that kernels can call."""
    return _Inlined(function, {"device": True, "forceinline": True, "opt": True})


def assembled(texts: list[str], cc: tuple[int, int]) -> bytes:
    """Return the PTX of LLVM text. Products are not fused with additions: NumPy rounds twice."""
    options = ["-opt=3", f"-arch=compute_{cc[0]}{cc[1]}", "-fma=0"]
    program = _nvvm.create_program()
    try:
        for text in texts:
            data = _NEGATED.sub(r"= fsub \1 -0.0, ", _old_text(text)).encode()
            _nvvm.add_module_to_program(program, data, len(data), "")
        try:
            _nvvm.compile_program(program, len(options), options)
        except Exception as error:
            raise RuntimeError(_log(program)) from error
        found = bytearray(_nvvm.get_compiled_result_size(program))
        _nvvm.get_compiled_result(program, found)
    finally:
        _nvvm.destroy_program(program)
    return bytes(found).strip(b"\0").strip()


def _log(program: Any) -> str:
    log = bytearray(_nvvm.get_program_log_size(program))
    _nvvm.get_program_log(program, log)
    return log.decode(errors="replace").strip("\0")
