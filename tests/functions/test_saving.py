"""Compiled functions as files: what comes back, what is refused, and when machine code of a file is run."""

import io
import itertools
import json
import pickle
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import native, trust
from tensormagic.backend.cpu import loader as cpu_loader
from tensormagic.functions.compiled import archive, saving
from tests.programs.program import PROGRAMS
from tests.programs.test_programs import assert_equal

X = np.random.default_rng(0).normal(size=(5, 3))
BESIDE = np.arange(3.0)


def loss(p, scale=2.0):
    values = np.log(1 + np.exp(-(p["x"] @ p["w"]) * scale)) + (p["x"] * BESIDE).sum(1)
    return {"mean": values.mean(), "all": [values, None, "loss"], "sizes": np.linalg.eigh(p["x"].T @ p["x"])}


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def saved(folder, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    function = tm.compile(loss, {"x": "float64[n, 3]", "w": "float64[3]"}, 2.0)
    function.save(folder / "loss.tm")
    return function, folder / "loss.tm"


def test_what_comes_back_gives_the_same(saved):
    ours, path = saved
    again = tm.load(path)
    given = {"x": X, "w": BESIDE}, 2.0
    np.testing.assert_equal(again(*given), ours(*given))
    assert type(again(*given)["sizes"]) is type(ours(*given)["sizes"])
    assert str(again.graph) == str(ours.graph)
    assert repr(again) == repr(ours)
    for f in (ours, again):
        with pytest.raises(tm.GuardError, match="a different structure"):
            f.run([X, BESIDE], 2.0)
        with pytest.raises(tm.GuardError, match="float32"):
            f.run({"x": X.astype("f4"), "w": BESIDE}, 2.0)
    sent = pickle.loads(pickle.dumps(again))
    np.testing.assert_equal(sent(*given), ours(*given))
    again.save(path)
    np.testing.assert_equal(tm.load(path)(*given), ours(*given))


def test_a_file_that_was_changed_is_refused(saved):
    data = saved[1].read_bytes()
    places = [*random.Random(0).sample(range(len(data)), 999), len(data) - 1]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= random.Random(place).randrange(1, 256)
        with pytest.raises(tm.FormatError, match=r"was changed|not a file of a compiled function"):
            saving.loaded(bytes(changed))
    for cut in (0, 10, len(data) - 1):
        with pytest.raises(tm.FormatError):
            saving.loaded(data[:cut])


def forged(data, **changes):
    """A file with other parts, whose checksum is right."""
    parts = archive.unpacked(data)
    about = json.loads(parts[archive.FIRST]) | changes.pop("about", {})
    return archive.packed({**parts, archive.FIRST: json.dumps(about).encode(), **changes})


def test_files_that_are_not_ours_are_refused_by_a_sentence(saved, folder):
    data = saved[1].read_bytes()
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("a", "b")
    cases = {
        b"": "not a file of a compiled function",
        other.getvalue(): "not a file of a compiled function",
        forged(data, about={"format": 2}): "is of format 2",
        forged(data, about={"math": "wild"}): "do not belong together",
        forged(data, about={"arguments": ["class", "os", "system"]}): "do not belong together",
        forged(data, about={"results": ["named", "Popen", []]}): "in an unknown way",
        forged(data, graph=b"graph() {\n  nonsense\n}"): "written by another version",
        forged(data, rewritten=b"graph(%0: float64[n0]) {\n  return %0\n}"): "do not belong together",
        forged(data, **{"values/0.npy": b"no array"}): "cannot be read",
    }
    for content, said in cases.items():
        (folder / "other.tm").write_bytes(content)
        with pytest.raises(tm.FormatError, match=said):
            tm.load(folder / "other.tm")(({"x": X, "w": BESIDE}, 2.0))
    with pytest.raises(FileNotFoundError):
        tm.load(folder / "missing.tm")


def test_a_graph_of_a_file_calls_no_function_by_name(saved):
    data = saved[1].read_bytes()
    head = archive.unpacked(data)["graph"].decode().rpartition("  return")[0]
    more = "  %900 = constant() bits=False : bool\n  %901 = constant() bits=0.0 : float64\n"
    for line in (
        "%902 = check(%901, %900) error='os:system' told='()' place=() : float64",
        "%902 = matrix_function(%1) name='__class__' : float64[3, 3]",
    ):
        text = f"{head}{more}  {line}\n  return %902\n}}".encode()
        with pytest.raises(tm.FormatError, match=r"never loaded from a file|cannot be read"):
            saving.loaded(forged(data, graph=text, rewritten=text))


def test_what_no_file_holds_is_refused_when_it_is_written(folder, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")

    class OwnError(Exception):
        pass

    def raising(x):
        if x.sum() > 0:
            raise OwnError("too much")
        return x

    with pytest.raises(tm.CaptureError, match="OwnError, which cannot be saved in a file"):
        tm.compile(raising, "float64[n]").save(folder / "f.tm")
    offset = np.ones(3)
    f = tm.compile(lambda x: x + offset, "float64[3]")
    f.save(folder / "f.tm")
    offset = np.ones(3, np.float32)
    with pytest.raises(tm.GuardError, match="offset"):
        f.save(folder / "g.tm")
    assert sorted(p.name for p in folder.iterdir()) == ["f.tm"], "nothing is left of what was refused"


SCRIPT = """
import sys
sys.modules["numba"] = None
import numpy as np
import tensormagic as tm
f = tm.load({path!r})
print(f.origin)
print(repr(f({{"x": np.arange(6.0).reshape(2, 3), "w": np.ones(3)}}, 2.0)["mean"]))
print(f.executable.tier, sorted({{"numba", "tests"}} & {{k for k, v in sys.modules.items() if v}}))
"""


def test_a_process_without_the_source_and_without_numba_runs_the_machine_code(folder):
    path = folder / "loss.tm"
    function = tm.compile(loss, {"x": "float64[n, 3]", "w": "float64[3]"}, 2.0)
    assert len(native.codes(function.executable.plan.sources)) == len(function.executable.plan.sources) > 0
    function.save(path)
    value = repr(function({"x": np.arange(6.0).reshape(2, 3), "w": np.ones(3)}, 2.0)["mean"])
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(path=str(path))], capture_output=True, text=True,
        timeout=120, check=False, cwd=folder,
    )  # fmt: skip
    assert found.stdout.splitlines() == ["loss.tm, with its machine code", value, "numba []"], found.stderr


