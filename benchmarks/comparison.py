"""The table of the README: the same small programs in tensormagic, PyTensor, JAX and PyTorch, and what each gives.

Below it, what these libraries say of themselves: the facts behind the seven sentences of `docs/from-others.md`.

    python benchmarks/comparison.py [FILE.md]

A library that is not installed has an empty column. Each cell is one program, written as that library's users write it.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import platform
import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import tensormagic as tm

LIBRARIES = ("tensormagic", "pytensor", "jax", "torch")
QUESTIONS = {
    "softplus": "slope of `log(1 + exp(x))` at 1000 (it is 1)",
    "tiny": "`log(1 + x)` at 1e-18 (it is 1e-18)",
    "where": "slope of `where(x > 0, x * log(x), 0)` at 0 (it is 0)",
    "while": "slope of a square root by a `while` loop at 2 (it is 0.354)",
    "stores": "slope of `y[0] = y[0]**2; sum(y)` at (3, 1) (it is (6, 1))",
    "recursion": "`3!` by a function that calls itself, as a graph (it is 6)",
}


def softplus_with(log: Any, exp: Any) -> Callable[[Any], Any]:
    """The same text for all libraries."""
    return lambda x: log(1 + exp(x))


def newton(a: Any) -> Any:
    """A square root, as Python writes it."""
    z = a
    while abs(z * z - a) > 1e-12:
        z = (z + a / z) / 2
    return z


def stored(x: Any) -> Any:
    """An array that is changed in place."""
    y = x * 1.0
    y[0] = y[0] ** 2
    return y.sum()


def factorial(r: Any, x: Any) -> Any:
    """A recursion that ends by its data."""
    if x <= 1:
        return r
    return factorial(r * x, x - 1)


def of_tensormagic() -> dict[str, Callable[[], Any]]:
    """Programs in NumPy."""
    return {
        "softplus": lambda: tm.grad(softplus_with(np.log, np.exp))(1000.0),
        "tiny": lambda: tm.tensor(lambda x: np.log(1 + x))(1e-18),
        "where": lambda: tm.grad(lambda x: np.where(x > 0, x * np.log(x), 0.0))(0.0),
        "while": lambda: tm.grad(newton)(2.0),
        "stores": lambda: tm.grad(stored)(np.array([3.0, 1.0])),
        "recursion": lambda: tm.tensor(factorial)(1.0, 3.0),
    }


def of_pytensor() -> dict[str, Callable[[], Any]]:
    """Programs of symbols; the loop and the recursion as Python has them."""
    pytensor: Any = import_module("pytensor")
    pt: Any = import_module("pytensor.tensor")

    def at(build: Callable[[Any], Any], value: Any, *, slope: bool = True) -> Any:
        x = pt.dvector("x") if np.ndim(value) else pt.dscalar("x")
        out = build(x)
        return pytensor.function([x], pt.grad(out, x) if slope else out)(value)

    def called() -> Any:
        r, x = pt.dscalar("r"), pt.dscalar("x")
        return pytensor.function([r, x], factorial(r, x))(1.0, 3.0)

    return {
        "softplus": lambda: at(softplus_with(pt.log, pt.exp), 1000.0),
        "tiny": lambda: at(lambda x: pt.log(1 + x), 1e-18, slope=False),
        "where": lambda: at(lambda x: pt.switch(x > 0, x * pt.log(x), 0.0), 0.0),
        "while": lambda: at(newton, 2.0),
        "stores": lambda: at(stored, np.array([3.0, 1.0])),
        "recursion": called,
    }


def of_jax() -> dict[str, Callable[[], Any]]:
    """Programs of jax.numpy, compiled; in double precision."""
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")

    jax.config.update("jax_enable_x64", True)
    return {
        "softplus": lambda: jax.jit(jax.grad(softplus_with(jnp.log, jnp.exp)))(1000.0),
        "tiny": lambda: jax.jit(lambda x: jnp.log(1 + x))(1e-18),
        "where": lambda: jax.jit(jax.grad(lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0)))(0.0),
        "while": lambda: jax.jit(jax.grad(newton))(2.0),
        "stores": lambda: jax.jit(jax.grad(stored))(jnp.array([3.0, 1.0])),
        "recursion": lambda: jax.jit(factorial)(1.0, 3.0),
    }


def of_torch() -> dict[str, Callable[[], Any]]:
    """Programs of torch, run eagerly: there is no graph for the recursion but the tape of one run."""
    torch: Any = import_module("torch")

    def slope(f: Callable[[Any], Any], value: Any) -> Any:
        x = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        f(x).backward()
        return x.grad.numpy()

    return {
        "softplus": lambda: slope(softplus_with(torch.log, torch.exp), 1000.0),
        "tiny": lambda: torch.log(1 + torch.tensor(1e-18, dtype=torch.float64)).item(),
        "where": lambda: slope(lambda x: torch.where(x > 0, x * torch.log(x), 0.0), 0.0),
        "while": lambda: slope(newton, 2.0),
        "stores": lambda: slope(stored, [3.0, 1.0]),
        "recursion": lambda: (
            torch.export.export(_recursion(), (torch.tensor(1.0), torch.tensor(3.0))).module()(
                torch.tensor(1.0), torch.tensor(4.0)
            )
            / 4
        ),
    }


def _recursion() -> Any:
    torch: Any = import_module("torch")

    class Recursion(torch.nn.Module):
        def forward(self, r: Any, x: Any) -> Any:
            return factorial(r, x)

    return Recursion()


def grad_of_a_result() -> str:
    """Of a result in PyTorch, after its backward pass; and of an input."""
    torch: Any = import_module("torch")
    a = torch.tensor(2.0, requires_grad=True)
    c = a * a
    c.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which says that c is no leaf
        return f"`{c.grad}`; `a.grad` is {a.grad.item():g}"


def callbacks(*, requires: bool, backward: bool) -> str:
    """Which graphs functorch's ``aot_function`` has handed to its callers."""
    torch: Any = import_module("torch")
    called: list[str] = []

    def told(name: str) -> Callable[..., Any]:
        return lambda graph, _example: (called.append(name), graph)[1]

    made = import_module("functorch.compile").aot_function(
        lambda x: (x * x).sum(), fw_compiler=told("forward"), bw_compiler=told("backward")
    )
    out = made(torch.ones(3, requires_grad=requires))
    if backward:
        out.backward()
    return ", ".join(called)


