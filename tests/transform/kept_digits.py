"""How many bits the values of a text lack, or its slopes by an operand, beside the same text in many digits."""

import mpmath
import numpy as np

import tensormagic as tm


class Digits:
    """Functions of mpmath by NumPy's names; of a text's own numbers they are NumPy's."""

    pi, e = np.pi, np.e

    def __getattr__(self, name):
        exactly = {
            "arctan2": mpmath.atan2,
            "hypot": lambda a, b: mpmath.sqrt(a * a + b * b),
            "abs": abs,
            "sinc": lambda v: mpmath.sinc(mpmath.pi * v),
            "log2": lambda v: mpmath.log(v) / mpmath.log(2),
            "where": lambda condition, first, second: first if condition else second,
        }.get(name) or getattr(mpmath, name.replace("arc", "a"))
        plainly = getattr(np, name)

        def function(*given):
            plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)
            return mpmath.mpf(float(plainly(*given))) if plain else exactly(*given)

        return function


def columns(points):
    return tuple(np.array(c) for c in zip(*points, strict=True))


def number(text, operands=3):
    """The function of two or three operands; of three, each is read."""
    return eval("lambda x, y: " + text if operands == 2 else f"lambda x, y, z: {text} + 0 * (y + z)", {"np": np})


def lost(text, points, found, by=None):
    """The bits that each value lacks, or each slope; where the true one is 0 there are none to lack."""
    exactly = eval(f"lambda {', '.join('xyz'[: len(points[0])])}: {text}", {"np": Digits()})
    bits = []
    with mpmath.workdps(120):
        for point, value in zip(points, found, strict=True):
            at = [mpmath.mpf(v) for v in point]
            true = exactly(*at)
            if by is not None:
                step = at[by] * mpmath.mpf(10) ** -50
                ends = [exactly(*(v + s * step if k == by else v for k, v in enumerate(at))) for s in (1, -1)]
                true = (ends[0] - ends[1]) / (2 * step)
            if true:
                bits.append(float(mpmath.log(1 + abs(mpmath.mpf(float(value)) - true) / abs(true) * 2**53, 2)))
    return bits or [0.0]


def program(text, points, by=None):
    f = number(text, len(points[0]))
    return f if by is None else lambda *given: tm.grad(lambda *a: np.sum(f(*a)), argnums=by)(*given)


def lost_by_arrays(text, points, by=None):
    return lost(text, points, tm.tensor(program(text, points, by))(*columns(points)), by)


def lost_compiled(text, points, by=None):
    given = columns(points)
    return lost(text, points, tm.compile(program(text, points, by), *given)(*given), by)


def lost_by_numbers(form, text, points, by=None):
    """The same one by one, with operands of a class: float, np.float64, np.array."""
    f = number(text, len(points[0]))
    one = tm.tensor(f if by is None else lambda *given: tm.grad(f, argnums=by)(*given))
    return lost(text, points, [one(*map(form, p)) for p in points], by)
