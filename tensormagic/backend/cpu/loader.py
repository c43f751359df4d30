"""Loads object code into the process by llvmlite alone, and says what machine it is for. Knows nothing of Numba."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from tensormagic.backend.compiling.messages import Code

# LLVM's older linker asks for each part of a kernel where there is room, which may be more than two gigabytes from the next: in a process
# that holds large arrays it then ends the process. The newer one takes one piece of memory, and knows ELF and Mach-O.
_LINKS_BY_ITSELF = os.name != "nt"
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_serial = count()
_kept: list[Any] = []


@cache
def _linker() -> Any:
    with suppress(OSError):  # the mathematics library, by name: code that was compiled elsewhere refers to it
        _kept.append(ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL))
    with suppress(RuntimeError):  # done by itself in later versions
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_lljit_compiler(machine, use_jit_link=_LINKS_BY_ITSELF)


def load(code: Code) -> Callable[..., None]:
    """Return the function in ``code``.

    Raises
    ------
    RuntimeError
        Where the object code does not load.
    """
    return _FUNCTION(link(code.data, code.symbol)[code.symbol])


def link(data: bytes, *symbols: str) -> Any:
    """Object code in this process for as long as that lives: the addresses of ``symbols``.

    Raises
    ------
    RuntimeError
        Where the object code does not load.
    """
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    library = builder.link(_linker(), f"kernel{next(_serial)}")
    _kept.append(library)
    return library


def object_of(text: str) -> bytes:
    """Return the object code of a text in LLVM's language."""
    from tensormagic.backend.cpu.target import target_machine

    return target_machine().emit_object(llvm.parse_assembly(text))


def _version_of_numba() -> str:
    """Return Numba's version from its own file, since to import what reads versions of distributions takes longer than all the rest."""
    spec = find_spec("numba")
    if spec is None:
        return ""
    path = Path(spec.origin or "").with_name("_version.py")
    if path.is_file():
        return path.read_text(encoding="utf-8")
    return version("numba")


@cache
def machine() -> dict[str, str]:
    """Return what object code depends on beside its source: processor, versions ("" without Numba), and the generator's own text."""
    here = Path(__file__).parent
    own = hashlib.sha256()
    for path in sorted([*here.glob("*.py"), *(here.parent / "vecmath").glob("*.py")]):
        own.update(path.read_bytes())
    return {
        "processor": llvm.get_host_cpu_name(),
        "features": llvm.get_host_cpu_features().flatten(),
        **{name: os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")},
        "system": llvm.get_default_triple(),
        "numba": _version_of_numba(),
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "python": sys.implementation.cache_tag or "",
        "generator": own.hexdigest(),
    }


def runs_here(described: Mapping[str, str]) -> bool:
    """Return whether code that was compiled on a machine described like this is what would be compiled here, if Numba is here."""
    own = machine()
    return {**described, "numba": own["numba"] and described.get("numba", "")} == own


def key_of(source: str) -> str:
    """Return the name under which the object code of ``source`` is kept."""
    parts = "\n".join(machine().values())
    return hashlib.sha256(f"{parts}\n{source}".encode()).hexdigest()
