"""Pictures of formulas: they say what the LaTeX says, nothing runs into anything, and nothing is lost at the edge."""

# tests named elsewhere

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tensormagic.notebook.formulas import latex as written
from tensormagic.notebook.formulas.equations import formula_of
from tensormagic.notebook.formulas.latex import Big, Call, Fence, Name, Relation, latex, name_in_latex
from tensormagic.notebook.formulas.typeset import WIDEST, UnknownCommandError, broken, typeset
from tests.notebook.test_formula import CELLS, SLOPES

SVG = "{http://www.w3.org/2000/svg}"


class Text:
    """A text of a picture: what it says, and where."""

    def __init__(self, found: ET.Element) -> None:
        self.says = found.text or ""
        self.size = float(found.attrib["font-size"])
        self.left = float(found.attrib["x"])
        self.right = self.left + float(found.attrib["textLength"])
        self.top = float(found.attrib["y"]) - 0.4 * self.size
        self.bottom = float(found.attrib["y"])

    def covers(self, other: Text) -> bool:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.2 and down > 0.2


def read(svg: str) -> tuple[ET.Element, list[Text]]:
    found = ET.fromstring(svg)
    return found, [Text(t) for t in found.iter(f"{SVG}text")]


def words(latex: str) -> str:
    """What a picture of this says, in the order of the LaTeX."""
    return "".join(text.says for text in read(typeset(latex, ""))[1])


@pytest.fixture
def data(notebook):
    notebook["A"] = np.eye(3)
    notebook["w"] = np.array([0.7, -0.4, 1.3])
    notebook["b"] = 0.25
    return notebook


def looked_at(svg: str) -> list[Text]:
    found, texts = read(svg)
    _, _, wide, tall = map(float, found.attrib["viewBox"].split())
    for text in texts:
        assert text.left >= 0
        assert text.right <= wide
        assert text.top - 0.35 * text.size >= 0
        assert text.bottom + 0.2 * text.size <= tall
    assert [(a.says, b.says) for a, b in combinations(texts, 2) if a.covers(b)] == []
    return texts


@pytest.mark.parametrize("cell", CELLS)
def test_every_formula_has_its_picture(data, cell):
    data.ok(f"%%tensor --show none\nvalue = {cell}\nvalue")
    formula = formula_of(data["value"], "value")
    texts = looked_at(formula._repr_svg_())
    assert texts[0].says == "value"
    names = set(re.findall(r"\b[A-Za-z]+\b", str(formula))) & {"X", "y", "w", "A", "b"}
    assert names <= {text.says for text in texts}


@pytest.mark.parametrize("cell", SLOPES)
def test_so_have_gradients(data, cell):
    data.ok(f"%%tensor --show none\nvalue = {cell}\nvalue")
    formula = formula_of(data["value"], "value", wrt=("w", "b"))
    says = [text.says for text in looked_at(formula._repr_svg_())]
    assert says.count("∂") == 4


def test_it_says_what_the_latex_says():
    assert words(r"\mathrm{loss} = \frac{1}{n}\,\sum_{i \lt n} \log\left(1 + e^{-y_{i}\,z_{i}}\right)") == (
        "loss=1ni<nlog1+e−yizi"
    )
    assert words(r"\begin{cases} 0.5 & \text{if } w \ge -10^{-7} \\ \pi & \text{otherwise} \end{cases}") == (
        "0.5if w≥−10−7πotherwise"
    )
    assert words(r"\left\lfloor w'_{i}\right\rfloor \bmod 2 \land \theta_{2} \odot X^{\top}") == "w′imod2∧θ2⊙X⊤"
    assert words(r"\operatorname*{arg\_max}_{j} \overline{z}\,\sqrt{\infty}, \ldots") == "arg_maxjz∞,…"


@pytest.mark.parametrize(
    "name",
    [
        'a<script>alert("x")</script>',
        r"\input{secret}$",
        "🎉 %#&~^`'",
        "价格",
        "x\x00\x1b",
        "]]>",
        "a" * 100,
        "alpha",
        "Omega_3",
    ],
)
def test_whatever_names_there_are(name):
    texts = looked_at(typeset(name_in_latex(name), name))
    assert "".join(t.says for t in texts).replace("′", "").strip()
    assert not any("{" in t.says and "{" not in name for t in texts)


def test_every_sign_that_is_written_can_be_drawn():
    x, n = Name("x"), Name("n")
    expressions = [
        *(Relation(sign, x, n) for sign in written._SIGNS),
        *(Fence(kind, x) for kind in written._FENCES),
        *(Big(symbol, (("i", "<", n),), x) for symbol in (*written._BIG, "argmax")),
        *(Call(name, (x,)) for name in (*written._FUNCTIONS, *written._SYMBOLS, "log_2", "loop#3", "sign")),
        *(Name(name) for name in written._GREEK.pattern.split("|")),
        *(Name(f"name{character}x") for character in written._ESCAPED),
    ]
    assert len(expressions) > 90
    for e in expressions:
        looked_at(typeset(latex(e), ""))


