"""What a view of backpropagation shows: texts, steps, sliders, rays, the picture."""

from __future__ import annotations

import math
import re
from xml.dom import minidom

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.node import make
from tensormagic.notebook.backprop.frame import described, told
from tensormagic.notebook.backprop.picture import drawn, standalone
from tensormagic.notebook.backprop.sheet import Sheet
from tensormagic.notebook.backprop.subject import of_function
from tensormagic.notebook.backprop.wording import Headings
from tensormagic.ops.contract import CONTRACT

pytestmark = pytest.mark.usefixtures("by_numpy")
RANDOM = np.random.default_rng(0)
PRODUCTS = (
    *("ab,b->a", "ab,bc->ac", "a,a->", "a,ab->b", "ab,a->b", "ab,ac->bc", "ab,cb->ac", "a,b->ab", "a,b->ba"),
    *("ab,ac->cb", "ab,ca->cb", "a,ba->b", "ab,bc->ca", "ab,cb->ca", "ab,ca->bc", "ab,ab->", "ab,ab->a"),
)


def neuron(x, w, b):
    z = x * w + b
    a = 1 / (1 + np.exp(-z))
    return (a - 1.0) ** 2


def layer(W, x):
    h = np.tanh(W @ x)
    return np.mean(h**2)


@pytest.fixture
def sheet() -> Sheet:
    return Sheet(of_function(neuron, (0.5, 1.5, 0.1)))


def test_nodes_are_called_as_the_code_calls_them(sheet):
    assert [n.heading for n in sheet.nodes] == [
        "x", "w", "x × w", "b", "z = x × w + b", "−z", "exp(−z)", "1 + exp(−z)", "a = 1 / (1 + exp(−z))", "a − 1",
        "neuron = (a − 1) ** 2",
    ]  # fmt: skip
    assert [line.text for line in sheet.lines] == ["z = x * w + b", "a = 1 / (1 + np.exp(-z))", "return (a - 1.0) ** 2"]
    assert [n.line for n in sheet.nodes] == [None, None, 0, None, 0, 1, 1, 1, 1, 2, 2]


def test_formulas_are_the_adjoint_times_the_slope(sheet):
    found = {(sheet.nodes[u.target].heading, sheet.nodes[u.source].heading): u.formula for u in sheet.uses}
    assert found["x × w", "x"] == "adjoint × w"
    assert found["exp(−z)", "−z"] == "adjoint × exp(−z)"
    assert found["−z", "z = x × w + b"] == "−adjoint"
    assert found["neuron = (a − 1) ** 2", "a − 1"] == "adjoint × 2 × (a − 1)"


def test_products_of_matrices_read_as_code():
    sheet = Sheet(of_function(layer, (np.ones((2, 3)), np.arange(3.0))))
    found = {sheet.nodes[u.source].heading: u.formula for u in sheet.uses}
    assert found["W"] == "outer(adjoint, x)"
    assert found["x"] == "W.T @ adjoint"
    assert found["h = tanh(W @ x)"] == "adjoint × 2 × h"


def softmax(W, c):
    e = np.exp(DATA @ W + c)
    p = e / e.sum(axis=1, keepdims=True)
    return -np.mean(np.sum(WANTED * np.log(p), axis=1))


DATA, WANTED = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(5, 2))


def test_what_is_stretched_is_summed_on_its_arrow_and_values_have_their_names():
    sheet = Sheet(of_function(softmax, (RANDOM.normal(size=(3, 2)), np.zeros(2))))
    assert not [n.heading for n in sheet.nodes if "broadcast" in n.heading or "reshape" in n.heading]
    found = {(sheet.nodes[u.target].heading, sheet.nodes[u.source].heading): u.formula for u in sheet.uses}
    assert found["DATA @ W + c", "c"] == "sum(adjoint, axis=0)"
    assert found["e = exp(DATA @ W + c)", "DATA @ W + c"] == "adjoint × e"
    assert found["sum(e, axis=1, keepdims=True)", "e = exp(DATA @ W + c)"] == "adjoint, repeated"
    (divided,) = [text for (target, source), text in found.items() if target[0] == "p" and source.startswith("sum")]
    assert divided == "−sum(adjoint × p / ·, axis=1, keepdims=True)"


