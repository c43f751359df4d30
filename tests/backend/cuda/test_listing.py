"""Kernels for a GPU, printed to be read, on a machine without one."""

import ast
import re

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.backend.cuda.kernels.listing import device_source


def softmax_rows(x, w):
    z = np.exp(x * w)
    return z / z.sum(1, keepdims=True)


def test_the_text_says_what_is_launched_with_what():
    x = tm.tensor(np.ones((40, 3)))
    text = np.exp(x + 1).code("cuda")
    assert re.search(r"^# .*blocks of \d+ threads", text)
    assert "float64[" in text
    assert re.search(r"^def kernel\(", text, re.MULTILINE)
    assert "test_listing.py line" in text  # whose line each line of the kernel comes from


def test_every_kernel_of_a_fold_is_there_and_what_has_none_is_named():
    x = tm.tensor(np.ones((40, 3)))
    text = (softmax_rows(x, 2.0).sum() + np.sort(x[0])[1]).code("cuda")
    assert text.count("blocks of") >= 3
    assert "# sort: by the library of the GPU" in text
    compiled = [part for part in text.split("\n\n") if part.startswith("# ") and "def " in part]
    assert all("# called with " in part for part in compiled)


def listed(function, *types: str) -> str:
    return device_source(session.executable(tm.trace(function, *types)).graph)


def test_the_kernels_of_loops_are_there():
    """The one that runs all of it, and those of an iteration; what has neither is named."""

    def decay(x):
        while x.sum() > 1:
            x = x * 0.5
        return x

    def told(x):
        while x.sum() < 50:
            x = x + 1
            print(x.sum())
        return x

    text = listed(decay, "float64[n]")
    alone, _, launched = text.partition("# while: else an iteration is these launches")
    assert "# while: one thread runs all of it" in alone
    assert "while True:" in alone
    assert launched.count("def kernel(") >= 3
    assert "a flag that says whether it is to run" in launched
    ast.parse(text)
    assert listed(told, "float64[n]").startswith("# while: by the library of the GPU, or else by NumPy on the host")


def test_the_text_is_python():
    x = tm.tensor(np.ones((40, 3)))
    for value in (np.exp(x), x.sum(0), softmax_rows(x, x), x.T + 1, np.cumsum(x, 0)):
        ast.parse(value.code("cuda"))


def test_other_targets_are_refused_by_name():
    with pytest.raises(ValueError, match="'cpu', 'cuda' and 'numpy', not for 'tpu'"):
        tm.tensor(np.ones(3)).code("tpu")
