"""From a kernel's source to object code: one pass over its syntax tree writes LLVM's language, and LLVM is run once.

What that pass does not know goes to Numba's front end, which is imported only then.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import llvmlite.binding

from tensormagic.backend.compiling.messages import Code
from tensormagic.backend.cpu.kinds import UnknownTextError
from tensormagic.backend.cpu.target import target_machine
from tensormagic.backend.cpu.text import SYMBOL, module_of

_llvm: Any = llvmlite.binding
FOREIGN = ("numba", "NRT", "Py", "_Py")


def compile_source(source: str) -> Code:
    """Object code for a kernel's source; the function is called as Numba calls: ``f(result*, exception*, table*)``.

    Raises
    ------
    RuntimeError
        Where the code needs a symbol that a process without Numba does not have.
    """
    begin = time.perf_counter()
    module, symbol = lowered(source)
    optimise(module)
    refuse_foreign(module)
    return Code(symbol, target_machine().emit_object(module), time.perf_counter() - begin)


def object_called(source: str, symbol: str) -> bytes:
    """Return an object file for a kernel's source, whose only visible symbol is the function ``symbol``, for other linkers."""
    module, own = lowered(source)
    optimise(module)
    refuse_foreign(module)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == own else "internal"
    entry = module.get_function(own)
    entry.name, entry.visibility = symbol, "hidden"
    return target_machine().emit_object(module)


def lowered(source: str) -> tuple[Any, str]:
    """Return LLVM's module for a kernel, and the function's name there."""
    try:
        text = module_of(source)
    except UnknownTextError:
        from tensormagic.backend.cpu.by_numba import lowered_by_numba

        return lowered_by_numba(source)
    return _llvm.parse_assembly(text), SYMBOL


def optimise(module: Any) -> None:
    """Run LLVM's passes."""
    machine = target_machine()
    module.data_layout = str(machine.target_data)
    options = _llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    builder = _llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def refuse_foreign(module: Any) -> None:
    """See that a process without Numba has all that the code calls."""
    process = ctypes.CDLL(None)
    names = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    missing = [name for name in names if name.startswith(FOREIGN) or not hasattr(process, name)]
    if missing:
        raise RuntimeError(f"the code needs {', '.join(missing)}")
