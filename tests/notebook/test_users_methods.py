"""Special methods of the user's objects run as often, and in the order, that they do in a plain cell.

Not held is how often ``__hash__`` runs, by which dictionaries are copied.
"""

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

GIVES = {
    "__repr__": "'R'", "__str__": "'S'", "__format__": "'F'", "__bool__": "True", "__len__": "3", "__eq__": "self is a[0]",
    "__lt__": "False", "__add__": "self", "__radd__": "self", "__mul__": "self", "__rmul__": "self", "__neg__": "self", "__abs__": "1.5",
    "__float__": "2.5", "__index__": "1", "__iter__": "iter([1.0, 2.0])", "__contains__": "True", "__getitem__": "a[0] * 2.0",
    "__setitem__": "None", "__call__": "a[0] + 1.0 if a else 4.0", "__enter__": "self", "__exit__": "None", "__copy__": "self",
    "__deepcopy__": "self", "__iadd__": "self", "__sizeof__": "64", "__dir__": "['x']",
}  # fmt: skip
MADE = "class T:\n    def __hash__(self):\n        return 7\n" + "".join(
    f"    def {name}(self, *a):\n        log.append({name!r})\n        return {given}\n"
    for name, given in GIVES.items()
)
CELLS = {
    "bound": "t = T()",
    "bound behind an array": "y = x * 2\nt = T()",
    "in a list": "t = [T(), T()]",
    "in a list with a lazy value": "y = x * 2\nt = [T(), y]",
    "in a dictionary": "t = {'a': T(), 'b': x.sum()}",
    "a key": "t = {T(): x.sum()}",
    "in a tuple": "t = (x + 1, T())",
    "in a set": "t = {T()}",
    "in an array": "t = np.array([None, T()], dtype=object)",
    "in a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: object\n    b: object\nt = D(T(), x.sum())",
    "in a named tuple": "import collections\nt = collections.namedtuple('P', 'a b')(T(), x.sum())",
    "of a derived list": "class L(list):\n    def __repr__(self):\n        log.append('list')\n        return ''\nt = L([1, x.sum()])",
    "of a derived number": "class F(float):\n    def __format__(self, f):\n        log.append('float')\n        return ''\nt = F(2.5)",
    "of a metaclass": (
        "class M(type):\n    def __repr__(cls):\n        log.append('class')\n        return ''\n"
        "class C(metaclass=M):\n    pass\nt = C"
    ),
    "keys of what is passed": "def f(d):\n    return sum(d.values())\nt = {T(): x, (T(), 1): x * 2}\ny = f(t).sum()",
    "keys in a loop": "t = {T(): x.sum()}\nfor k in t:\n    t[k] = t[k] * 2",
    "keys within": "t = [{T(): x}, {'a': {T(): x + 1}}]\ny = t[0]",
    "keys beside a branch": "t = {T(): x}\nif x.sum() > 1:\n    y = x * 2\nelse:\n    y = x\nz = [v * 2 for v in t.values()]",
    "an attribute": "t = T()\nt.x = x * 2\ny = t.x.sum()",
    "called": "t = T()\ny = x.sum() * t(2.0)",
    "read": "t = T()\ny = x * t[1.5]",
    "read in a loop": "t = T()\ny = x.sum()\nfor k in range(4):\n    y = y + t[y * 0 + 1.0] * k",
    "called in a loop": "t, y = T(), 0.0\nfor k in range(5):\n    y = y + t() * x[0]",
    "asked": "t = T()\ny = x * 1.0 if t else x\nn = len(t)",
    "asked in a branch on data": "t = T()\nif x.sum() > 0:\n    y = x * float(t)\nelse:\n    y = x",
    "computed with": "t = T()\nu = t + 1\nu = -t\nv = abs(t) * x",
    "compared": "t = T()\nb = t == 3, t < 4, 2 in t\ny = x + b[0]",
    "passed": "def f(t, v):\n    return v * 2 if t is not None else v\nt = T()\ny = f(t, x)",
    "passed in a loop": "def f(t, v):\n    return v * 2 if t is not None else v\nt, y = T(), x\nfor k in range(6):\n    y = f(t, y)",
    "a default": "def f(v, t=T()):\n    return v + 1\ny = f(x)",
    "a global of a function": "t = T()\ndef f(v):\n    return v + (1 if t is not None else 2)\ny = f(x).sum()",
    "with": "with T() as t:\n    y = x * 3",
    "gone over": "y = x\nfor v in T():\n    y = y * v",
    "printed": "t = T()\nprint(t, x.sum())\nprint(f'{t} {t!r}')",
    "in an error": "t = T()\ny = x * 2\nraise ValueError('no')",
}  # fmt: skip


def logged(notebook: Notebook, magic: str, cell: str) -> list[str]:
    notebook.ok(f"log = []\nx = np.array([1.0, 2.0, 3.0])\n{MADE}")
    notebook(f"{magic}{cell}\nlog.append('end')" if cell.endswith("\ny = x") else f"{magic}{cell}")
    notebook("u = 1")
    return list(notebook["log"])


@pytest.mark.parametrize("options", ["", " --quiet", " --show graph"])
@pytest.mark.parametrize("name", CELLS)
def test_they_run_as_in_a_plain_cell(notebook: Notebook, name: str, options: str):
    notebook.ok("import numpy as np")
    expected = logged(notebook, "", CELLS[name])
    assert logged(notebook, f"%%tensor{options}\n", CELLS[name]) == expected


def test_a_cell_says_what_kind_of_object_it_has_made(notebook: Notebook):
    notebook.ok(f"log = []\n{MADE}")
    shown = notebook.ok("%%tensor\nt = T()").out + str(notebook.ok("%%tensor\nt = [1, T(), 'a']").displays)
    assert "T(…)" in shown
    assert "[1, T(…), 'a']" in shown


@pytest.mark.parametrize(
    "value",
    ["[1, 2]", "(1,)", "()", "set()", "{1}", "frozenset({1})", "frozenset()", "{}", "{'a': [1.5]}", "None", "range(3)"],
)
def test_other_texts_are_pythons(value: str):
    from tensormagic.ir.plain_texts import plain_text

    assert plain_text(eval(value)) == repr(eval(value))
    assert plain_text([eval(value)] * 3) == repr([eval(value)] * 3)


def test_long_containers_are_not_read_to_their_end():
    from tensormagic.ir.plain_texts import plain_text

    assert plain_text(list(range(10**6))).endswith("39, …]")
    assert plain_text({k: k for k in range(100)}).endswith("39: 39, …}")
    nested: list[object] = []
    nested.append(nested)
    assert "…" in plain_text(nested)
    assert plain_text(np.array([1, None], dtype=object)) == "array([1, None], dtype=object)"
