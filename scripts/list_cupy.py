"""Writes what CuPy's functions take, for those that NumPy and SciPy have, too: ``python scripts/list_cupy.py``, where CuPy is installed.

No card is needed: CuPy can be imported without one. The result is tensormagic/backend/cuda/library/signatures.txt.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
import cupyx.scipy.special
import numpy as np
import scipy.special

TARGET = Path(__file__).parents[1] / "tensormagic" / "backend" / "cuda" / "library" / "signatures.txt"
MODULES = {
    "": (cupy, np),
    "linalg.": (cupy.linalg, np.linalg),
    "fft.": (cupy.fft, np.fft),
    "special.": (cupyx.scipy.special, scipy.special),
}


def _parameters(function: Callable[..., Any]) -> str:
    """Names, kinds and which have a default, which is left out unless it is a number, a text or None."""
    parts = []
    for one in inspect.signature(function).parameters.values():
        default = one.default if isinstance(one.default, bool | int | float | str | None) else None
        kept = one.default if one.default is one.empty else default
        parts.append(one.replace(annotation=inspect.Parameter.empty, default=kept))
    return str(inspect.Signature(parts))


def _lines() -> Iterator[str]:
    """The lines of the table."""
    yield f"# CuPy {cupy.__version__}; written by scripts/list_cupy.py"
    for prefix, (module, twin) in MODULES.items():
        for name in sorted(set(dir(module)) & set(dir(twin))):
            function = getattr(module, name)
            if name.startswith("_") or isinstance(function, type) or not callable(function):
                continue
            if isinstance(function, cupy.ufunc):
                yield f"{prefix}{name} {' '.join(dict.fromkeys(function.types))}"
                continue
            try:
                yield f"{prefix}{name} {_parameters(function)}"
            except (TypeError, ValueError):  # written in C: what it takes is not said
                yield f"{prefix}{name} (*args, **kwargs)"


if __name__ == "__main__":
    TARGET.write_text("\n".join(_lines()) + "\n", encoding="utf-8")
