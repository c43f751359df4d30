"""Run the same cell in JAX, PyTensor or PyTorch, with their namespace in place of ``numpy`` and its text unchanged.

A cell that they cannot run so is not rewritten for them: the reason is reported instead.
"""

from __future__ import annotations

import ast
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.cell import Code
from tensormagic.capture.tree import flatten
from tensormagic.ir.modules import package_of
from tensormagic.notebook.cells.run import plain
from tensormagic.notebook.pictures.labels import clean

_MOST = 90  # characters of a reason
Array = np.ndarray[Any, Any]
Program = Callable[..., list[Any]]


@dataclass(frozen=True)
class Peer:
    """A package that may run the cell.

    Parameters
    ----------
    name
        Its name in the picture.
    namespace
        The module used in place of ``numpy``.
    array
        Converts a NumPy array to its array class.
    compiled
        Compiles the cell for its arrays; returns the argument if the package does not compile.
    wait
        Waits until results are ready.
    around
        A context that has to surround every use.
    """

    name: str
    namespace: str
    array: Callable[[Array], Any]
    compiled: Callable[[Program, Sequence[Array]], Program]
    wait: Callable[[Any], Any] = lambda value: value
    around: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Ran:
    """The outcome of a run by another package: the program with its arguments and results, or the reason why there is none."""

    peer: Peer
    first: float = 0.0
    compiles: bool = False
    call: Callable[[], Any] | None = None
    results: tuple[Array, ...] = ()
    refused: str = ""


def run(name: str, code: Code, space: Mapping[str, Any], wanted: Callable[[Any, Mapping[str, Any]], list[Any]]) -> Ran:
    """Run a cell once by a peer.

    Parameters
    ----------
    name
        A key of ``PEERS``.
    code
        The cell.
    space
        What it reads: NumPy arrays, numbers, modules.
    wanted
        The results, of the cell's value and of its variables.
    """
    peer = PEERS[name]
    reason = _unfit(code, space)
    if reason:
        return Ran(peer, refused=reason)
    try:
        namespace = importlib.import_module(peer.namespace)
    except ImportError as error:
        return Ran(peer, refused=f"is not installed ({clean(str(error), _MOST)})")
    try:
        with peer.around():
            return _ran(peer, namespace, code, space, wanted)
    except Exception as error:  # noqa: BLE001 (whatever stops it is the answer)
        return Ran(peer, refused=f"{type(error).__name__}: {clean(_first_line(error), _MOST)}")


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")


def _unfit(code: Code, space: Mapping[str, Any]) -> str:
    """Return why a cell cannot be given to another package at all; empty for one that can."""
    imported = [a.name for n in ast.walk(ast.parse(code.cell.source)) if isinstance(n, ast.Import) for a in n.names]
    imported += [n.module or "" for n in ast.walk(ast.parse(code.cell.source)) if isinstance(n, ast.ImportFrom)]
    if any(name.partition(".")[0] == "numpy" for name in imported):
        return "the cell imports NumPy itself"
    for name in code.parsed.reads:
        value = space.get(name)
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return f"{name} is a random generator of NumPy"
        if package_of(type(value)) == "pandas":
            return f"{name} is a {type(value).__name__}"
    return ""


def _ran(
    peer: Peer,
    namespace: ModuleType,
    code: Code,
    space: Mapping[str, Any],
    wanted: Callable[[Any, Mapping[str, Any]], list[Any]],
) -> Ran:
    """Compile and run."""
    fixed = {name: _theirs(value, namespace) for name, value in space.items()}
    names = [n for n in code.parsed.reads if isinstance(space.get(n), np.ndarray)]

    def program(*arrays: Any) -> list[Any]:
        own = {**fixed, **dict(zip(names, arrays, strict=True))}
        result = plain(code, own)
        return wanted(result, own)

    given = [space[n] for n in names]
    begin = time.perf_counter()
    compiled = peer.compiled(program, given)
    before = time.perf_counter() - begin
    arrays = [peer.array(a.copy()) for a in given]

    def call() -> Any:
        with peer.around():
            return peer.wait(compiled(*arrays))

    begin = time.perf_counter()
    results = call()
    first = time.perf_counter() - begin + before
    return Ran(peer, first, compiled is not program, call, tuple(np.asarray(v) for v in flatten(results)[0]))


def _theirs(value: Any, namespace: ModuleType) -> Any:
    """Return the namespace's counterpart of NumPy itself, or of one of its functions."""
    if value is np:
        return namespace
    return getattr(namespace, value.__name__, value) if isinstance(value, np.ufunc) else value


# the peers ------------------------------------------------------------------------------------------------------------


def _by_jax(program: Program, given: Sequence[Array]) -> Program:
    jax: Any = importlib.import_module("jax")
    return jax.jit(program).lower(*map(jax.numpy.asarray, given)).compile()


def _jax_double() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes in double precision, instead of its default of single precision."""
    jax: Any = importlib.import_module("jax")
    return (
        jax.enable_x64(True) if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental").enable_x64()
    )


def _jax_array(value: Array) -> Any:
    return importlib.import_module("jax.numpy").asarray(value)


def _jax_wait(value: Any) -> Any:
    return importlib.import_module("jax").block_until_ready(value)


def _by_pytensor(program: Program, given: Sequence[Array]) -> Program:
    pytensor: Any = importlib.import_module("pytensor")
    pt: Any = importlib.import_module("pytensor.tensor")
    inputs = [pt.tensor(dtype=str(a.dtype), shape=(None,) * a.ndim) for a in given]
    outputs = [pt.as_tensor_variable(value) for value in program(*inputs)]
    return pytensor.function(inputs, outputs, on_unused_input="ignore")


def _torch_array(value: Array) -> Any:
    return importlib.import_module("torch").from_numpy(value)


PEERS: dict[str, Peer] = {
    "jax": Peer("JAX (jit)", "jax.numpy", _jax_array, _by_jax, _jax_wait, _jax_double),
    "pytensor": Peer("PyTensor", "pytensor.tensor", lambda value: value, _by_pytensor),
    "torch": Peer("torch (eager)", "torch", _torch_array, lambda program, _: program),
}
