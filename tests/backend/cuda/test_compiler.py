"""Kernels for a GPU come from the compile worker: the session's warnings and threads are left alone, whatever becomes of the worker."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import service
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.compiling import compiler
from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.kernels import segments
from tensormagic.backend.cuda.kernels.launch import Count, Launch, Scratch, UnsupportedError
from tensormagic.backend.cuda.loops.loop_plan import _planned_loop
from tensormagic.backend.cuda.planned import planned
from tensormagic.backend.running import thread_warnings
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.test_run import graph_of
from tests.backend.graphs import planned as planned_here
from tests.backend.graphs import variable

CC = (9, 0)
ROOT = Path(__file__).parents[3]
X = np.linspace(0.5, 2.0, 40)
CALLS = "def twice(x):\n    y = tanh(x) + exp(x) + {}\n    return y * y\ndef kernel(a, n):\n    a[thread()] = twice(a[thread()])\n"
GOOD = "def kernel(a, n):\n    a[thread()] = {}.0\n"
BAD = "def kernel(a, n):\n    a[thread()] = no_such_name(n) + {}\n"


def launch_of(source: str, number: int = 1) -> Launch:
    text = source.format(number)
    return Launch("one", text, text, (Scratch("a", 64, "float64", written=True), Count(64)), 1, 64)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[service.Service]:
    """A service with a worker of its own, nothing on disk, and nothing told yet."""
    made = service.Service()
    monkeypatch.setattr(service.service, "made", made)
    monkeypatch.setattr(thread_warnings, "_told", set())
    monkeypatch.setattr(tm.config, "cache_folder", tmp_path)
    compiler._codes_of.cache_clear()
    planned.cache_clear()
    _planned_loop.cache_clear()
    yield made
    made.compiler.close()
    compiler._codes_of.cache_clear()
    planned.cache_clear()
    _planned_loop.cache_clear()


@compiles
@pytest.mark.usefixtures("fresh")
def test_warnings_of_the_session_survive_while_kernels_are_compiled():
    """Compiled by a thread of the session, warnings are held back while types are found: each has to be there at once."""
    codes = Codes([launch_of(CALLS, k) for k in range(4)], whole=True)
    filters, shown = list(warnings.filters), warnings.showwarning
    sent = late = 0
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        codes.start(CC)
        while codes.state == "pending":
            warnings.warn("mine", UserWarning, stacklevel=1)
            sent += 1
            late += len(seen) < sent
            codes.wait(1e-4)
    assert codes.ready()
    assert sent > 10
    assert (late, len(seen)) == (0, sent)
    assert (list(warnings.filters), warnings.showwarning) == (filters, shown)


@compiles
def test_the_session_does_not_import_the_compiler(tmp_path: Path):
    script = (
        "import json, sys, threading\nfrom tests.backend.cuda.test_compiler import GOOD, CC, compiler, launch_of\n"
        "code = compiler.compiled(launch_of(GOOD), CC)\n"
        "print(json.dumps([code.symbol, sorted(m for m in sys.modules if m.startswith(('numba', 'cuda')))]))\n"
    )
    environment = {**os.environ, "TENSORMAGIC_CACHE_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    symbol, imported = json.loads(done.stdout)
    assert "kernel" in symbol
    assert not imported
    assert len(list(tmp_path.glob("cuda-*.o"))) == 1


@compiles
@pytest.mark.skipif(sys.platform != "linux", reason="what a process has loaded is looked up on Linux")
def test_one_worker_compiles_for_both_and_loads_what_is_asked_for(fresh: service.Service):
    def loaded(name: str) -> bool:
        process = fresh.compiler.process
        assert process is not None
        return name in Path(f"/proc/{process.pid}/maps").read_text()

    from tensormagic.backend.compiling.native import compiled

    assert compiled(planned_here(variable("x", X) * 3.25)).ready()
    first = fresh.compiler.process
    assert loaded("llvmlite")
    assert not loaded("numpy")
    assert not loaded("nvvm")
    assert compiler.compiled(launch_of(GOOD), CC).data.startswith(b"//")
    assert loaded("nvvm")
    assert fresh.compiler.process is first


@compiles
def test_what_is_on_disk_is_not_compiled_again(fresh: service.Service, monkeypatch: pytest.MonkeyPatch):
    first = compiler.compiled(launch_of(GOOD), CC)
    monkeypatch.setattr(fresh.compiler, "submit", None)
    assert compiler.compiled(launch_of(GOOD), CC) == first
    monkeypatch.setattr(compiler, "_own_text", lambda: "another text of the compiler")
    with pytest.raises(UnsupportedError, match="not callable"):
        compiler.compiled(launch_of(GOOD), CC)


@compiles
@pytest.mark.usefixtures("fresh")
def test_what_the_compiler_refuses_is_told_once_and_the_rest_is_there(capfd: pytest.CaptureFixture[str]):
    good, *bad = launch_of(GOOD), launch_of(BAD, 1), launch_of(BAD, 1)
    codes, loop = Codes([good, *bad], whole=False), Codes([good, *bad], whole=True)
    for one in (codes, loop):
        one.start(CC)
        one.wait()
    assert codes.ready()
    assert codes.of(good).data
    assert set(codes.errors) == set(bad)
    with pytest.raises(UnsupportedError, match="no_such_name"):
        codes.of(bad[0])
    assert loop.state == "failed"
    told = capfd.readouterr().err
    assert told.count("the library of the device computes what could not be compiled") == 1


def many(x):
    return np.tanh(x) * 2 + np.exp(-x)


def repeated(x):
    for _ in range(5):
        x = x - 0.1 * np.tanh(x)
    return x


@compiles
@pytest.mark.parametrize("function", [many, repeated])
def test_a_worker_that_always_ends_leaves_it_to_the_library(
    fresh: service.Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], function
):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    device = FakeDevice()
    _, graph = graph_of(function, (X,))
    with tm.config.using(tier="numba"):
        (found,) = cuda.run(graph, [device.put(X)], device)
    np.testing.assert_allclose(device.fetch(found), function(X), rtol=1e-14)
    assert device.copied.launches == 0
    assert capfd.readouterr().err.count("failed twice") == 1


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine without numba-cuda."""
    version = compiler.metadata.version

    def found(name: str) -> str:
        if name == "numba-cuda":
            raise compiler.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(compiler.metadata, "version", found)
    compiler.versions.cache_clear()
    yield
    compiler.versions.cache_clear()


@pytest.mark.usefixtures("without")
def test_a_compiler_that_is_missing_is_told_once(fresh: service.Service, capfd: pytest.CaptureFixture[str]):
    device = FakeDevice()
    devices.use(device)
    try:
        with tm.config.using(tier="numba"):
            for function in (many, repeated, many):
                _, graph = graph_of(function, (X,))
                (found,) = cuda.run(graph, [device.put(X)], device)
                np.testing.assert_allclose(device.fetch(found), function(X), rtol=1e-14)
    finally:
        devices.use(None)
    assert fresh.compiler.process is None
    assert capfd.readouterr().err.count("the package numba-cuda is missing") == 1
    with pytest.raises(compiler.MissingCompilerError, match=r"numba-cuda is missing.*\n.*tensormagic\[gpu\]"):
        compiler.compiled(segments.folded("+", "float64"), CC)


@compiles
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.usefixtures("fresh")
def test_a_forked_child_does_not_wait_for_what_its_parent_has_asked_for():
    codes = Codes([launch_of(GOOD)], whole=True)
    codes.start(CC)
    pid = os.fork()
    if not pid:
        codes.wait()
        os._exit(0 if "forked" in codes.error else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert codes.wait()
