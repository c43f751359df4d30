"""The text of one CUDA kernel while it is printed: parameters, names, constants and sizes, and the finished function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.backend.cuda.kernels.launch import (
    Array,
    Count,
    Fault,
    Launch,
    Number,
    Parameter,
    Scratch,
    UnsupportedError,
)
from tensormagic.backend.printing.kernel_text import KernelText, Line, Local, float_literal, shown_names
from tensormagic.ir import site
from tensormagic.ir.node import Node
from tensormagic.ir.size import Apply, Size, atom, atoms

_PLAIN = frozenset({0.0, 0.5, 1.0, 2.0, 3.0, 4.0})


@dataclass
class CudaText(KernelText):
    """A kernel that is being printed: its parameters, the functions that it calls, and its lines."""

    parameters: list[Parameter] = field(default_factory=list)
    own: list[str] = field(default_factory=list)  # names of the parameters
    written: set[str] = field(default_factory=set)
    private: dict[Node, Size] = field(
        default_factory=dict
    )  # arrays shared only by this kernel's launches, with their sizes
    functions: list[list[Line]] = field(default_factory=list)

    def parameter(self, key: Any, prefix: str, parameter: Parameter) -> str:
        """Return the name of a parameter, added if it is new."""
        name = self.names.get(key)
        if name is None:
            self.parameters.append(parameter)
            name = self.names[key] = f"{prefix}{len(self.parameters)}"
            self.own.append(name)
        return name

    def array(self, node: Node) -> str:
        """Return the name of the array that holds a node."""
        owner = self.memory.owner(node)
        if owner in self.private:
            return self.parameter(owner, "a", Scratch(owner, self.private[owner], owner.type.dtype.name, False))
        return self.parameter(owner, "a", Array(owner, False))

    def room(self, key: Any, count: Size, dtype: str) -> str:
        """Return the name of a scratch array."""
        return self.parameter(key, "s", Scratch(key, count, dtype, False))

    def store(self, name: str) -> str:
        """Return the name of an array, and mark it as written."""
        self.written.add(name)
        return name

    def leave(self, fault: Any, *values: str) -> list[str]:
        """Return statements that set the fault flag."""
        del fault, values
        name = self.store(self.parameter("fault", "f", Fault()))
        return [f"{name}[0] = 1"]

    def _atom(self, a: Any) -> str:
        if isinstance(a, Local) or (isinstance(a, Apply) and _has_local(a)):
            return super()._atom(a)
        key = ("size", a) if isinstance(a, Node) else a  # the number of a node may also be read from an array
        return self.parameter(key, "n", Count(atom(a)))

    def number(self, value: Any) -> str:
        """Return the text of a constant: a literal if it is simple, else a parameter."""
        dtype = value.dtype
        if dtype.kind == "b":
            return "True" if value else "False"
        if dtype.kind == "c":
            return f"complex({self.number(value.real)}, {self.number(value.imag)})"
        if dtype.kind in "iu" and -(2**63) <= int(value) < 2**63:
            return str(int(value)) if dtype == np.int64 else f"np.{dtype.name}({int(value)})"
        if dtype.kind == "f" and (abs(float(value)) in _PLAIN or not np.isfinite(value)):
            literal = float_literal(float(value))
            return literal if dtype == np.float64 else f"np.{dtype.name}({literal})"
        return self.parameter(("number", dtype.name, value.tobytes()), "c", Number(value))

    def constant(self, number: int) -> str:
        """Raise: kernels hold no addresses."""
        raise UnsupportedError(f"the address {number}")

    def launch(self, name: str, blocks: Size, threads: int, names: Mapping[Node, str], **more: Any) -> Launch:
        """Return the launch of the whole text, with ``lines`` as the kernel's body."""
        head: Line = (f"def kernel({', '.join(self.own)}):", None)
        lines = [line for part in self.functions for line in (*part, ("", None))]
        lines += [head, *((f"    {text}", node) for text, node in [*self.head, *self.lines] or [("pass", None)])]
        shown = shown_names(self.names, names, "\n".join(text for text, _ in lines))
        pattern = re.compile(r"\b(" + "|".join(map(re.escape, shown)) + r")\b") if shown else None

        def readable(line: Line) -> str:
            text = pattern.sub(lambda m: shown[m[1]], line[0]) if pattern else line[0]
            places = site.of(line[1]) if line[1] is not None else ()
            return f"{text}  # {places[0]}\n" if places else f"{text}\n"

        parameters = tuple(self._noted(p, n) for p, n in zip(self.parameters, self.own, strict=True))
        return Launch(
            name,
            "".join(f"{text}\n" for text, _ in lines),
            "".join(map(readable, lines)),
            parameters,
            blocks,
            threads,
            origins=tuple(node for _, node in lines),
            **more,
        )

    def _noted(self, parameter: Parameter, name: str) -> Parameter:
        if name not in self.written:
            return parameter
        if isinstance(parameter, Array):
            return Array(parameter.node, True)
        if isinstance(parameter, Scratch):
            return Scratch(parameter.key, parameter.count, parameter.dtype, True)
        return parameter


def _has_local(a: Apply) -> bool:
    """Return whether a size mentions a variable of the kernel; the host computes other sizes."""
    return any(
        isinstance(b, Local) or (isinstance(b, Apply) and _has_local(b)) for s in (a.left, a.right) for b in atoms(s)
    )


def called(name: str, arguments: Sequence[str], body: Sequence[Line], results: Sequence[str]) -> list[Line]:
    """Return the lines of a function that a kernel calls."""
    ends = [(f"    return {', '.join(results)}", None)] if results else []
    return [(f"def {name}({', '.join(arguments)}):", None), *((f"    {t}", n) for t, n in body), *ends]