@pytest.mark.parametrize("subscripts", PRODUCTS)
def test_every_product_of_matrices_is_written_right(subscripts):
    left, right = subscripts.partition("->")[0].split(",")
    sizes = dict(zip("abc", (2, 3, 4), strict=True))
    first, second = (RANDOM.normal(size=[sizes[c] for c in part]) for part in (left, right))
    graph = tm.trace(lambda L, R: L.sum() + R.sum(), first, second)
    node = make(CONTRACT, graph.parameters, subscripts=subscripts)
    text = Headings([*graph.parameters, node], graph, {}, {}).computes[node]
    found = eval(text, {"L": first, "R": second, "outer": np.outer, "einsum": np.einsum})
    np.testing.assert_allclose(found, np.einsum(subscripts, first, second), rtol=1e-12)


def test_steps_go_forward_then_back(sheet):
    kinds = [what for what, _ in sheet.steps]
    assert kinds == ["value"] * 8 + ["seed"] + ["use"] * 10 + ["done"]
    at = {step: k for k, step in enumerate(sheet.steps)}
    for k, use in enumerate(sheet.uses):
        assert at["use", k] > max((at["use", other] for other in sheet.nodes[use.target].uses), default=0)


def test_sliders_stand_at_the_inputs_and_move_them(sheet):
    assert [(p.name, p.start[0]) for p in sheet.parameters] == [("x", 0.5), ("w", 1.5), ("b", 0.1)]
    frame, note = sheet.at([0.25, -2.0, 0.5])
    assert note == ""
    gradient = tm.grad(neuron, (0, 1, 2))(0.25, -2.0, 0.5)
    shown = {n.heading: n for n in sheet.nodes}
    assert [frame[shown[name].adjoint.at] for name in "xwb"] == pytest.approx(gradient, rel=1e-12)
    assert frame[sheet.result.value.at] == pytest.approx(neuron(0.25, -2.0, 0.5), rel=1e-12)


def test_ranges_are_the_users(sheet):
    narrow = Sheet(of_function(neuron, (0.5, 1.5, 0.1)), {"w": (2, 3, 0.5)})
    assert [(p.name, p.start, p.spans[0].steps) for p in narrow.parameters] == [("w", (2.0,), 2)]
    assert narrow.result.value.text(narrow.frame) == told(neuron(0.5, 2.0, 0.1))
    with pytest.raises(TypeError, match="q is no floating number among the inputs of neuron; there are: x, w, b"):
        Sheet(of_function(neuron, (0.5, 1.5, 0.1)), {"q": (0, 1)})


def test_a_float_input_keeps_its_kind():
    sheet = Sheet(of_function(lambda a, b: a * b, (np.float32(0.5), 2.0)))
    moved = sheet.values_at([0.25, 1.0])
    assert [type(v) for v in moved] == [np.float32, float]


def test_rays_hold_exact_frames(sheet):
    counts, floats = sheet.star([0.5, 1.5, 0.1], 1e-4)
    size = len(sheet.frame)
    assert len(counts) == 3
    assert sum(count * (size + 1) for count in counts) == len(floats)
    axis, frames = floats[: counts[0]], np.reshape(floats[counts[0] : counts[0] * (size + 1)], (counts[0], size))
    assert (axis[0], axis[-1]) == (-0.5, 1.5)
    for x, frame in zip(axis, frames, strict=True):
        np.testing.assert_allclose(frame, sheet.at([x, 1.5, 0.1])[0], rtol=1e-13)
    assert sheet.star([0.5, 1.5, 0.1], 10.0) == ([], [])


