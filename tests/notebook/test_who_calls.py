"""What asks who calls it: warnings, log records and frames tell the user's line in cells, and captured functions leave it to Python."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import numpy as np
import pytest

import tensormagic as tm

CELL = """
import inspect, io, logging, sys, traceback, warnings
def k(x):
    log.warning("%s %.3f %r %d", x.sum(), x.mean(), x * 2, x[1])
    log.info(x)
    log.debug("%(a)s", {"a": x.max()})
    warnings.warn("two", stacklevel=2)
    warnings.warn(UserWarning(x.sum()))
    try: 1 / 0
    except ZeroDivisionError: log.exception("caught %s", x[0])
    frame = sys._getframe()
    return frame.f_code.co_name, inspect.stack()[0].function, traceback.extract_stack()[-1].name, inspect.currentframe().f_lineno
out = io.StringIO()
handler = logging.StreamHandler(out)
handler.setFormatter(logging.Formatter("%(funcName)s %(lineno)d %(levelname)s %(message)s"))
log = logging.Logger("own", 10)
log.addHandler(handler)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    names = k(x)
    warnings.warn("one")
    for i in range(2):
        if x.sum() > i:
            warnings.warn(f"{i} of {x.sum()}")
            log.error("in a loop %s", i)
text = [line.strip() for line in out.getvalue().splitlines() if "File" not in line]
places = [(str(w.message), w.category.__name__, w.lineno) for w in said]
"""


def _lower(told, by):
    return [(m, c, n - by) for m, c, n in told]


def test_cells_tell_the_users_lines(notebook):
    notebook.shell.user_ns["x"] = np.arange(3.0)
    found = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok(magic + CELL.replace("%(lineno)d ", ""))
        space = notebook.shell.user_ns
        told = space["places"]
        lines = _lower(told, told[2][2])  # the magic's own line is one more
        files = {w.filename for w in space["said"]}
        assert all("tensormagic" not in f for f in files), files
        found.append((space["names"][:3], [t for t in space["text"] if not set(t) <= set("~^ ")], lines))
    assert found[0] == found[1]


FUNCTIONS = """
import inspect, sys, traceback
def name(x):
    return x * 2, sys._getframe().f_code.co_name, inspect.currentframe().f_code.co_name, inspect.stack()[0].function

def stored(x):
    a = 1
    sys._getframe().f_locals["a"] = 5
    return x * a, sorted(inspect.currentframe().f_locals)

def within(x):
    def inner(y):
        a = 1
        frame = sys._getframe()
        frame.f_locals["a"] = 5
        return y * a, len(frame.f_locals)
    return inner(x * 3)

def in_a_loop(x):
    total = 0
    for i in range(3):
        if x.sum() > i:
            total = total + x * len(inspect.currentframe().f_locals)
    return total

def above(x):
    def inner(): return sys._getframe(1).f_locals["x"] * 2
    return inner()

def lines(x):
    return x, traceback.extract_stack()[-1].name, len(traceback.format_stack()[-1].splitlines()) > 0

def guarded(x):
    try:
        frame = inspect.currentframe()
    except Exception:
        return x
    return x * len(frame.f_code.co_varnames)
"""


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("name", ["name", "stored", "within", "in_a_loop", "above", "lines", "guarded"])
def test_functions_that_look_at_frames_are_pythons(name, tmp_path):
    path = tmp_path / f"frames_{name}.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function, x = getattr(module, name), np.arange(3.0)
    expected, found = function(x), tm.tensor(function)(x)
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, expected)), strict=True):
        assert type(one) is type(other)
        assert np.array_equal(one, other)


def test_why_is_said():
    def f(x):
        return x * len(sys._getframe().f_locals)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tm.tensor(f)(np.ones(2))
    assert "_getframe() is not captured" in str(said[0].message)
