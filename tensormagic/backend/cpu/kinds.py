"""The kinds of numbers in kernels, and conversions between them, as LLVM's language. The rules are Numba's.

A kind is NumPy's name of a dtype, or a `Buffer`. What the rules do not say raises `UnknownTextError`: Numba itself then
reads the kernel.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MOST_BUFFERS = 64  # how many of a kernel's buffers are told apart


class UnknownTextError(Exception):
    """Something in a kernel's text that this compiler does not know."""


class Buffer(NamedTuple):
    """The elements of one array: their kind, and which buffer of the kernel it is."""

    element: str
    number: int


Kind = str | Buffer


class Value(NamedTuple):
    """A value: its kind, how LLVM's language names it, and the number that it is where that is known."""

    kind: Kind
    text: str
    number: int | float | None = None


_INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
KINDS = {
    "bool": "i1",
    **{name: f"i{bits}" for name, bits in _INTEGERS.items()},
    "float32": "float",
    "float64": "double",
    "complex128": "{double, double}",
}
_NARROW = frozenset({"bool", "int8", "int16", "uint8"})  # every number of which is one of float32
FLOATS = frozenset({"float32", "float64"})


def is_integer(kind: Kind) -> bool:
    """Return whether numbers of a kind are whole; truth values are not."""
    return kind in _INTEGERS


def is_signed(kind: Kind) -> bool:
    """Return whether an integer's first bit is its sign."""
    return str(kind).startswith("int")


def llvm(kind: Kind) -> str:
    """Return LLVM's type of a value."""
    return "ptr" if isinstance(kind, Buffer) else KINDS[kind]


def in_memory(kind: str) -> str:
    """Return LLVM's type of an element in memory."""
    return "i8" if kind == "bool" else KINDS[kind]


def _with_floats(a: Kind, b: Kind) -> str:
    """Return the kind of two numbers, one of which is no integer."""
    if "complex128" in {a, b}:
        return "complex128"
    if "float64" in {a, b}:
        return "float64"
    return "float32" if {a, b} <= _NARROW | {"float32"} else "float64"


def _numbers(a: Kind, b: Kind) -> None:
    if isinstance(a, Buffer) or isinstance(b, Buffer):
        raise UnknownTextError("arithmetic of arrays")


def arithmetic(a: Kind, b: Kind) -> str:
    """Return the kind of a sum: integers widen to 64 bits, signed where one is."""
    _numbers(a, b)
    if {a, b} & (FLOATS | {"complex128"}):
        return _with_floats(a, b)
    return "uint64" if not any(is_signed(k) or k == "bool" for k in (a, b)) else "int64"


def comparison(a: Kind, b: Kind) -> str:
    """Return the kind in which two numbers are compared."""
    _numbers(a, b)
    if a == b:
        return str(a)
    if {a, b} & (FLOATS | {"complex128"}):
        return _with_floats(a, b)
    if is_integer(a) and is_integer(b) and is_signed(a) != is_signed(b) and "uint64" in {a, b}:
        return "float64"
    both = arithmetic(a, b)
    return both if is_integer(a) and is_integer(b) else str(b if a == "bool" else a)


def unified(a: Kind, b: Kind) -> Kind:
    """Return the kind of a name that is given values of both."""
    if a == b:
        return a
    if isinstance(a, Buffer) or isinstance(b, Buffer) or "bool" in {a, b}:
        raise UnknownTextError(f"a name for {a} and {b}")
    if is_integer(a) and is_integer(b) and "int64" not in {a, b}:
        if is_signed(a) != is_signed(b):
            raise UnknownTextError(f"a name for {a} and {b}")
        return max(a, b, key=_INTEGERS.__getitem__)
    return comparison(a, b)


def real(number: float, kind: str) -> Value:
    """Return a float as a constant: rounded to its kind, and written as LLVM does, by the bits of a double."""
    if kind == "float32":
        try:
            (number,) = struct.unpack("<f", struct.pack("<f", number))
        except OverflowError:
            number = float("inf") if number > 0 else -float("inf")
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    return Value(kind, f"0x{bits:016X}", number)


def integer(number: int, kind: str = "int64") -> Value:
    """Return a whole number as a constant: the low bits of what is too large."""
    bits = _INTEGERS[kind]
    number %= 1 << bits
    if is_signed(kind) and number >> (bits - 1):
        number -= 1 << bits
    return Value(kind, str(number), number)


def truth(value: bool) -> Value:
    """Return True or False as a constant."""
    return Value("bool", "true" if value else "false", int(value))


