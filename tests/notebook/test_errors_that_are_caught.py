"""Tracebacks that the user's code asks for in an `except`: those of the same code without the magic, drawn.

A recursion that has become a loop has no frames of its own, and is left out.
"""

from __future__ import annotations

import random
import re

import pytest

from tests.notebook.conftest import Notebook

START = "import io, logging, sys, traceback\nimport numpy as np\nx = np.arange(4.0)\nA = np.ones((2, 3))\nw, n = 0.5, 9"
FAILING = [
    "x[n]",
    "A @ x",
    "x.reshape(7)",
    "A + x",
    "x[0] = 'a'",
    "np.concatenate([x, A])",
    "x['a']",
    "A[0, 1, 2]",
    "{}[w]",
    "int('a%d' % n)",
    "(w * 2) / (w - w)",
    "x.nothing",
    "[w][n]",
    "x[[0, 9]]",
    "A.T @ A.T",
    "assert x.sum() < w, 'too much'",
    "raise ValueError(f'{w:.1f}')",
]
AROUND = [
    "{}",
    "def f(a):\n    b = a * 2\n    {}\n    return b\nf(x)",
    "class C:\n    def go(self):\n        {}\nC().go()",
    "def g(d):\n    if d: return g(d - 1) + g(d - 2)\n    return h()\ndef h():\n    {}\ng(3)",
    "for i in range(2):\n    {}",
    "if w > 0:\n    {}",
    "try:\n    {}\nexcept KeyError as e: raise RuntimeError('again') from e\nexcept TypeError: [][1]",
]
TELLING = [
    "text = traceback.format_exc()",
    "text = io.StringIO(); traceback.print_exc(file=text); text = text.getvalue()",
    "text = ''.join(traceback.format_exception(*sys.exc_info()))",
    "text = str([(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)])",
    "out = io.StringIO(); log = logging.Logger(''); log.addHandler(logging.StreamHandler(out)); log.exception(''); text = out.getvalue()",
]


def _indented(text: str, by: int = 1) -> str:
    return "\n".join("    " * by + line for line in text.splitlines())


def program(seed: int) -> str:
    draw = random.Random(seed)
    around, failing = draw.choice(AROUND), draw.choice(FAILING)
    body = "\n".join(line.replace("{}", failing) for line in around.splitlines())
    if draw.random() < 0.3:
        return (
            f"class M:\n    def __enter__(self): return self\n    def __exit__(self, *told):\n"
            f"        self.text = ''.join(traceback.format_exception(*told)); return True\nwith M() as m:\n{_indented(body)}\ntext = m.text"
        )
    return f"try:\n{_indented(body)}\nexcept Exception as error: {draw.choice(TELLING)}"


def _told(text: str) -> str:
    """A traceback without what is of the cell's name, and without the marks below a line."""
    text = re.sub(r'File "<ipython-input[^"]*"|File "/[^"]*"', "File", text)
    return "\n".join(line for line in text.splitlines() if set(line.strip()) - set("~^"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_tracebacks(notebook: Notebook, seed: int) -> None:
    text = program(seed)
    notebook.ok(START)
    notebook.ok(f"# a comment, for the line of the magic\n{text}")
    wanted = notebook["text"]
    notebook.ok(START)
    notebook.ok(f"%%tensor\n{text}")
    assert _told(notebook["text"]) == _told(wanted), text