def test_machine_code_is_run_where_it_is_the_users_own_and_fits(folder, monkeypatch):
    path = folder / "f.tm"
    tm.compile(lambda x: np.exp(x) - x, "float64[n]").save(path)
    link = Path(folder, "link.tm")
    link.symlink_to(path)
    for place in (path, link):
        assert tm.load(place).origin == f"{place.name}, with its machine code"
    lent = []
    monkeypatch.setattr(native, "lend", lent.append)
    with monkeypatch.context() as patch:
        patch.setattr(archive, "own_key", lambda: b"another user's")
        assert tm.load(path).origin.endswith("its machine code is not used, as it is not signed by you")
        assert lent.pop() == {}
        assert tm.load(path, trusted=True).origin.endswith("with its machine code")
        assert len(lent.pop()) == 1
    with monkeypatch.context() as patch:
        described = {**cpu_loader.machine(), "features": "+none"}
        patch.setattr(cpu_loader, "machine", lambda: described)
        assert "for another machine" in tm.load(path, trusted=True).origin
    for change in (path, folder) if trust.CHECKED else ():
        before = change.stat().st_mode
        change.chmod(0o777)
        for trusted in (False, True):
            assert f"others can write {'in ' * change.is_dir()}{change}" in tm.load(path, trusted=trusted).origin
        change.chmod(before)
    assert not any(lent)


@pytest.mark.parametrize("name", random.Random(1).sample(sorted(PROGRAMS), 6))
def test_programs_come_back_from_files(name, folder, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    program = PROGRAMS[name]
    given, plain = program.make(program.small), program.function

    def on_copies(*values):  # compiled functions store into no argument
        return plain(*(v.copy() if hasattr(v, "copy") else v for v in values))

    function = tm.compile(on_copies, *given)
    function.save(folder / "f.tm")
    ours, again = function(*given), tm.load(folder / "f.tm")(*given)
    both = [v if isinstance(v, tuple) else (v,) for v in (again, ours)]
    assert_equal(list(both[0]), list(both[1]))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        tm.compile(lambda x: x + 1, "float64[n]").save(tmp_path / "none" / "f.tm")
    assert caught.value.filename == str(tmp_path / "none")


@pytest.mark.parametrize(("n", "m"), [*itertools.product((0, 1, 3), repeat=2)])
def test_sizes_of_0_and_1_are_those_of_the_function_with_its_errors(n, m, folder, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")

    def plain(x, y):
        return (x[:, None] * y).max(axis=0) + x.sum()

    ours = tm.compile(plain, "float64[n]", "float64[m]")
    ours.save(folder / "f.tm")
    again, given = tm.load(folder / "f.tm"), (np.arange(n) + 0.5, np.arange(m) - 0.5)
    if n == 0:
        with pytest.raises(ValueError, match="zero-size array") as wanted:
            ours(*given)
        with pytest.raises(wanted.type, match=re.escape(str(wanted.value))):
            again(*given)
    else:
        np.testing.assert_array_equal(again(*given), plain(*given))


def test_sizes_are_called_as_their_user_does(folder, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    ours = tm.compile(lambda x, p: x @ p["w"], "float64[rows, n0]", {"w": "float64[n0, rows]"})
    ours.save(folder / "f.tm")
    again = tm.load(folder / "f.tm")
    assert [*again.size_names.values()] == [*ours.size_names.values()] == ["rows", "n0", "x", "p"]
    assert str(again.memory) == str(ours.memory)
    again.save(folder / "g.tm")
    assert tm.load(folder / "g.tm").size_names == again.size_names


def test_arguments_by_name(tmp_path):
    def scaled(x, k, shift=0.0):
        return x * k + shift

    x = np.arange(3.0)
    made = tm.compile(scaled, "float64[n]", "float64", "float64")
    np.testing.assert_array_equal(made(x, shift=1.0, k=2.0), x * 2 + 1)
    np.testing.assert_array_equal(made(k=2.0, shift=0.5, x=x), x * 2 + 0.5)
    filled = np.empty(3)
    assert made(x, shift=1.0, k=2.0, out=filled) is filled
    with pytest.raises(TypeError, match="other"):
        made(x, 2.0, other=1.0)
    made.save(tmp_path / "scaled.tm")
    again = tm.load(tmp_path / "scaled.tm")
    np.testing.assert_array_equal(again(x, shift=1.0, k=2.0), x * 2 + 1)
    with pytest.raises(TypeError, match="other: scaled takes x, k, shift"):
        again(x, 2.0, other=1.0)
