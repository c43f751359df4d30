"""Matrix products as NumPy code writes them: which operand is transposed, and which comes first."""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.ops.contract import split

# by the letters of both operands and of the result: the text of the product
_PRODUCTS = {
    "ab,b->a": "{0} @ {1}", "ab,bc->ac": "{0} @ {1}", "a,a->": "{0} @ {1}", "a,ab->b": "{0} @ {1}",
    "ab,a->b": "{0}.T @ {1}", "ab,ac->bc": "{0}.T @ {1}", "ab,cb->ac": "{0} @ {1}.T", "a,b->ab": "outer({0}, {1})",
    "a,b->ba": "outer({1}, {0})", "ab,ac->cb": "{1}.T @ {0}", "ab,ca->cb": "{1} @ {0}", "a,ba->b": "{1} @ {0}",
}  # fmt: skip


def product(subscripts: str, args: Sequence[str]) -> str:
    """Return the text of a contraction of two operands: a matrix product if it is one, else ``einsum``.

    >>> product("ij,ik->jk", ["X", "r"]), product("ij,jk->ik", ["X", "W"])
    ('X.T @ r', 'X @ W')
    """
    (left, right), out = split(subscripts)
    letters: dict[str, str] = {}
    for letter in (*left, *right):
        letters.setdefault(letter, chr(ord("a") + len(letters)))
    key = "{},{}->{}".format(*("".join(letters[c] for c in part) for part in (left, right, out)))
    pattern = _PRODUCTS.get(key)
    return pattern.format(*args) if pattern else f"einsum('{key}', {', '.join(args)})"