def test_a_point_without_a_value_is_a_gap_in_a_ray():
    sheet = Sheet(of_function(lambda x: np.linalg.inv(np.eye(2) * x).sum(), (1.0,)), {"x": (-1, 1, 0.05)})
    counts, floats = sheet.star([1.0], 1e-4)
    frames = np.reshape(floats[counts[0] :], (counts[0], -1))
    at = floats[: counts[0]].index(pytest.approx(0.0, abs=1e-9))
    assert np.isnan(frames[at]).all()
    assert np.isfinite(np.delete(frames, at, axis=0)).all()


def test_where_rewriting_gives_another_gradient_the_note_says_so():
    sheet = Sheet(of_function(lambda x: np.log(1 + np.exp(x)), (1000.0,)))
    assert sheet.notes == "x: tm.grad gives 1, since it rewrites the graph first"
    assert sheet.notes in standalone(sheet, drawn(sheet))
    assert sheet.at([1.0])[1] == ""


def test_the_table_is_text_for_pages_without_pictures(sheet):
    lines = Sheet(of_function(lambda x: x * x + x, (3.0,))).table().splitlines()
    assert lines[0] == "backprop of value = 12: 3 nodes"
    assert re.split(r"  +", lines[2]) == ["x", "input", "3", "7", "= 1 + 3 + 3"]
    assert [re.split(r"  +", line)[2:] for line in lines[3:]] == [["9", "1"], ["12", "1"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.25, "-0.25"), (123456.0, "123460"), (1.23456e-7, "1.2346e-7"), (-np.inf, "-inf"), (np.nan, "nan"),
     (1e7, "1e7"), (-2.5e-300, "-2.5e-300")],
)  # fmt: skip
def test_numbers_for_people(value, text):
    assert told(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([1.0, -2.5]), "[1, -2.5]"),
        (np.arange(4.0), "(4,), norm 3.7417"),
        (np.ones((3, 2)), "(3, 2), norm 2.4495"),
        (np.zeros((0, 2)), "(0, 2), norm 0"),
        (True, "True"),
        (1 - 2j, "1-2j"),
        (np.array([1j, 2.0, 0, 0]), "(4,), norm 2.2361"),
        ((1.0, 2.0), "2 results"),
    ],
)
def test_values_for_people(value, text):
    quantity = described(value)
    assert quantity.text(quantity.pack(value)) == text
    assert len(quantity.pack(value)) == quantity.size


def test_a_heat_map_is_small_and_keeps_its_ends():
    value = np.arange(10_000.0).reshape(100, 100)
    quantity = described(value)
    packed = quantity.pack(value)
    assert len(packed) == 4 + 6 * 12
    assert (packed[4], packed[-1]) == (0.0, 9999.0)
    assert packed[1:4] == [0.0, 9999.0, 0.0]
    with pytest.raises(ValueError, match="shape of a value depends on the inputs"):
        quantity.pack(value[1:])


def test_the_picture_has_every_node_and_cards_that_do_not_overlap(sheet):
    document = minidom.parseString(standalone(sheet, drawn(sheet)))
    groups = document.getElementsByTagName("g")
    assert sum(g.getAttribute("class").startswith("node") for g in groups) == len(sheet.nodes)
    assert sum(g.getAttribute("class") == "card" for g in groups) == 10
    assert document.getElementsByTagName("desc")[0].firstChild.data == sheet.table()
    places = re.findall(
        r'<g transform="translate\(([-\d.]+) ([-\d.]+)\)"><g class="(?:node|card).*?(?:d="M[^"]*"|width="([\d.]+)" height="([\d.]+)")',
        drawn(sheet).markup,
    )
    cards = [(float(x), float(y), float(w), float(h)) for x, y, w, h in places if w]
    assert len(cards) == 10
    for k, (x, y, w, h) in enumerate(cards):
        for u, v, other_w, other_h in cards[:k]:
            assert abs(x - u) >= (w + other_w) / 2 or abs(y - v) >= (h + other_h) / 2


