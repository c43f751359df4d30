"""Functions of complex numbers for kernels, as NumPy computes them, in the language of kernels.

Quotients go without overflow on the way, and branch; ``exp`` knows infinities, without a branch.
"""

from __future__ import annotations

__all__ = ["CONSTANTS", "TEXTS"]

CONSTANTS = {"SCALED": 700.0}  # beyond this exp may overflow where its product with a cosine does not

TEXTS = {
    # as NumPy's vector loops do; its loops over numbers round each product
    "complex_multiply": """
def complex_multiply(x, y):
    return complex(fused(x.real, y.real, -(x.imag * y.imag)), fused(x.real, y.imag, x.imag * y.real))
""",
    "complex_divide": """
def complex_divide(x, y):
    a = x.real
    b = x.imag
    c = y.real
    d = y.imag
    if abs(c) >= abs(d):
        if c == 0 and d == 0:
            return complex(a / abs(c), b / abs(c))
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return complex((a + b * ratio) * scale, (b - a * ratio) * scale)
    ratio = c / d
    scale = 1.0 / (d + c * ratio)
    return complex((a * ratio + b) * scale, (b * ratio - a) * scale)
""",
    "complex_reciprocal": """
def complex_reciprocal(x):
    a = x.real
    b = x.imag
    if abs(b) <= abs(a):
        ratio = b / a
        length = a + b * ratio
        return complex(1.0 / length, -ratio / length)
    ratio = a / b
    length = a * ratio + b
    return complex(ratio / length, -1.0 / length)
""",
    # without a branch, so that loops of it become vector code; of large numbers in two factors
    "complex_exp": """
def complex_exp(x):
    a = x.real
    b = x.imag
    large = not abs(a) < SCALED
    scale = exp(a * 0.5 if large else a)
    again = scale if large else 1.0
    real = (scale * cos(b)) * again
    imag = (scale * sin(b)) * again
    finite = abs(b) < np.inf
    end = 0.0 if a == -np.inf else np.nan
    real = real if finite else (a if a == np.inf else end)
    imag = (imag if b != 0 else b) if finite else end
    return complex(real, imag)
""",
}
"""The text of each by the name that kernels call it by."""
