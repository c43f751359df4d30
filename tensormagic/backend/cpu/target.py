"""The processor that kernels are compiled for, as Numba sees it: settings of the environment, else the one that there is."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite.binding

_llvm: Any = llvmlite.binding
_WITHOUT_AVX = frozenset({"corei7-avx", "core-avx-i", "sandybridge", "ivybridge", "nocona"})
SCALING_LLVM = 22  # from this version on, vectors of ldexp become instructions of AVX-512 and not calls of libm


@cache
def described() -> tuple[str, str, str]:
    """Return the target's triple, the processor's name, and its features as LLVM takes them."""
    chosen = os.environ.get("NUMBA_CPU_NAME", "")
    name = chosen or _llvm.get_host_cpu_name()
    return _llvm.get_process_triple(), name, _features(chosen, name)


def _features(chosen: str, name: str) -> str:
    if "NUMBA_CPU_FEATURES" in os.environ or chosen.lower() == "generic":
        return os.environ.get("NUMBA_CPU_FEATURES", "")
    try:
        found = _llvm.get_host_cpu_features()
    except RuntimeError:
        return ""
    avx = os.environ.get("NUMBA_ENABLE_AVX", "0" if name in _WITHOUT_AVX else "1")
    if avx == "0":
        found.update({feature: False for feature in found if feature.startswith("avx")})
    return found.flatten()


def abilities(triple: str, features: str) -> tuple[bool, int, bool]:
    """Return whether fma is one instruction on a target, the width of its vector registers in bits, and whether ldexp is."""
    known = set(features.split(","))
    has_fma = "+fma" in known or triple.startswith(("aarch64", "arm64"))
    wide = {"+avx512f", "+avx512dq", "+avx512vl"} <= known
    has_scale = wide and _llvm.llvm_version_info[0] >= SCALING_LLVM
    return has_fma, 512 if "+avx512f" in known else 256 if "+avx2" in known else 128, has_scale


@cache
def target_machine() -> Any:
    """Return LLVM's target machine for this processor."""
    with suppress(RuntimeError):  # done by itself in later versions
        _llvm.initialize_native_target()
        _llvm.initialize_native_asmprinter()
    triple, cpu, features = described()
    target = _llvm.Target.from_triple(triple)
    reloc, model = ("default", "jitdefault") if os.name == "nt" else ("pic", "small")
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc=reloc, codemodel=model, jit=True)
