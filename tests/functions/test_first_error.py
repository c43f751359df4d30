"""Where several operations may fail, a call raises the error that comes first in the program: by both tiers, as Python does."""

import math

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config

CHECKS = {
    "raise": "if x[0] <= 0: raise ValueError('not positive')",
    "assert": "assert x[0] > 0, 'not positive'",
    "a key": "if x.sum() < 1: raise KeyError('small')",
    "a text of data": "if x[0] <= 0: raise ValueError(f'{len(x)} elements')",
    "an assumption": "x = tm.assume(x, x > 0)",
    "another check": "if not np.all(x > 0): raise RuntimeError('all')",
}
OPERATIONS = {
    "a root": "math.sqrt(x[0])",
    "a logarithm": "math.log(x[0])",
    "a division": "1 / float(x[0])",
    "a power": "float(x[0]) ** 0.5",
    "an index": "x[int(x[0])]",
    "a factor": "np.linalg.cholesky(np.diag(x)).sum()",
    "an inverse": "np.linalg.inv(np.diag(x)).sum()",
}
GIVEN = [np.array([1.0, 2.0]), np.array([-4.0, 1.0]), np.array([0.0, 0.0]), np.array([1.5, 3.0])]


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_first_error_is_raised(check, operation, before, tier, tmp_path):
    lines = [check, f"y = {operation}"]
    text = "\n    ".join(["def f(x):", *(lines if before else lines[::-1]), "return x * y"])
    (tmp_path / "first_error.py").write_text(text)
    space = {"np": np, "math": math, "tm": tm}
    exec(compile(text, str(tmp_path / "first_error.py"), "exec"), space)
    f = space["f"]
    with config.using(tier=tier):
        captured = tm.tensor(f)
        for x in GIVEN:
            assert ended(captured, x) == ended(f, x)


def ended(f, x):
    try:
        return np.round(f(x.copy()), 12).tolist()
    except Exception as error:  # noqa: BLE001 (whatever it is, it is compared)
        kind = next(c for c in type(error).__mro__ if not c.__module__.startswith("tensormagic"))
        return kind, str(error).partition("\n")[0]
