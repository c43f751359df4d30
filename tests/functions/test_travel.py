"""Made functions in other processes: pickled by name where a module has them, else by their function and options."""

import copy
import linecache
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions import travel

X = np.arange(3.0)

MODULE = """
import numpy as np
import tensormagic as tm

def plain(x):
    return (x ** 3).sum()

slope = tm.grad(plain)
bend = tm.hessian(plain)
rows = tm.vmap(plain)
kept = tm.grad(tm.checkpoint(plain))
sparse = tm.jacobian(lambda x: x ** 2, sparse=True)

@tm.tensor
def decorated(x):
    return np.sin(x).sum()

@tm.tensor(math="exact")
def with_options(x, scale=2.0):
    return (x * scale).sum()

@tm.grad
@tm.tensor
def twice_decorated(x):
    return (x ** 2).sum()

@tm.tensor
def recursive(n, r):
    return r if n <= 1 else recursive(n - 1, r * n)

compiled = tm.compile(plain, "float64[n]")

class Model:
    def __init__(self, scale):
        self.scale = scale

    @tm.tensor
    def apply(self, x):
        return (x * self.scale).sum()

bound = Model(2.0).apply
by_hand = tm.grad(plain, argnums=(0,))
x = np.arange(3.0)
names = "slope bend decorated with_options twice_decorated compiled bound kept by_hand".split()
calls = {name: (globals()[name], (x,)) for name in names}
calls["rows"] = rows, (np.ones((2, 3)),)
calls["recursive"] = recursive, (4.0, 1.0)
calls["method"] = Model.apply, (Model(3.0), x)
"""

SCRIPT = (
    MODULE
    + """
import multiprocessing, pickle, sys
from concurrent.futures import ProcessPoolExecutor

def call(function, arguments):
    return function(*arguments)

if __name__ == "__main__":
    for name, (function, arguments) in calls.items():
        again = pickle.loads(pickle.dumps(function))
        np.testing.assert_array_equal(call(again, arguments), call(function, arguments), err_msg=name)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, (function, arguments) in calls.items():
            np.testing.assert_array_equal(pool.submit(function, *arguments).result(), call(function, arguments), err_msg=name)
    try:
        decorated()
    except TypeError as error:
        assert str(error) == "decorated() missing 1 required positional argument: 'x'", error
    print("all arrived")
"""
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    Path(tmp_path, "travelling.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import travelling

    yield travelling
    del sys.modules["travelling"]


def test_what_a_module_holds_arrives_as_what_it_holds(module):
    for name in ("decorated", "with_options", "twice_decorated", "recursive"):
        made = getattr(module, name)
        assert pickle.loads(pickle.dumps(made)) is made
        assert copy.deepcopy(made) is made
    for name, (function, arguments) in module.calls.items():
        again = pickle.loads(pickle.dumps(function))
        np.testing.assert_array_equal(again(*arguments), function(*arguments), err_msg=name)


def test_a_script_sends_its_functions_to_processes(tmp_path):
    script = Path(tmp_path, "script.py")
    script.write_text(SCRIPT, encoding="utf-8")
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout.strip().endswith("all arrived"), found.stderr


def test_functions_without_a_name_travel_by_value():
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed; Dask and joblib bring it")
    scale = 2.5

    def local(x):
        return (x * scale).sum()

    made = {
        "tensor": (tm.tensor(lambda x: x * scale), X),
        "grad": (tm.grad(local), X),
        "nested": (tm.vmap(tm.grad(local)), np.ones((2, 3))),
        "options": (tm.grad(local, argnums=(0,)), X),
        "sparse": (tm.jacobian(lambda x: x**2, sparse=True), X),
        "value": (tm.value_and_grad(local), X),
    }
    for name, (f, x) in made.items():
        ours, theirs = cloudpickle.loads(cloudpickle.dumps(f))(x), f(x)
        if name == "sparse":
            ours, theirs = ours.toarray(), theirs.toarray()
        np.testing.assert_equal(ours, theirs, err_msg=name)
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):  # as a function of Python's is
        pickle.dumps(made["grad"][0])


CELL = """
def halves(x):
    total = 0.0
    for k in range(len(x)):
        if x[k] > 1:
            total += x[k] / 2
    return total

class Model:
    def __init__(self, scale):
        self.scale = scale

    @tm.tensor
    def apply(self, x):
        return self.inner(x) if x.sum() > 0 else x

    def inner(self, x):
        return x * self.scale if x[0] < 1 else x

captured = tm.tensor(halves)
slope = tm.grad(lambda x: halves(x) * 3 if x.sum() > 0 else halves(x))
method = Model(2.0).apply
"""


@pytest.mark.parametrize("other", ["", CELL.replace("2", "4").replace("3", "5")], ids=["nothing", "another text"])
def test_functions_of_cells_arrive_with_their_text(other, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed; Dask and joblib bring it")

    def has(text):
        lines = text.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, "<cell>", (len(text), None, lines, "<cell>"))

    space = {"tm": tm, "__name__": "__main__"}
    exec(compile(CELL, "<cell>", "exec"), space)
    has(CELL)
    made = [space[name] for name in ("captured", "slope", "method")]
    sent = cloudpickle.dumps(made)
    has(other)  # what another process has under that name
    for ours, theirs in zip(
        cloudpickle.loads(sent), (2.5, np.array([0.0, 1.5, 1.5]), 2 * np.array([0, 2, 3])), strict=True
    ):
        np.testing.assert_array_equal(ours(np.array([0.0, 2.0, 3.0])), theirs)


def test_what_no_maker_made_says_nothing_of_its_source():
    made = travel.Made()
    assert made.source is None
    assert not made.binds


def test_a_function_without_a_module_is_made_of():
    space = {}
    exec(compile("def f(x):\n    return (x ** 2).sum()", "<text>", "exec"), {"__builtins__": {}}, space)
    assert space["f"].__module__ is None
    made = tm.grad(space["f"])
    np.testing.assert_array_equal(made(X), 2 * X)
    assert tm.tensor(space["f"])(X) == 5.0


def test_dask_tells_functions_apart_by_what_they_are_made_of(tmp_path):
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    from dask.base import tokenize

    scale = 2.5

    def local(x):
        return (x * scale).sum()

    def squares(x):
        return x**2

    saved = tm.compile(local, "float64[n]")
    saved.save(tmp_path / "f.tm")
    made = {
        "function": lambda: tm.tensor(local),
        "slope": lambda: tm.grad(local),
        "second": lambda: tm.grad(local, argnums=(0,)),
        "rows": lambda: tm.vmap(tm.grad(local)),
        "compiled": lambda: tm.compile(local, "float64[n]"),
        "sparse": lambda: tm.jacobian(squares, sparse=True),
        "loaded": lambda: tm.load(tmp_path / "f.tm"),
    }
    tokens = {name: [tokenize(make(), ensure_deterministic=True) for _ in range(2)] for name, make in made.items()}
    assert [first for first, second in tokens.values() if first != second] == []
    assert len({first for first, _ in tokens.values()}) == len(made)
    x = np.ones((2, 3))
    for name, make in made.items():
        f, given = make(), x if name == "rows" else x[0]
        found = dask.delayed(f)(given).compute(scheduler="sync")
        expected = f(given)
        if name == "sparse":
            found, expected = found.toarray(), expected.toarray()
        np.testing.assert_array_equal(found, expected)