def test_signs_grow_with_what_is_beside_them():
    def tall(latex: str) -> float:
        return float(read(typeset(latex, ""))[0].attrib["height"])

    plain = tall(r"\left(x\right)")
    assert tall(r"\left(\frac{x}{\frac{x}{y}}\right)") > 1.5 * plain
    assert tall(r"\sqrt{\frac{x}{y}}") > tall(r"\sqrt{x}") > tall("x")
    assert tall(r"\sum_{i \lt n} x") > 1.5 * tall(r"\frac{1}{\sum_{i \lt n} x}") / 2 > tall("x") / 2


def test_long_lines_are_broken_between_terms():
    terms = " + ".join(rf"\frac{{x_{{{k}}}}}{{y}}" for k in range(80))
    lines = broken(terms)
    assert len(lines) > 4
    assert all(wide <= WIDEST and line.startswith("+ ") for line, wide in lines[1:])
    assert " ".join(line for line, _ in lines) == terms
    below = r" \\[2pt] ".join(f"&\\quad {line}" for line, _ in lines)
    found, texts = read(typeset(rf"\begin{{aligned}}{below}\end{{aligned}}", ""))
    assert float(found.attrib["width"]) < WIDEST + 50
    assert len({t.bottom for t in texts if t.says == "+"}) == len(lines)


def test_long_products_are_broken_before_brackets_and_have_their_sign():
    inside = " + ".join(rf"x_{{{k}}}" for k in range(9))
    product = rf"\sum_{{k \lt m}} y_{{k}}\,\left({inside}\right)\,\left({inside}\right)"
    lines = broken(product, 300)
    assert [line.startswith(r"\cdot \left(") for line, _ in lines] == [False, True, True]
    assert all(wide <= 300 for _, wide in lines)
    assert broken(rf"\log\left({inside} + {inside}\right)", 100) == broken(rf"\log\left({inside} + {inside}\right)")


@pytest.mark.parametrize("sizes", [(40, 6), (3, 3)])
def test_a_formula_with_a_wide_left_side_fits_a_page_of_640(notebook, sizes):
    """JupyterLab's letters are 1.6 times as large as those of the picture, and it leaves 536 pixels."""
    rng = np.random.default_rng(0)
    notebook.shell.user_ns |= {
        "X": rng.normal(size=(9, sizes[0])),
        "W": rng.normal(size=sizes),
        "c": np.zeros(sizes[1]),
        "Y": rng.normal(size=(9, sizes[1])),
    }
    notebook.ok(
        "%%tensor -q --grad W\nz = X @ W + c\ne = np.exp(z - z.max(axis=1, keepdims=True))\n"
        "p = e / e.sum(axis=1, keepdims=True)\nloss = -np.mean(np.sum(Y * np.log(p), axis=1))"
    )
    made = formula_of(notebook["loss"], "loss", notebook.shell.user_ns, ["W"])
    assert len(made.lines) >= 4
    assert float(read(made._repr_svg_())[0].attrib["width"]) * 1.6 < 536


@pytest.mark.parametrize(("rolled", "plain"), [(0, 3), (0, 50), (20, 0), (20, 3), (20, 50)])
def test_formulas_of_many_steps_are_cut_and_no_line_is_too_long(notebook, rolled, plain):
    notebook["x"] = 0.5
    notebook.ok(f"%%tensor -q\ns = x\nfor k in range({rolled}):\n    s = s * np.sin(s) + k\ns = s * 1.5")
    notebook.ok(f"for k in range({plain}):\n    s = s * np.sin(s) + k / (1 + s**2)")
    made = formula_of(notebook["s"], "s", notebook.shell.user_ns, ["x"])
    assert len(made.lines) >= 2
    for _, right in made.lines:
        assert max(wide for _, wide in broken(latex(right))) <= WIDEST
    assert float(read(made._repr_svg_())[0].attrib["width"]) < WIDEST + 80


@pytest.mark.parametrize(
    "latex", [r"\evil", r"\frac{1}", r"\left(x", "x}", r"\begin{matrix} x \end{matrix}", r"\left<x\right>"]
)
def test_other_latex_is_refused(latex):
    with pytest.raises(UnknownCommandError):
        typeset(latex, "")


def test_it_is_offered_to_pages_beside_the_latex(data):
    shown = data.ok("%%tensor --show none\ns = w.sum()\ns").value
    made, _ = data.shell.display_formatter.format(shown.formula())
    assert set(made) == {"text/plain", "text/latex", "image/svg+xml"}
    title = ET.fromstring(made["image/svg+xml"]).findtext(f"{SVG}title")
    assert title.startswith("s = sum_{i<n} w[i]")
    assert "prefers-color-scheme" not in made["image/svg+xml"]
