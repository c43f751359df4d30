"""Remainders of floats for kernels, and quotients that are rounded down, with NumPy's bits, in the language of kernels.

The remainder of a division is a float, however large the quotient is. A step takes as much of the quotient as a product with an exact
error allows; where that could overflow or underflow, numbers are halved and subtracted, which is exact everywhere.
"""

from __future__ import annotations

CONSTANTS = {"FAR": 2.0**900, "NEAR": 2.0**-900, "STEP_UP": 2.0**50, "STEP_DOWN": 2.0**-50}

_TEXT = """
def fmod(x: float, y: float):
    a = abs(x)
    b = abs(y)
    if a < b:
        return x
    if not (a < np.inf and b > 0.0):
        return x * y / (x * y)
    t = b
    if a < FAR and b > NEAR:
        while a >= b:
            t = b
            while t < a * STEP_DOWN:
                t = t * STEP_UP
            q = trunc(a / t)
            a = (a - q * t) - lost(q, t)
            if a < 0.0:
                a = a + t
    else:
        while t <= a * 0.5:
            t = t * 2.0
        while t > b:
            if a >= t:
                a = a - t
            t = t * 0.5
        if a >= b:
            a = a - b
    return copysign(a, x)

def remainder(x: float, y: float):
    m = fmod(x, y)
    if m == 0.0:
        return copysign(0.0, y)
    if (y < 0.0) != (m < 0.0):
        m = m + y
    return m

def floor_divide(x: float, y: float):
    if y == 0.0:
        return x / y
    m = fmod(x, y)
    d = (x - m) / y
    if m != 0.0 and (y < 0.0) != (m < 0.0):
        d = d - 1.0
    if d == 0.0:
        return copysign(0.0, x / y)
    f = floor(d)
    return f + 1.0 if d - f > 0.5 else f
"""
TEXTS = {text.partition("(")[0]: f"def {text}" for text in _TEXT.split("def ")[1:]}
"""The text of each by the name that kernels call it by; a text may use those before it."""
