"""Attributes of classes, functions, modules and objects without a dictionary, which loops and branches change."""

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

HOLDERS = {
    "a class": "class C:\n    n = 0.0\n",
    "a function": "def C(): pass\nC.n = 0.0\n",
    "an object with slots": "class S:\n    __slots__ = ('n',)\nC = S()\nC.n = 0.0\n",
    "a dataclass with slots": (
        "from dataclasses import dataclass\n@dataclass(slots=True)\nclass S:\n    n: float = 0.0\nC = S()\n"
    ),
    "a module": "import types\nC = types.ModuleType('made_by_hand')\nC.n = 0.0\n",
    "a dictionary": "class S(dict): pass\nC = S()\nC.n = 0.0\n",
    "a list": "class S(list): pass\nC = S([1.0])\nC.n = 0.0\n",
    "a class of a class": "class S(type):\n    n = 0.0\nclass C(metaclass=S): pass\nC = S\n",
}
CODES = {
    "a loop": "for i in range(20):\n    C.n = C.n + x[1]\n",
    "a loop on data": "k = 0\nwhile k < x[1] * 5:\n    C.n = C.n + x[0]\n    k += 1\n",
    "a branch that is not taken": "if x[0] < 0:\n    C.n = C.n + x[1]\n",
}


def compare(notebook: Notebook, cell: str) -> None:
    found = []
    for magic in ("%%tensor\n", ""):
        notebook["x"] = np.array([1.0, 2.0])
        notebook.ok(magic + cell)
        found.append(np.asarray(notebook["v"]))
    assert np.array_equal(*found)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_an_attribute(notebook: Notebook, holder: str, code: str):
    compare(notebook, f"{HOLDERS[holder]}{CODES[code]}v = x + C.n\n")


@pytest.mark.parametrize(
    "cell",
    [
        "class C:\n    n = 0.0\n    @classmethod\n    def up(cls): cls.n = cls.n + x[1]\nfor i in range(20):\n    C.up()\nv = x + C.n\n",
        "class C:\n    def up(self):\n        global x\n        x = x + 1\nc = C()\nfor i in range(20):\n    c.up()\nv = x + 0\n",
        "import array\nc = array.array('d', [0.0])\nfor i in range(20):\n    c[0] = c[0] + 1\nv = x + c[0]\n",
    ],
)
def test_what_methods_and_arrays_of_numbers_change(notebook: Notebook, cell: str):
    compare(notebook, cell)