def names_of_rewrites(database: Any) -> set[str]:
    """Of a database of PyTensor's, and of those in it."""
    found: set[str] = set()
    for key, entries in getattr(database, "__db__", {}).items():
        found |= {str(key)} | {str(getattr(e, "name", "")) for e in entries}
        found = found.union(*(names_of_rewrites(e) for e in entries))
    return found


def lifts_of_shapes() -> str:
    """How many rewrites of PyTensor lift shapes, by their names."""
    names = names_of_rewrites(import_module("pytensor.compile.mode").optdb)
    return f"{sum(n.startswith('local_shape_lift') for n in names)} of {len(names)}"


def forked_from() -> str:
    """What PyTensor's own description says."""
    lines = str(importlib.metadata.metadata("pytensor")).splitlines()
    said = next(line for line in lines if line.startswith("PyTensor is a fork of"))
    return re.sub(r" <[^>]*>`__|`", "", said)


FACTS: dict[str, Callable[[], str]] = {
    "PyTorch: `c.grad` of a result `c`, after `c.backward()`": grad_of_a_result,
    "functorch: what `aot_function` calls back; inputs require no gradient": lambda: callbacks(
        requires=False, backward=False
    ),
    "the same; inputs require gradients": lambda: callbacks(requires=True, backward=False),
    "the same, after `backward()`": lambda: callbacks(requires=True, backward=True),
    "JAX: loops in `jax.lax`": lambda: ", ".join(
        n for n in dir(import_module("jax.lax")) if re.search("loop|^scan$", n)
    ),
    "PyTensor: where it comes from": forked_from,
    "PyTensor: what its default mode compiles by": lambda: (
        f"`{type(import_module('pytensor.compile.mode').get_default_mode().linker).__name__}`"
    ),
    "PyTensor: rewrites called `local_shape_lift…`": lifts_of_shapes,
}


def fact(ask: Callable[[], str]) -> str:
    """What a library says of itself; nothing where it is not installed."""
    try:
        return ask()
    except (ImportError, importlib.metadata.PackageNotFoundError):
        return ""


def answer(program: Callable[[], Any]) -> str:
    """What a program gives, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(program(), float)
    except Exception as error:  # noqa: BLE001 (whatever a library raises is its answer)
        return f"`{type(error).__name__}`"
    return "(" + ", ".join(f"{v:.3g}" for v in found) + ")" if found.ndim else f"{float(found):.3g}"


def main() -> None:
    """Ask every library and print the table."""
    makers = {"tensormagic": of_tensormagic, "pytensor": of_pytensor, "jax": of_jax, "torch": of_torch}
    columns: dict[str, dict[str, str]] = {}
    for library in LIBRARIES:
        try:
            programs = makers[library]()
        except ImportError:
            programs = {}
        columns[library] = {q: answer(programs[q]) if q in programs else "" for q in QUESTIONS}
    versions = ", ".join(
        f"{n} {importlib.metadata.version(n)}"
        for n in ("numpy", *(n for n in LIBRARIES[1:] if any(columns[n].values())))
    )
    machine = f"{platform.machine()}, Python {platform.python_version()}, {versions}"
    lines = [
        "# The same programs in four libraries",
        "",
        f"Made by `python benchmarks/comparison.py`, {dt.datetime.now(dt.UTC).date()}; {machine}.",
        "In double precision. Where a library gives no answer, the class of its error stands.",
        "",
        f"| | {' | '.join(LIBRARIES)} |",
        f"|---|{'---|' * len(LIBRARIES)}",
        *(f"| {text} | {' | '.join(columns[n][q] for n in LIBRARIES)} |" for q, text in QUESTIONS.items()),
        "",
        "What these libraries say of themselves (`docs/from-others.md` has the sentences):",
        "",
        "| asked | found |",
        "|---|---|",
        *(f"| {text} | {fact(ask)} |" for text, ask in FACTS.items()),
        "",
    ]
    print("\n".join(lines))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
