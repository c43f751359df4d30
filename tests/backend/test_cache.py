"""Machine code on disk, the worker that makes it, and what happens to both when something goes wrong."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tensormagic.backend import cache, native
from tensormagic.backend.cache import Code
from tensormagic.backend.compiler import Compiler
from tensormagic.backend.native import compiled, start
from tensormagic.backend.plan import plan_graph
from tests.backend.graphs import closed, planned, variable

SCRIPT = """
import json, sys, time
import numpy as np
from tests.backend.graphs import closed, variable
from tensormagic.backend.native import compiled
from tensormagic.backend.plan import plan_graph
x = variable("x", np.arange(6.0))
graph, values = closed([x * 2 + {number}])
begin = time.perf_counter()
handle = compiled(plan_graph(graph))
result = handle.run(graph.bind([(6,)]), *values)[0]
print(json.dumps([handle.from_cache, result.tolist(), sorted(m for m in sys.modules if m.split(".")[0] == "numba")]))
"""
ROOT = Path(__file__).parents[2]


def in_process(folder, number=1):
    environment = {**os.environ, "TENSORMAGIC_CACHE_FOLDER": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(number=number)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.stderr
    return json.loads(done.stdout)


def test_a_second_process_loads_what_the_first_has_compiled(tmp_path):
    first, values, numba = in_process(tmp_path / "new")
    assert not first
    assert values == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    assert not numba  # the worker alone imports it
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert in_process(tmp_path / "new")[0]


def test_a_damaged_file_is_compiled_anew(tmp_path):
    in_process(tmp_path)
    (path,) = tmp_path.glob("*.o")
    data = path.read_bytes()
    path.write_bytes(data[:-7] + b"garbage")
    assert not in_process(tmp_path)[0]
    assert in_process(tmp_path)[0]
    path.write_bytes(b"")
    assert not in_process(tmp_path)[0]


def test_a_folder_that_others_can_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    assert "others can write" in cache._problem(tmp_path)
    with pytest.warns(RuntimeWarning, match="others can write"):
        other = cache._usable(tmp_path)
    assert other != tmp_path
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    file = tmp_path / "file"
    file.touch()
    assert cache._problem(file / "inside")


def test_the_least_recently_used_go_first(tmp_path, monkeypatch):
    for k, key in enumerate("abcd"):
        cache.write(tmp_path, key, Code("f", b"x" * 1000, 0.5))
        os.utime(tmp_path / f"{key}.o", (k, k))
    assert cache.read(tmp_path, "a") == Code("f", b"x" * 1000, 0.5)
    monkeypatch.setattr(cache, "MOST_BYTES", 3500)
    cache.write(tmp_path, "e", Code("f", b"x" * 1000, 0.5))
    assert sorted(p.stem for p in tmp_path.glob("*")) == ["a", "d", "e"]


def test_start_does_not_wait():
    plan = planned(variable("x", np.zeros(4)) * 3.0 - 17.0 / (1 + variable("y", np.zeros(4))))
    begin = time.perf_counter()
    handle = start(plan)
    assert time.perf_counter() - begin < 0.1
    assert handle.wait(60)
    assert handle.state == "ready"


def test_ready_is_announced():
    seen = []
    handle = start(planned(variable("x", np.zeros(4)) - 1), seen.append)
    assert handle.wait(60)
    deadline = time.monotonic() + 5
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    assert seen == [handle]


def answers(compiler_calls):
    found = {}
    return found, Compiler(lambda key, source, error, seconds: found.__setitem__(key, error))


def wait_for(found, key):
    deadline = time.monotonic() + 60
    while key not in found and time.monotonic() < deadline:
        time.sleep(0.01)
    return found[key]


def test_a_worker_that_dies_is_started_once_more(tmp_path):
    found, compiler = answers([])
    compiler.submit("one", "def kernel(table):\n    pass\n", str(tmp_path))
    assert not wait_for(found, "one")
    compiler._process.kill()
    compiler.submit("two", "def kernel(table):\n    pass\n", str(tmp_path))
    assert not wait_for(found, "two")
    compiler.close()


def test_a_worker_that_always_dies_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    found, compiler = answers([])
    compiler.submit("one", "def kernel(table):\n    pass\n", str(tmp_path))
    assert "ended twice" in wait_for(found, "one")


def test_source_that_does_not_compile_is_an_answer(tmp_path):
    found, compiler = answers([])
    compiler.submit("bad", "def kernel(table):\n    no_such_name(table)\n", str(tmp_path))
    assert "no_such_name" in wait_for(found, "bad")
    compiler.submit("good", "def kernel(table):\n    pass\n", str(tmp_path))
    assert not wait_for(found, "good")
    compiler.close()


def test_a_failure_is_told_once_and_the_handle_says_why(monkeypatch):
    plan = planned(variable("x", np.zeros(4)) - 123)
    monkeypatch.setattr(native, "_warned", False)
    service = native._Service()
    service._compiler = type(
        "Broken",
        (),
        {"submit": lambda self, key, source, folder: service._requests.put((key, source, "no compiler", 0.0))},
    )()
    monkeypatch.setattr("tensormagic.backend.cache.read", lambda place, key: None)
    warned = []
    monkeypatch.setattr(native.warnings, "warn", lambda message, *rest, **more: warned.append(message))
    handles = [native.Handle(plan), native.Handle(plan)]
    for handle in handles:
        service.submit(handle)
    assert not any(h.wait(10) for h in handles)
    assert [h.error for h in handles] == ["no compiler"] * 2
    assert [h.state for h in handles] == ["failed"] * 2
    assert len(warned) == 1
    with pytest.raises(RuntimeError, match="no compiler"):
        handles[0].run({})


def test_the_worker_ends_with_its_session(tmp_path):
    script = (
        SCRIPT.format(number=5)
        + "\nfrom tensormagic.backend import native\nprint(native._current._compiler._process.pid, flush=True)"
        + "\nimport os; os._exit(0)\n"
    )
    environment = {**os.environ, "TENSORMAGIC_CACHE_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    worker = int(done.stdout.split()[-1])
    deadline = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}/cmdline").exists() or not Path(f"/proc/{worker}/cmdline").read_bytes()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_compiles_for_itself():
    compiled(planned(variable("x", np.zeros(4)) + 41))
    pid = os.fork()
    if not pid:
        graph, values = closed([variable("x", np.ones(4)) * 43.5])
        handle = compiled(plan_graph(graph))
        right = handle.run(graph.bind([(4,)]), *values)[0].tolist() == [43.5] * 4
        native._current._compiler.close()
        os._exit(0 if right else 1)
    assert os.waitpid(pid, 0)[1] == 0
    compiled(planned(variable("x", np.zeros(4)) / 47.5))


def test_preparing_starts_everything_and_changes_nothing(tmp_path):
    found, compiler = answers([])
    compiler.prepare()
    compiler.prepare()
    compiler.submit("one", "def kernel(table):\n    pass\n", str(tmp_path))
    assert not wait_for(found, "one")
    compiler.close()
    native.prepare()
    assert compiled(planned(variable("x", np.zeros(4)) - 0.125)).ready()


def test_a_worker_that_has_done_enough_makes_room_for_another(tmp_path, monkeypatch):
    monkeypatch.setattr("tensormagic.backend.compiler.MOST_COMPILED", 1)
    found, compiler = answers([])
    for key in ("one", "two", "three"):
        compiler.submit(key, "def kernel(table):\n    pass\n", str(tmp_path))
    assert [wait_for(found, key) for key in ("one", "two", "three")] == ["", "", ""]
    compiler.close()
