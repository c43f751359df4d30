"""Machine code on disk, the worker that makes it, and what happens to both when something goes wrong."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tensormagic.backend.compiling import cache, native, service
from tensormagic.backend.compiling.cache import Code
from tensormagic.backend.compiling.compiler import Compiler
from tensormagic.backend.compiling.messages import Request
from tensormagic.backend.compiling.native import compiled, start
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.backend.running import thread_warnings
from tensormagic.config import config
from tests.backend.graphs import closed, planned, variable

SCRIPT = """
import json, sys, time
import numpy as np
from tests.backend.graphs import closed, variable
from tensormagic.backend.compiling.native import compiled
from tensormagic.backend.planning.plan import plan_graph
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


def test_code_in_a_folder_that_others_can_write_is_told_and_runs(tmp_path):
    for name in ("open", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o777)
    given = {"TENSORMAGIC_CACHE_FOLDER": str(tmp_path / "open" / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(number=1) * 2],
        env={**os.environ, **given, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stderr.count("others can write in") == 1
    assert [json.loads(line)[1] for line in done.stdout.splitlines()] == [[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]] * 2
    assert not list((tmp_path / "open").iterdir())
    assert not list((tmp_path / "tmp").iterdir())


def test_the_least_recently_used_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "cache_folder", tmp_path)
    for k, key in enumerate("abcd"):
        cache.write(key, Code("f", b"x" * 1000, 0.5))
        os.utime(tmp_path / f"{key}.o", (k, k))
    assert cache.read("a") == Code("f", b"x" * 1000, 0.5)
    monkeypatch.setattr(cache, "MOST_BYTES", 3500)
    (tmp_path / "left.tmp").touch()
    (tmp_path / "being.tmp").touch()
    os.utime(tmp_path / "left.tmp", (1, 1))
    cache.write("e", Code("f", b"x" * 1000, 0.5))
    assert sorted(p.stem for p in tmp_path.glob("*")) == ["a", "being", "d", "e"]


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


EMPTY = Request("def kernel(table):\n    pass\n")


@pytest.fixture
def asking():
    """What was answered, and the compiler that answers."""
    found = {}
    compiler = Compiler(lambda key, code, error: found.__setitem__(key, error))
    yield found, compiler
    compiler.close()


def wait_for(found, key):
    assert until(lambda: key in found)
    return found[key]


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_worker_comes_back_after_any_number_of_deaths(asking):
    found, compiler = asking
    compiler.submit("first", EMPTY)
    assert not wait_for(found, "first")
    for number in range(3):
        worker = compiler.process
        worker.kill()
        compiler.submit(f"{number}", EMPTY)
        assert not wait_for(found, f"{number}")
        assert compiler.process.pid != worker.pid


def test_pauses_grow_and_a_request_is_given_up(monkeypatch, asking):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    paused = []
    monkeypatch.setattr(Compiler, "_pause", lambda self: paused.append(pause(self)) or 0.0)
    found, compiler = asking
    for number in range(6):
        compiler.submit(f"{number}", EMPTY)
        assert "failed twice" in wait_for(found, f"{number}")
    assert paused == sorted(paused)
    assert paused[:5] == [0.0, 0.0, 0.25, 0.5, 1.0]
    compiler._deaths = 1000
    assert pause(compiler) == 30.0
    monkeypatch.undo()
    compiler._deaths = 0
    compiler.submit("well", EMPTY)
    assert not wait_for(found, "well")
    assert compiler._deaths == 0


pause = Compiler._pause


def test_a_worker_that_does_nothing_and_ends_well_is_a_death(monkeypatch, asking):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    found, compiler = asking
    compiler.submit("one", EMPTY)
    assert "failed twice" in wait_for(found, "one")


def test_a_worker_that_is_not_there_is_told(monkeypatch, asking):
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    found, compiler = asking
    compiler.submit("one", EMPTY)
    assert "does not start" in wait_for(found, "one")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process is stopped here")
def test_a_worker_that_hangs_blocks_nothing_and_is_replaced(monkeypatch, asking):
    found, compiler = asking
    compiler.submit("one", EMPTY)
    assert not wait_for(found, "one")
    worker = compiler.process
    worker.send_signal(signal.SIGSTOP)
    begin = time.perf_counter()
    compiler.submit("two", Request(EMPTY.source + "#" * 1_000_000))  # more than a pipe holds
    compiler.submit("three", EMPTY)
    compiler.prepare()
    assert time.perf_counter() - begin < 0.5
    monkeypatch.setattr("tensormagic.backend.compiling.compiler.LOOK", 0.2)
    assert not wait_for(found, "two")
    assert not wait_for(found, "three")
    assert compiler.process.pid != worker.pid
    assert worker.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process is stopped here")
def test_the_interpreter_ends_though_its_worker_hangs(tmp_path):
    script = SCRIPT.format(number=7) + (
        "\nfrom tensormagic.backend.compiling import service\nfrom tensormagic.backend.compiling.native import start\n"
        "process = service.service.made.compiler.process\nprocess.send_signal(19)\n"
        "for k in range(100, 130):\n"
        "    start(plan_graph(closed([x * k + k])[0]))\n"
        "time.sleep(1)\nprint(process.pid, flush=True)\nprint(time.time(), flush=True)\n"
    )
    environment = {**os.environ, "TENSORMAGIC_CACHE_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    *_, worker, left = done.stdout.split()
    assert time.time() - float(left) < 5
    assert gone(int(worker))


def gone(worker):
    def ended():
        path = Path(f"/proc/{worker}/cmdline")
        return not path.exists() or not path.read_bytes()

    return until(ended, 10)


def test_source_that_does_not_compile_is_an_answer(asking):
    found, compiler = asking
    compiler.submit("bad", Request("def kernel(table):\n    no_such_name(table)\n"))
    assert "no_such_name" in wait_for(found, "bad")
    compiler.submit("good", EMPTY)
    assert not wait_for(found, "good")


def test_a_failure_is_told_once_and_the_handle_says_why(monkeypatch):
    plan = planned(variable("x", np.zeros(4)) - 123)
    broken = service.Service()
    broken.compiler = type(
        "Broken", (), {"submit": lambda self, key, request: broken.answer(key, None, "no compiler")}
    )()
    monkeypatch.setattr("tensormagic.backend.compiling.cache.read", lambda key: None)
    warned = []
    monkeypatch.setattr(thread_warnings, "_told", set())
    monkeypatch.setattr(thread_warnings.warnings, "warn", lambda message, *rest, **more: warned.append(message))
    handles = [native.Handle(plan), native.Handle(plan)]
    for handle in handles:
        broken.submit(handle)
    assert not any(h.wait(10) for h in handles)
    assert [h.error for h in handles] == ["no compiler"] * 2
    assert [h.state for h in handles] == ["failed"] * 2
    assert len(warned) == 1
    with pytest.raises(RuntimeError, match="no compiler"):
        handles[0].run({})


def test_a_failure_of_planning_is_told_as_one_of_compiling(monkeypatch):
    """On the service's thread: NumPy computed, and nobody said why."""

    def plan():
        raise KeyError("no plan")

    warned = []
    monkeypatch.setattr(thread_warnings, "_told", set())
    monkeypatch.setattr(thread_warnings.warnings, "warn", lambda message, *rest, **more: warned.append(message))
    handles = [native.start(plan), native.start(plan)]
    assert not any(h.wait(10) for h in handles)
    assert [h.error for h in handles] == ["KeyError: 'no plan'"] * 2
    assert warned == ["NumPy computes what could not be compiled: KeyError: 'no plan'"]


def test_the_worker_ends_with_its_session(tmp_path):
    script = (
        SCRIPT.format(number=5)
        + "\nfrom tensormagic.backend.compiling import service\nprint(service.service.made.compiler.process.pid, flush=True)"
        + "\nimport os; os._exit(0)\n"
    )
    environment = {**os.environ, "TENSORMAGIC_CACHE_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    worker = int(done.stdout.split()[-1])
    assert gone(worker)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_compiles_for_itself():
    compiled(planned(variable("x", np.zeros(4)) + 41))
    pid = os.fork()
    if not pid:
        graph, values = closed([variable("x", np.ones(4)) * 43.5])
        handle = compiled(plan_graph(graph))
        right = handle.run(graph.bind([(4,)]), *values)[0].tolist() == [43.5] * 4
        service.service.made.compiler.close()
        os._exit(0 if right else 1)
    assert os.waitpid(pid, 0)[1] == 0
    compiled(planned(variable("x", np.zeros(4)) / 47.5))


def test_preparing_starts_everything_and_changes_nothing(asking):
    found, compiler = asking
    compiler.prepare()
    compiler.prepare()
    compiler.submit("one", EMPTY)
    assert not wait_for(found, "one")
    native.prepare()
    assert compiled(planned(variable("x", np.zeros(4)) - 0.125)).ready()


def test_a_worker_that_has_done_enough_makes_room_for_another(monkeypatch, asking):
    monkeypatch.setattr("tensormagic.backend.compiling.compiler.MOST_COMPILED", 1)
    found, compiler = asking
    for key in ("one", "two", "three"):
        compiler.submit(key, EMPTY)
    assert [wait_for(found, key) for key in ("one", "two", "three")] == ["", "", ""]
    assert compiler._deaths == 0


def children(process):
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="copies are made, and found, on Linux alone")
def test_kernels_are_compiled_side_by_side_and_a_copy_that_dies_is_replaced(asking):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    found, compiler = asking
    line = "        a[i + {0}] = exp(a[i] + {0}) + tan(a[i] * {0})\n"
    loops = "".join("    for i in range(table[2]):\n" + line.format(k) for k in range(6))
    compiler.submit("first", EMPTY)
    assert not wait_for(found, "first")
    for key in "abc":
        text = f'def kernel(table):\n    a = array(table, 1, "float64", 0)\n{loops}    a[0] = table[{ord(key)}]\n'
        compiler.submit(key, Request(text))
    worker = compiler.process.pid
    assert until(lambda: children(worker))
    os.kill(children(worker)[0], signal.SIGKILL)
    assert [wait_for(found, key) for key in "abc"] == ["", "", ""]
    assert compiler.process.pid == worker


def test_a_warning_is_told_once_and_never_an_error(monkeypatch, capsys):
    monkeypatch.setattr(thread_warnings, "_told", set())
    thread_warnings.tell_once("something")
    thread_warnings.tell_once("something")
    assert capsys.readouterr().err == "RuntimeWarning: something\n"
