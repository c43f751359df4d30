"""PTX as instructions: registers, labels, parameters, shared memory and tables. Runs nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": np.dtype("bool"),
}
_VARIABLE = re.compile(
    r"\.(shared|global|const|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?(?:\s*=\s*\{([^}]*)\})?\s*;"
)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)[^{]*\{(.*)\}", re.DOTALL)
_PARAMETER = re.compile(r"\.param\s+\.(\w+)\s+([\w$]+)")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+)<(\d+)>")
_REGISTER = re.compile(
    r"\.reg\s+\.(\w+)\s+(%\w+)\s*;"
)  # of a block: the same name in another block is of the same type
_STATEMENT = re.compile(r"(?:([$\w]+):)|(?:(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*([^;]*);)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    name, modifiers
        What it does: ``ld`` and ``global``, ``nc``, ``f32``.
    operands
        Registers, numbers, addresses, as they are written.
    guard, negated
        The truth register under which it runs, and whether it runs where that is false.
    text
        All of it.
    """

    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    negated: bool
    text: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """The last type that it names."""
        return DTYPES[self.modifiers[-1]]

    @property
    def width(self) -> int:
        """How many elements it loads or stores."""
        return 4 if "v4" in self.modifiers else 2 if "v2" in self.modifiers else 1


@dataclass
class Program:
    """One kernel.

    Parameters
    ----------
    name
        The entry.
    parameters
        Names and dtypes, in order.
    registers
        Their dtypes.
    shared, shared_bytes
        Where the variables in shared memory begin, and how many bytes they take.
    tables
        Constants in global memory.
    code, labels
        Instructions, and the numbers of those that labels stand before.
    """

    name: str
    parameters: dict[str, np.dtype[Any]]
    registers: dict[str, np.dtype[Any]] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    tables: dict[str, np.ndarray] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def parse(text: str) -> Program:
    """The kernel in a text that has one, and no functions beside it."""
    text = re.sub(r"//[^\n]*", "", text)
    found = _ENTRY.search(text)
    if found is None:
        raise ValueError("the text has no kernel")
    name, parameters, body = found.groups()
    program = Program(name, {n: DTYPES[kind] for kind, n in _PARAMETER.findall(parameters)})
    _variables(program, text)
    for kind, stem, count in _REGISTERS.findall(body):
        program.registers.update((f"{stem}{k}", DTYPES[kind]) for k in range(int(count)))
    program.registers.update((name, DTYPES[kind]) for kind, name in _REGISTER.findall(body))
    body = _VARIABLE.sub("", re.sub(r"\.reg[^;]*;|\.pragma[^;]*;", "", body))
    for label, negated, guard, operation, operands in _STATEMENT.findall(body):
        if label:
            program.labels[label] = len(program.code)
            continue
        opcode, *modifiers = operation.split(".")
        shown = " ".join(f"{operation} {operands}".split())
        program.code.append(Instruction(opcode, tuple(modifiers), _operands(operands), guard, bool(negated), shown))
    return program


def _variables(program: Program, text: str) -> None:
    dynamic: list[str] = []
    for space, alignment, kind, name, count, initial in _VARIABLE.findall(text):
        size = DTYPES[kind].itemsize * int(count or 1)
        if space in {"global", "const"}:
            values = [int(v, 0) for v in initial.split(",")] if initial else []
            table = np.array(values, DTYPES[kind]).view(np.uint8) if values else np.zeros(size, np.uint8)
            program.tables[name] = table
        elif space == "shared" and re.search(rf"\b{re.escape(name)}\[\]", text):
            dynamic.append(name)
        elif space == "shared" and name not in program.shared:
            step = max(int(alignment or 1), 16)
            program.shared[name] = -(-program.shared_bytes // step) * step
            program.shared_bytes = program.shared[name] + size
    program.shared_bytes = -(-program.shared_bytes // 16) * 16
    program.shared.update(dict.fromkeys(dynamic, program.shared_bytes))


def _operands(text: str) -> tuple[str, ...]:
    """Operands at commas that are in no brackets."""
    found = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text)
    return tuple(found)
