"""Text of lazy arrays that plain cells ask for is NumPy's; text that nobody has asked for computes nothing."""

import numpy as np
import pytest

ASKED = {
    "a list": "print([v])",
    "a dictionary": "print({'v': v, 'n': (v, 1)})",
    "a dataclass": "print(held)",
    "an object with a text of its own": "print(owner)",
    "the text of repr": "print(f'{v!r}', repr(held))",
    "a function of the user's": "show(v)",
    "pprint": "import pprint\npprint.pprint([v, held])",
    "a log": "import logging, sys\nlog = logging.Logger('x')\nlog.addHandler(logging.StreamHandler(sys.stdout))\nlog.warning('v: %r', [v])",
    "an array of objects": "both = np.empty(1, object)\nboth[0] = v\nprint(both)",
    "an error's text": "try:\n    raise ValueError([v])\nexcept ValueError as error:\n    print(error)",
}
MADE = """import dataclasses
@dataclasses.dataclass
class Held:
    v: object
class Owner:
    def __init__(self, v): self.v = v
    def __repr__(self): return f"Owner({self.v!r})"
def show(x): print((x,))
"""


@pytest.fixture
def made(notebook):
    notebook["x"] = np.linspace(0, 1, 4)
    notebook.ok(MADE)
    notebook.ok("%%tensor -q\nv = np.exp(x) * 2\nheld, owner = Held(v), Owner(v)")
    return notebook


@pytest.mark.parametrize("how", ASKED)
def test_what_a_plain_cell_prints_is_what_it_prints_of_arrays(made, how):
    printed = made.ok(ASKED[how]).out
    made.ok("v = np.exp(x) * 2\nheld, owner = Held(v), Owner(v)")
    assert printed == made.ok(ASKED[how]).out
    assert "array(" in printed


@pytest.mark.parametrize("last", ["[v]", "held", "owner", "(v, {'k': held})"])
def test_what_a_plain_cell_ends_in_shows_its_values(made, last):
    shown = made.ok(last).data["text/plain"]
    made.ok("v = np.exp(x) * 2\nheld, owner = Held(v), Owner(v)")
    assert shown == made.ok(last).data["text/plain"]


@pytest.mark.parametrize(
    "onlooker", ["pdb", "pydevd_vars", "debugpy.server", "traceback", "IPython.core.ultratb", "IPython.core.oinspect"]
)
def test_who_looks_on_while_a_cell_runs_computes_nothing(made, onlooker):
    space = {"__name__": onlooker}
    exec("def look(value): return repr(value)", space)
    made["look"] = space["look"]
    made.ok("seen = look([v])")
    assert "not computed yet" in made["seen"]


def test_who_looks_between_cells_computes_nothing(made):
    for name in ("v", "held", "owner"):
        assert "not computed yet" in repr(made[name])


def test_the_error_of_a_value_is_raised_where_its_text_is_asked_for(notebook):
    notebook["a"] = np.zeros((2, 2))
    notebook.ok("%%tensor -q\nv = np.linalg.inv(a)")
    assert "not computed yet" in repr([notebook["v"]])
    assert isinstance(notebook("print([v])").error, np.linalg.LinAlgError)
