# ruff: noqa: B018, SIM108 (as users write it)
"""A name that data leave unbound, alone in a ``try``: who catches the error goes on as in Python; ``try`` and NumPy's errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call
from tensormagic.ir.errors import CaptureError
from tests.functions.same_as_python import described, same

CALLS = [lambda v=v: (np.array(v),) for v in ([1.0, 2.0], [0.0, 1.0], [-1.0, 2.0])]


def returned(x):
    y = x * 2
    if x[0] > 0:
        del y
    try:
        return y
    except UnboundLocalError:
        return x


def assigned(x):
    y = 3.0
    if x[0] > 0:
        del y
    try:
        z = y
    except NameError:
        z = -1.0
    return z


def by_itself(x):
    if x[0] > 0:
        y = 1.0
    try:
        y
    except NameError:
        y = 0.0
    return y


def in_a_tuple(x):
    y = x
    if x[0] > 0:
        del y
    try:
        z = (y, 1)
    except NameError:
        z = (x * 0, 2)
    return z


def in_a_list_of_a_loop(x):
    y, w, r = x, 0.0, []
    for v in x:
        if v > 1.5:
            del y
            break
    for _ in range(2):
        try:
            r = [y]
        except UnboundLocalError:
            w += 1
    return r, w


def in_a_dictionary(x):
    y = x * 1
    if x[0] > 0:
        del y
    try:
        return {"y": y}
    except (KeyError, NameError):
        return {"y": x * 0}


def given_to_a_function(x):
    def five(_v):
        return 5.0

    y = x * 1
    if x[0] > 0:
        del y
    try:
        return five(y)
    except Exception:  # noqa: BLE001 (as users write it)
        return -1.0


def on_a_branch(x):
    y = x * 1
    if x[0] > 0:
        del y
    try:
        if x[1] > 1:
            r = y
        else:
            r = x
    except NameError:
        r = x * 3
    return r


def an_operand(x):
    if x[0] > 0:
        y = x * 2
    try:
        return y.sum()
    except UnboundLocalError:
        return 0.0


PROGRAMS = [
    returned,
    assigned,
    by_itself,
    in_a_tuple,
    in_a_list_of_a_loop,
    in_a_dictionary,
    given_to_a_function,
    on_a_branch,
    an_operand,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_who_catches_the_error_goes_on(program):
    same(program, *CALLS)


def test_derivatives_refuse_it_by_name():
    with pytest.raises(CaptureError, match="`try`"):
        tm.grad(lambda x: assigned(x) * x[0])(np.array([1.0, 2.0]))


BODIES = {
    "a square root": "try:\n  y = np.sqrt(x)\n except FloatingPointError:\n  y = x * 0\n return y",
    "a matrix": "try:\n  return np.linalg.cholesky(x[:2] * np.eye(2))\n except np.linalg.LinAlgError:\n  return x * 0",
    "an index": "try:\n  return x[int(x[0])]\n except IndexError:\n  return x.sum()",
    "a raise": "try:\n  if x[0] > 0:\n   raise ValueError('a')\n  return x\n except ValueError:\n  return x * 2",
    "a key": "d = {'a': x}\n try:\n  return d['b']\n except KeyError:\n  return d['a']",
    "anything": "try:\n  y = 1 / x\n except Exception:\n  y = x\n return y",
    "a cause": "try:\n  try:\n   y = 1 / x\n  except FloatingPointError as e:\n   raise ValueError('q') from e\n"
    " except ValueError:\n  y = x * 0\n return y",
    "a loop": "s = 0\n for v in x:\n  try:\n   s = s + np.log(v)\n  except FloatingPointError:\n   break\n return s",
    "a number of Python's": "try:\n  return 1 // int(x[0])\n except ZeroDivisionError:\n  return 0",
    "another try": "for k in range(3):\n  try:\n   return np.log(x - k)\n  except FloatingPointError:\n   x = np.abs(x) + 3\n return x",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["raise", "warn"])
@pytest.mark.parametrize("name", BODIES)
def test_errors_that_numpy_is_asked_for_outside_are_caught(name, how, tmp_path, monkeypatch):
    monkeypatch.setattr(first_call, "enabled", False)
    (tmp_path / "code.py").write_text(f"def f(x):\n {BODIES[name]}\n")
    space = {"np": np, "math": math}
    exec(compile((tmp_path / "code.py").read_text(), str(tmp_path / "code.py"), "exec"), space)
    for order in itertools.permutations(([1.0, 2.0], [0.0, 1.0], [-1.0, 4.0])):
        captured = tm.tensor(space["f"])
        for values in order:
            found = []
            for function in (space["f"], captured):
                before = np.seterr(all=how)
                try:
                    found.append(function(np.array(values)))
                except ArithmeticError as error:
                    found.append((type(error).__name__, str(error)))
                finally:
                    np.seterr(**before)
            assert repr(described([found[0]])) == repr(described([found[1]]))