def test_hostile_names_are_text():
    names = ["<script>alert(1)</script>", "\"'>&", "n" * 100_000, "\u202egnp.exe", "🦊\x00"]
    sheet = Sheet(of_function(lambda p: sum(v * v for v in p.values()), (dict.fromkeys(names, 1.0),)))
    picture = standalone(sheet, drawn(sheet))
    assert minidom.parseString(picture).getElementsByTagName("script").length == 0
    assert len(picture) < 60_000
    assert "\u202e" not in picture
    assert math.isfinite(drawn(sheet).width)


@pytest.mark.parametrize(
    ("function", "arguments", "cards"),
    [
        (lambda a, x: np.sum(a * x), (2.0, np.arange(3.0)), {"sum(adjoint × [0, 1, 2])", "adjoint × [2, 2, 2]"}),
        (lambda a, x: np.mean(np.tanh(x + a)), (0.0, np.zeros(2)), {"sum(adjoint × [1, 1])", "adjoint × [0.5, 0.5]"}),
        (lambda a, b: a * b, (2.0, 3.0), {"adjoint × 3", "adjoint × 2"}),
        (lambda a, x: np.max(x) * a, (2.0, np.array([1.0, 4.0])), {"adjoint × [0, 1]", "adjoint × 4", "adjoint × 2"}),
        (lambda a, x: np.dot(x, x) / a, (2.0, np.array([1.0, 4.0])), {"adjoint × [1, 4]", "adjoint × 0.5"}),
        (lambda a, x: np.sum(np.where(x > 1, a, x)), (2.0, np.arange(3.0)), {"sum(adjoint × [0, 0, 1])"}),
    ],
)
def test_products_have_one_sign_and_sums_are_written_out(function, arguments, cards):
    sheet = Sheet(of_function(function, arguments))
    texts = [sheet.card_text(use, sheet.frame) for use in sheet.uses if use.part is not None]
    assert cards <= set(texts)
    assert not any(sign in text for text in texts for sign in "⊙·")


def test_arrows_have_a_second_head_where_an_adjoint_goes_back():
    flows = Sheet(of_function(lambda a, x: np.sum(a * np.floor(x)), (2.0, np.arange(3.0))))
    markup = drawn(flows).markup
    back = sum(use.part is not None for use in flows.uses)
    assert 0 < back < len(flows.uses)  # nothing goes back through floor
    assert markup.count('class="up"') == 2 * back  # to the card and from it
    assert markup.count('class="down"') == 2 * back + len(flows.uses) - back


def test_squares_stand_under_their_number():
    document = minidom.parseString(
        standalone(sheet_ := Sheet(of_function(lambda x: np.sum(x**2), (np.arange(9.0),))), drawn(sheet_))
    )
    for node in (g for g in document.getElementsByTagName("g") if g.getAttribute("class").startswith("node input")):
        rows = {t.getAttribute("data-p"): float(t.getAttribute("y")) for t in node.getElementsByTagName("text")}
        tops = {g.getAttribute("data-c"): float(g.getAttribute("data-y")) for g in node.getElementsByTagName("g")}
        assert rows["value"] < tops["value"] < rows["adjoint"] < tops["adjoint"]


@pytest.mark.parametrize("shape", [(6, 3), (40, 9), (2, 3, 4), (12,), (5, 1), (1, 30)])
def test_the_outline_of_an_input_leaves_room_for_its_text(shape):
    """A pill as high as six rows of squares is a circle, and numbers stood outside of it."""
    sheet = Sheet(of_function(lambda x: np.sum(x**2), (np.ones(shape),)))
    document = minidom.parseString(standalone(sheet, drawn(sheet)))
    node = next(g for g in document.getElementsByTagName("g") if g.getAttribute("class").startswith("node input"))
    radius = float(re.search(r"a([\d.]+) ", node.getElementsByTagName("path")[0].getAttribute("d"))[1])
    assert radius <= 30
