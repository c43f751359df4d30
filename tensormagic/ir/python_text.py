"""Sizes as Python expressions."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.ir.size import Apply, Atom, Size


def python_text(size: Size, name: Callable[[Atom], str]) -> str:
    """Return a size as a Python expression; ``name`` gives the name of each symbol and node."""
    if isinstance(size, int):
        return str(size)

    def named(a: Atom) -> str:
        if not isinstance(a, Apply):
            return name(a)
        left, right = python_text(a.left, name), python_text(a.right, name)
        infix = {"floordiv": "//", "mod": "%"}.get(a.function)
        return f"(({left}) {infix} ({right}))" if infix else f"{a.function}({left}, {right})"

    terms: list[str] = []
    for monomial, coefficient in size.terms:
        factors = [named(a) for a, power in monomial for _ in range(power)]
        terms.append(" * ".join([str(coefficient), *factors] if coefficient != 1 or not factors else factors))
    return " + ".join(terms)


def bracketed(text: str) -> str:
    """Return an expression in brackets, unless it is a name or a number."""
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
