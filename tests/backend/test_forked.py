"""What threads compute, in a process that is forked: parent and child have threads of their own, and both end."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, numpy as np, tensormagic as tm
tm.config.tier, tm.config.threads = "numba", 3
{setup}
first = {call}
assert {started}
child = os.fork()
if child == 0:
    assert not {started}
    assert {call} == first and {started}
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert {call} == first
print("fine")
"""
LOOPS = """
from tensormagic.backend.running import threads
threads._least = 0
ours = tm.tensor(lambda x: np.exp(x).sum())
x = np.linspace(0, 1, 300_000)
"""
STEPS = """
from tensormagic.backend.planning import overlap
from tensormagic.backend.printing import parallel_steps
from tensormagic.backend.running import tasks
overlap._least, parallel_steps.blas_threads = 1, lambda: 1
ours = tm.tensor(lambda a, b: (np.linalg.svd(a)[1], np.linalg.svd(b)[1], np.fft.fft2(a)))
a, b = np.random.default_rng(0).normal(size=(2, 40, 40))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("setup", "call", "started"),
    [
        pytest.param(LOOPS, "float(ours(x))", "(threads._current is not None)", id="loops that are shared"),
        pytest.param(STEPS, "[x.tobytes() for x in ours(a, b)]", "tasks._helpers", id="steps at the same time"),
    ],
)
def test_a_forked_child_has_threads_of_its_own_and_the_process_ends(setup, call, started):
    script = SCRIPT.format(setup=setup, call=call, started=started)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "fine", done.stderr
    assert done.returncode == 0
