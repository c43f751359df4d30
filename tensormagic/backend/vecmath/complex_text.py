"""Functions of complex numbers for kernels, as NumPy computes them, in the language of kernels.

Quotients go without overflow on the way, and branch; ``exp`` knows infinities, without a branch. A text may use those before it.
"""

from __future__ import annotations

CONSTANTS = {
    "SCALED": 700.0,  # beyond this exp may overflow where its product with a cosine does not
    "LARGE": 2.0**1020,  # beyond this a length may overflow
    "SMALL": 2.0**-900,  # below this the square of a root has too few digits
    "ROOT_UP": 2.0**400,
    "ROOT_DOWN": 2.0**-200,
    "LN2": 0.6931471805599453,
}

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
    # near 1 the logarithm of a length is that of what its square differs by from 1, which is added up of exact products
    "complex_log": """
def complex_log(x):
    a = abs(x.real)
    b = abs(x.imag)
    longer = a if a > b else b
    shorter = b if a > b else a
    if longer > 0.5 and longer < 1.5 and shorter < 1.5:
        p = longer * longer
        q = shorter * shorter
        e = fused(longer, longer, -p)
        f = fused(shorter, shorter, -q)
        rest = e + f
        part = rest - e
        least = (e - (rest - part)) + (f - part)
        first = p - 1.0
        total = first + q
        part = total - first
        least += (first - (total - part)) + (q - part)
        whole = total + rest
        part = whole - total
        least += (total - (whole - part)) + (rest - part)
        length = 0.5 * log1p(whole + least)
    elif longer > LARGE and longer < np.inf and shorter < np.inf:
        length = log(hypot(a * 0.5, b * 0.5)) + LN2
    elif longer < SMALL and longer > 0.0:
        length = log(hypot(a * ROOT_UP, b * ROOT_UP)) - 400.0 * LN2
    else:
        length = log(hypot(a, b))
    return complex(length, arctan2(x.imag, x.real))
""",
    "with_sign": """
def with_sign(number, of):
    return -number if of < 0.0 or (of == 0.0 and 1.0 / of < 0.0) else number
""",
    "complex_sqrt": """
def complex_sqrt(x):
    a = x.real
    b = x.imag
    if a == 0.0 and b == 0.0:
        return complex(0.0, b)
    if abs(b) == np.inf:
        return complex(np.inf, b)
    if a == np.inf:
        return complex(a, with_sign(0.0, b) if b == b else b)
    if a == -np.inf:
        return complex(0.0 if b == b else b, with_sign(np.inf, b))
    longer = abs(a) if abs(a) > abs(b) else abs(b)
    scale = 1.0
    if longer > LARGE:
        a *= 0.0625
        b *= 0.0625
        scale = 4.0
    elif longer < SMALL:
        a *= ROOT_UP
        b *= ROOT_UP
        scale = ROOT_DOWN
    root = sqrt((abs(a) + hypot(a, b)) * 0.5)
    other = b / (2.0 * root)
    if a >= 0.0:
        return complex(root * scale, other * scale)
    return complex(abs(other) * scale, with_sign(root * scale, b))
""",
    # products as C has them: a factor that is infinite somewhere stays so
    "complex_factors": """
def complex_factors(x, y):
    a = x.real
    b = x.imag
    c = y.real
    d = y.imag
    real = a * c - b * d
    imag = a * d + b * c
    if real != real and imag != imag:
        left = abs(a) == np.inf or abs(b) == np.inf
        right = abs(c) == np.inf or abs(d) == np.inf
        if left:
            a = with_sign(1.0 if abs(a) == np.inf else 0.0, a)
            b = with_sign(1.0 if abs(b) == np.inf else 0.0, b)
            c = c if c == c else with_sign(0.0, c)
            d = d if d == d else with_sign(0.0, d)
        if right:
            c = with_sign(1.0 if abs(c) == np.inf else 0.0, c)
            d = with_sign(1.0 if abs(d) == np.inf else 0.0, d)
            a = a if a == a else with_sign(0.0, a)
            b = b if b == b else with_sign(0.0, b)
        if left or right:
            real = np.inf * (a * c - b * d)
            imag = np.inf * (a * d + b * c)
    return complex(real, imag)
""",
    # small whole powers by products, each rounded, as NumPy has them; others by the logarithm
    "complex_power": """
def complex_power(x, y):
    real = y.real
    if y.imag == 0.0 and real == 0.0:
        return complex(1.0, 0.0)
    if x.real == 0.0 and x.imag == 0.0:
        return complex(0.0, 0.0) if real > 0.0 else complex(np.nan, np.nan)
    if y.imag == 0.0:
        if abs(real) < 100.0 and np.float64(np.int64(real)) == real:
            if real == 1.0:
                return x
            a = x.real
            b = x.imag
            if real == 2.0 or real == 3.0:
                c = a * a - b * b
                d = a * b + b * a
                return complex(c, d) if real == 2.0 else complex(a * c - b * d, a * d + b * c)
            left = np.int64(abs(real))
            c = 1.0
            d = 0.0
            while True:
                if left % 2 == 1:
                    e = c * a - d * b
                    d = c * b + d * a
                    c = e
                left = left // 2
                if left == 0:
                    break
                e = a * a - b * b
                b = a * b + b * a
                a = e
            return complex(c, d) if real > 0.0 else complex_divide(complex(1.0, 0.0), complex(c, d))
    return complex_exp(complex_factors(y, complex_log(x)))
""",
}
"""The text of each by the name that kernels call it by."""