class Writer:
    """The instructions of one function: lines, names that nothing else has, and what the module has to declare."""

    def __init__(self, declared: dict[str, str]) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.declared = declared
        self.is_open = True  # whether the last block has no end yet
        self._count = 0

    def fresh(self, stem: str = "v") -> str:
        """Return a new name."""
        self._count += 1
        return f"{stem}{self._count}"

    def new(self, kind: Kind, instruction: str) -> Value:
        """Return the value of an instruction."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(kind, name)

    def do(self, instruction: str) -> None:
        """Append an instruction without a value."""
        self.lines.append(f"  {instruction}")

    def room(self, kind: str, rest: str = "") -> str:
        """Allocate memory on the stack for LLVM's type ``kind``, and return its name."""
        name = f"%{self.fresh('room')}"
        self.entry.append(f"  {name} = alloca {kind}{rest}")
        return name

    def jump(self, label: str, rest: str = "") -> None:
        """End the block, where it has no end yet."""
        if self.is_open:
            self.do(f"br label %{label}{rest}")
        self.is_open = False

    def branch(self, truth: Value, yes: str, no: str) -> None:
        """End the block by a choice."""
        self.do(f"br i1 {truth.text}, label %{yes}, label %{no}")
        self.is_open = False

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.jump(label)
        self.lines.append(f"{label}:")
        self.is_open = True

    def call(self, kind: str, name: str, *values: Value, flags: str = "") -> Value:
        """Call a function, which is declared."""
        kinds = [llvm(v.kind) for v in values]
        self.declared.setdefault(name, f"declare {llvm(kind)} @{name}({', '.join(kinds)})")
        given = ", ".join(f"{k} {v.text}" for k, v in zip(kinds, values, strict=True))
        return self.new(kind, f"call {flags}{llvm(kind)} @{name}({given})")

    def intrinsic(self, name: str, *values: Value, flags: str = "") -> Value:
        """Call one of LLVM's functions of floats."""
        kind = str(values[0].kind)
        return self.call(kind, f"llvm.{name}.{'f32' if kind == 'float32' else 'f64'}", *values, flags=flags)

    # conversions ----------------------------------------------------------------------------------------------------

    def cast(self, value: Value, kind: Kind) -> Value:
        """Return the value in another kind."""
        if value.kind == kind:
            return value
        if isinstance(value.kind, Buffer) or isinstance(kind, Buffer) or value.kind == "complex128":
            raise UnknownTextError(f"{value.kind} as {kind}")
        if kind == "complex128":
            return self.complex(self.cast(value, "float64"), real(0.0, "float64"))
        known = None if value.number is None else _known(value.number, kind)
        if known is not None:
            return known
        if kind == "bool":
            return self.truth(value)
        return self.new(kind, f"{_conversion(value.kind, kind)} {llvm(value.kind)} {value.text} to {llvm(kind)}")

    def truth(self, value: Value) -> Value:
        """Return whether a number is not zero."""
        kind = value.kind
        if kind == "bool":
            return value
        if kind in FLOATS:
            return self.new("bool", f"fcmp une {llvm(kind)} {value.text}, 0.0")
        if not is_integer(kind):
            raise UnknownTextError(f"the truth of {kind}")
        return self.new("bool", f"icmp ne {llvm(kind)} {value.text}, 0")

    def complex(self, re: Value, im: Value) -> Value:
        """Return a complex number of its parts."""
        kind = KINDS["complex128"]
        half = self.new("complex128", f"insertvalue {kind} undef, double {self.cast(re, 'float64').text}, 0")
        return self.new("complex128", f"insertvalue {kind} {half.text}, double {self.cast(im, 'float64').text}, 1")

    def part(self, value: Value, number: int) -> Value:
        """Return the real part of a complex number, or the imaginary one."""
        if value.kind != "complex128":
            raise UnknownTextError(f"parts of {value.kind}")
        return self.new("float64", f"extractvalue {KINDS['complex128']} {value.text}, {number}")

    def negated(self, value: Value) -> Value:
        """Return the negative of a float."""
        if value.number is not None:
            return real(-value.number, str(value.kind))
        return self.new(value.kind, f"fneg {llvm(value.kind)} {value.text}")


def _known(number: float, kind: str) -> Value | None:
    """Return a constant in another kind, or None where that is left to the machine."""
    if kind == "bool":
        return truth(number != 0)
    if kind in FLOATS:
        return real(float(number), kind) if abs(number) <= 1 << 53 or isinstance(number, float) else None
    return integer(number, kind) if isinstance(number, int) else None


def _conversion(before: str, after: str) -> str:
    """Return LLVM's instruction for a conversion of a value that is known only at run time."""
    if before in FLOATS:
        if after in FLOATS:
            return "fpext" if after == "float64" else "fptrunc"
        if not is_signed(after):
            raise UnknownTextError(f"{before} as {after}")
        return "fptosi"
    if after in FLOATS:
        return "sitofp" if is_signed(before) else "uitofp"
    bits, wanted = _INTEGERS.get(before, 1), _INTEGERS[after]
    if bits == wanted:
        return "bitcast"
    return "trunc" if wanted < bits else "sext" if is_signed(before) else "zext"
