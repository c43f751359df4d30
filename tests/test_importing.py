"""What ``import tensormagic`` leaves to whoever needs it."""

import json
import subprocess
import sys

import tensormagic as tm

LATER = ("IPython", "numba", "scipy.special", "tensormagic.backend.cuda.run", "tensormagic.distributed.distribute")


def test_what_is_heavy_is_imported_when_it_is_asked_for():
    code = f"import tensormagic, sys, json; print(json.dumps([name for name in {LATER} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_rules_are_written_out_when_they_are_told_of():
    code = "from tensormagic.transform.rewriting import rules; print(*['name' in vars(rule) for rule in rules('real')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == {"False"}


def test_names_that_come_late_are_names_of_the_package():
    assert {"distribute", "shard"} <= {*dir(tm)} & {*tm.__all__}
    assert tm.distribute.__module__ == "tensormagic.distributed.distribute"
    assert not hasattr(tm, "distributes")
