# ruff: noqa: NPY002 (NumPy's legacy generator is tested too)
"""Random draws in captured functions are NumPy's own, bit for bit and in program order, for every method and bit generator."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

pytestmark = pytest.mark.usefixtures("by_numpy")
BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "normal": (0.5, 2.0),
    "uniform": (-1.0, 3.0),
    "laplace": (0.5, 2.0),
    "logistic": (0.5, 2.0),
    "gumbel": (0.5, 2.0),
    "lognormal": (0.5, 0.25),
    "exponential": (1.5,),
    "rayleigh": (1.5,),
    "gamma": (2.5, 1.5),
    "standard_gamma": (0.5,),
    "beta": (0.5, 2.5),
    "chisquare": (3.0,),
    "noncentral_chisquare": (3.0, 0.5),
    "f": (3.0, 4.0),
    "noncentral_f": (3.0, 4.0, 0.5),
    "standard_t": (3.0,),
    "standard_cauchy": (),
    "standard_normal": (),
    "standard_exponential": (),
    "random": (),
    "triangular": (-1.0, 0.5, 2.0),
    "vonmises": (0.5, 2.0),
    "wald": (0.5, 2.0),
    "weibull": (1.5,),
    "power": (1.5,),
    "pareto": (1.5,),
    "poisson": (3.0,),
    "binomial": (10, 0.25),
    "geometric": (0.25,),
    "hypergeometric": (10, 5, 6),
    "negative_binomial": (5, 0.25),
    "zipf": (2.5,),
    "logseries": (0.5,),
}
NEW: list[tuple[str, Callable[[Any], Any]]] = [
    ("integers", lambda r: r.integers(10, size=5)),
    ("integers to the end", lambda r: r.integers(2, 4, size=(2, 3), endpoint=True, dtype=np.uint8)),
    ("integers of arrays", lambda r: r.integers(np.array([1, 2, 3]), 9)),
    ("an integer", lambda r: r.integers(10)),
    ("an int", lambda r: r.integers(10, dtype=int)),
    ("a small integer", lambda r: r.integers(10, dtype=np.int16)),
    ("half precision", lambda r: r.random(5, dtype=np.float32)),
    ("one of half precision", lambda r: r.random(dtype=np.float32)),
    ("normal of half precision", lambda r: r.standard_normal((2, 2), dtype="f4")),
    ("exponential by inversion", lambda r: r.standard_exponential(3, method="inv")),
    ("choice", lambda r: r.choice(9, 4)),
    ("choice of one", lambda r: r.choice(9)),
    ("choice without replacement", lambda r: r.choice(9, 4, replace=False)),
    ("choice unshuffled", lambda r: r.choice(9, 4, replace=False, shuffle=False)),
    ("choice by weight", lambda r: r.choice(3, (2, 2), p=np.array([0.2, 0.3, 0.5]))),
    ("choice by weight without replacement", lambda r: r.choice(3, 2, replace=False, p=[0.2, 0.3, 0.5])),
    ("choice of an array", lambda r: r.choice(np.arange(5.0), 3)),
    ("choice of one of an array", lambda r: r.choice(np.arange(5.0))),
    ("choice of columns", lambda r: r.choice(np.arange(10.0).reshape(2, 5), 3, axis=1)),
    ("permutation", lambda r: r.permutation(7)),
    ("permutation of an array", lambda r: r.permutation(np.arange(7.0) ** 2)),
    ("permutation of rows", lambda r: r.permutation(np.arange(12.0).reshape(4, 3))),
    ("permutation of columns", lambda r: r.permutation(np.arange(12.0).reshape(4, 3), axis=1)),
    ("permuted", lambda r: r.permuted(np.arange(12.0).reshape(3, 4), axis=1)),
    ("permuted over all", lambda r: r.permuted(np.arange(12.0).reshape(3, 4))),
    ("multivariate normal", lambda r: r.multivariate_normal([0.5, 1.0], [[2.0, 0.5], [0.5, 1.0]], 3)),
    ("one multivariate normal", lambda r: r.multivariate_normal([0.5, 1.0], [[2.0, 0.5], [0.5, 1.0]])),
    (
        "multivariate normal by Cholesky",
        lambda r: r.multivariate_normal([0.5, 1.0], [[2.0, 0.5], [0.5, 1.0]], (2, 2), method="cholesky"),
    ),
    ("dirichlet", lambda r: r.dirichlet([1.0, 2.0, 3.0], 2)),
    ("one dirichlet", lambda r: r.dirichlet((0.05, 0.02))),
    ("multinomial", lambda r: r.multinomial(10, [0.2, 0.3, 0.5], size=2)),
    ("multinomial of arrays", lambda r: r.multinomial([10, 20], [[0.2, 0.8], [0.5, 0.5]])),
    ("multivariate hypergeometric", lambda r: r.multivariate_hypergeometric([3, 4, 5], 6, 2)),
    ("broadcast", lambda r: r.normal(np.arange(3.0)[:, None], np.ones(2))),
    ("broadcast into a size", lambda r: r.normal(np.arange(3.0), size=(2, 3))),
    ("no elements", lambda r: r.normal(size=0)),
    ("no axes", lambda r: r.normal(size=())),
    ("a list", lambda r: r.poisson([1.0, 100.0])),
    ("in order", lambda r: r.normal(size=2) + 10 * r.integers(5, size=2) + 100 * r.normal(size=2)),
]
OLD: list[tuple[str, Callable[[Any], Any]]] = [
    ("rand", lambda r: r.rand(2, 3)),
    ("one rand", lambda r: r.rand()),
    ("randn", lambda r: r.randn(3)),
    ("randn keeps the second number", lambda r: r.randn() + r.randn(2).sum() + r.randn()),
    ("random_sample", lambda r: r.random_sample(4)),
    ("randint", lambda r: r.randint(10, size=5)),
    ("one randint", lambda r: r.randint(3, 10)),
    ("a small randint", lambda r: r.randint(3, 10, dtype=np.int8)),
    ("choice", lambda r: r.choice(9, 4)),
    ("choice without replacement", lambda r: r.choice(9, 4, replace=False)),
    ("choice of an array", lambda r: r.choice(np.arange(5.0), 3, p=np.full(5, 0.2))),
    ("permutation", lambda r: r.permutation(7)),
    ("permutation of rows", lambda r: r.permutation(np.arange(12.0).reshape(4, 3))),
    ("multivariate normal", lambda r: r.multivariate_normal([0.5, 1.0], [[2.0, 0.5], [0.5, 1.0]], 3)),
    ("dirichlet", lambda r: r.dirichlet([1.0, 2.0, 3.0], 2)),
    ("multinomial", lambda r: r.multinomial(10, [0.2, 0.3, 0.5], size=2)),
    ("in order", lambda r: r.normal(size=2) + 10 * r.randint(5, size=2) + 100 * r.normal(size=2)),
]


def as_numpy(draw: Callable[[Any], Any], generator: Any, twin: Any) -> None:
    """A captured draw gives what NumPy gives, and leaves the generator where NumPy leaves it."""
    found = tm.tensor(lambda r: draw(r))(generator)
    expected = draw(twin)
    assert type(found) is type(expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.shape(found) == np.shape(expected)
    assert np.array_equal(found, expected)
    assert generator.normal() == twin.normal()


@pytest.mark.parametrize("method", PARAMETERS)
@pytest.mark.parametrize("size", [None, 3, (2, 3)], ids=str)
def test_distributions(method: str, size: Any) -> None:
    def draw(r: Any) -> Any:
        return getattr(r, method)(*PARAMETERS[method], size=size)

    as_numpy(draw, np.random.default_rng(7), np.random.default_rng(7))
    as_numpy(draw, np.random.RandomState(7), np.random.RandomState(7))


@pytest.mark.parametrize(("what", "draw"), NEW, ids=[name for name, _ in NEW])
def test_methods(what: str, draw: Callable[[Any], Any]) -> None:
    as_numpy(draw, np.random.default_rng(7), np.random.default_rng(7))


@pytest.mark.parametrize(("what", "draw"), OLD, ids=[name for name, _ in OLD])
def test_methods_of_the_legacy_generator(what: str, draw: Callable[[Any], Any]) -> None:
    as_numpy(draw, np.random.RandomState(7), np.random.RandomState(7))


@pytest.mark.parametrize("bits", BITS)
def test_bit_generators(bits: str) -> None:
    def draw(r: Any) -> Any:
        return r.normal(size=3) + r.integers(100, size=3, dtype=np.int32) + r.random(dtype=np.float32)

    as_numpy(draw, *(np.random.Generator(getattr(np.random, bits)(5)) for _ in range(2)))

    @tm.tensor
    def made(x: Any) -> Any:
        return x * np.random.Generator(getattr(np.random, bits)(5)).normal(size=3)

    assert np.array_equal(made(1.0), np.random.Generator(getattr(np.random, bits)(5)).normal(size=3))


def test_the_functions_of_the_module() -> None:
    @tm.tensor
    def f(x: Any) -> Any:
        return x + np.random.rand(3) + np.random.randint(5) + np.random.normal(1.0, 2.0, 3)

    np.random.seed(6)
    found = [f(np.zeros(3)) for _ in range(2)]
    after = np.random.rand()
    twin = np.random.RandomState(6)
    assert all(np.array_equal(v, twin.rand(3) + twin.randint(5) + twin.normal(1.0, 2.0, 3)) for v in found)
    assert after == twin.rand()


def test_a_seed_in_a_function_begins_anew() -> None:
    @tm.tensor
    def f(x: Any, seed: Any) -> Any:
        np.random.seed(seed)
        return x * np.random.standard_normal(3)

    assert np.array_equal(f(1.0, 6), np.random.RandomState(6).standard_normal(3))
    assert np.array_equal(f(1.0, 8), np.random.RandomState(8).standard_normal(3))
    twin = np.random.RandomState(8)
    twin.standard_normal(3)
    assert np.random.rand() == twin.rand()


def test_a_function_makes_its_own_generator_of_a_seed() -> None:
    @tm.tensor
    def f(x: Any, seed: Any) -> Any:
        return x * np.random.default_rng(seed).random(3)

    assert np.array_equal(f(1.0, 6), np.random.default_rng(6).random(3))
    assert np.array_equal(f(1.0, np.array([6, 7])), np.random.default_rng([6, 7]).random(3))


GLOBAL = np.random.default_rng(2)


def test_a_function_that_reads_a_generator_draws_at_every_call() -> None:
    @tm.tensor
    def f(x: Any) -> Any:
        return x + GLOBAL.normal(size=2)

    GLOBAL.bit_generator.state = np.random.default_rng(2).bit_generator.state
    twin = np.random.default_rng(2)
    for _ in range(3):
        assert np.array_equal(f(np.zeros(2)), twin.normal(size=2))
    assert GLOBAL.bit_generator.state == twin.bit_generator.state


def test_equal_draws_are_not_merged_and_unused_ones_not_removed() -> None:
    @tm.tensor
    def f(r: Any) -> Any:
        first = r.normal()
        r.normal(size=3)
        return r.normal() - first

    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    first, _, last = twin.normal(), twin.normal(size=3), twin.normal()
    assert f(generator) == last - first
    assert generator.bit_generator.state == twin.bit_generator.state


def walk(r: Any, x: Any, n: int) -> Any:
    for k in range(n):
        if r.random() < 0.5:  # noqa: SIM108 (a branch is what is tested)
            x = x + r.normal(size=2) * k
        else:
            x = x - r.exponential()
    return x


def test_rolled_loops_and_branches(tier: str) -> None:
    graph = tm.trace(lambda x: walk(np.random.default_rng(5), x, 50), "float64[2]")
    assert any(n.op.name == "loop" for n in graph.nodes)
    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    assert np.array_equal(tm.tensor(walk)(generator, np.zeros(2), 50), walk(twin, np.zeros(2), 50))
    assert generator.bit_generator.state == twin.bit_generator.state


def test_a_while_loop_draws_until_it_is_done() -> None:
    def f(r: Any, x: Any) -> Any:
        while x < 5.0:
            x = x + r.random()
        return x

    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    assert tm.tensor(f)(generator, 0.25) == f(twin, 0.25)
    assert generator.bit_generator.state == twin.bit_generator.state


def test_symbolic_sizes_and_lazy_parameters() -> None:
    @tm.tensor
    def f(r: Any, x: Any, s: Any) -> Any:
        return r.normal(x, s * 2, size=x.shape) + r.permutation(len(x))

    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    for n in (4, 7):
        x = np.arange(float(n))
        assert np.array_equal(f(generator, x, 0.5), twin.normal(x, 1.0, size=n) + twin.permutation(n))


def test_shuffles_store_into_their_argument() -> None:
    def f(r: Any, x: Any) -> Any:
        y = x.copy()
        r.shuffle(y)
        r.shuffle(y, axis=1)
        return y

    x = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(tm.tensor(f)(np.random.default_rng(2), x), f(np.random.default_rng(2), x))

    def legacy(x: Any) -> Any:
        y = x.copy()
        np.random.RandomState(3).shuffle(y)
        return y

    assert np.array_equal(tm.tensor(legacy)(x), legacy(x))


def test_out_is_filled() -> None:
    def f(r: Any, x: Any) -> Any:
        y = np.zeros_like(x)
        r.standard_normal(out=y)
        r.permuted(y, axis=0, out=y)
        return y + r.random(out=np.empty(3))

    assert np.array_equal(tm.tensor(f)(np.random.default_rng(2), np.ones(3)), f(np.random.default_rng(2), np.ones(3)))


def test_one_generator_under_two_names_is_one_stream() -> None:
    def f(r: Any, s: Any) -> Any:
        return r.normal() + 2 * s.normal()

    captured = tm.tensor(f)
    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    assert captured(generator, generator) == f(twin, twin)
    assert captured(generator, np.random.default_rng(9)) == f(twin, np.random.default_rng(9))
    assert captured(generator, generator) == f(twin, twin)
    assert generator.bit_generator.state == twin.bit_generator.state


def test_one_function_takes_generators_of_all_kinds() -> None:
    captured = tm.tensor(lambda r: r.normal(size=2))
    for bits in BITS:
        made = [np.random.Generator(getattr(np.random, bits)(5)) for _ in range(2)]
        assert np.array_equal(captured(made[0]), made[1].normal(size=2))
    assert np.array_equal(captured(np.random.RandomState(1)), np.random.RandomState(1).normal(size=2))


def test_a_bit_generator_that_two_generators_share() -> None:
    def f(x: Any) -> Any:
        bits = np.random.PCG64(4)
        return x + np.random.Generator(bits).normal() + 2 * np.random.Generator(bits).normal()

    assert tm.tensor(f)(1.0) == f(1.0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda r: r.normal(0.0, -1.0),
        lambda r: r.normal(np.zeros(3), size=2),
        lambda r: r.choice(3, 5, replace=False),
        lambda r: r.choice(3, p=[0.5, 0.5, 0.5]),
        lambda r: r.binomial(5, 2.0),
        lambda r: r.normal(size=-1),
        lambda r: r.integers(5, 2),
        lambda r: r.normal(0.0, 1.0, 2, 3),
        lambda r: r.normal(mean=0.0),
        lambda r: r.permutation(np.float64(3.5)),
    ],
)
def test_errors_are_numpys_and_draw_nothing(draw: Callable[[Any], Any]) -> None:
    twin = np.random.default_rng(2)
    with pytest.raises(Exception) as expected:  # noqa: PT011 (NumPy's own, whatever it is)
        draw(twin)
    generator = np.random.default_rng(2)
    with pytest.raises(expected.type):
        tm.tensor(lambda r: draw(r))(generator)
    assert generator.bit_generator.state == np.random.default_rng(2).bit_generator.state


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (lambda r: r.bytes(3), "bytes"),
        (lambda _r: np.random.default_rng().normal(), "without a seed"),
        (lambda r: r.shuffle([1, 2, 3]), "shuffle of a list"),
        (lambda _r: np.random.get_state(), "get_state"),
    ],
)
def test_what_is_refused_says_so(draw: Callable[[Any], Any], told: str) -> None:
    with pytest.raises(CaptureError, match=told):
        tm.tensor(lambda r: draw(r)).graph(np.random.default_rng(2))


class Walker:
    shared = np.random.default_rng(6)

    def __init__(self, seed: int) -> None:
        self.rng, self.old = np.random.default_rng(seed), np.random.RandomState(seed)
        self.table, self.n = {"r": np.random.default_rng(seed + 1)}, 0

    def step(self, x: Any) -> Any:
        self.n += 1
        return x + self.rng.normal(size=2) + self.n

    def all(self, x: Any) -> Any:
        return self.step(x) + self.old.rand() + self.table["r"].random() + self.shared.random()


WALKS: list[Callable[[Any, Any], Any]] = [
    lambda w, x: w.step(x),
    lambda w, x: w.step(x) * w.rng.random(),
    lambda w, x: w.all(x),
    lambda w, x: x + w.table["r"].choice([1.0, 2.0, 3.0]) * (w.rng.random() < 0.5),
    lambda w, x: [g.normal() + x for g in (w.rng, w.table["r"])][1],
    lambda w, x: w.step(x) if w.rng.random() < 0.5 else -x,
]


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("given", [True, False])
def test_generators_in_objects_are_drawn_from_as_by_python(walk: Callable[[Any, Any], Any], given: bool) -> None:
    """For one object, for another of the same class, and where the object has got another generator."""

    def seen(wrap: Callable[[Any], Any]) -> list[Any]:
        Walker.shared = np.random.default_rng(6)
        one, other = Walker(1), Walker(2)
        f = wrap(walk) if given else wrap(lambda x: walk(one, x))
        found: list[Any] = []
        for k, w in enumerate((one, one, one, other, one)):
            if k == 4:
                one.rng = np.random.default_rng(9)
            x = np.array([1.0, k])
            found.append((f(w, x) if given else f(x)).tolist())
        return [*found, one.n, other.n, one.rng.random(), other.rng.random(), one.old.rand(), one.table["r"].random()]

    assert seen(tm.tensor) == seen(lambda f: f)


def test_a_graph_that_draws_is_text_that_round_trips() -> None:
    graph = tm.trace(lambda x: walk(np.random.default_rng(5), x, 50) + np.random.RandomState(1).randn(2), "float64[2]")
    assert tm.parse(str(graph)) == graph
    with warnings.catch_warnings(action="error"):
        assert tm.rewrite(graph).results


def test_numbers_of_a_factorisation_reach_a_compiled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numba")

    def f(a: Any, x: Any) -> Any:
        values, _ = np.linalg.eigh(a)
        y = x.copy()
        for k in range(len(x)):
            y = y * 0.5 + values[k]
            y[k] = 2
        return y

    a, x = np.diag([1.0, 2.0, 3.0]), np.ones(3)
    assert np.array_equal(tm.tensor(f)(a, x), f(a, x))


def test_functions_that_draw_go_on_with_the_generator_on_lazy_arrays_outside_a_cell() -> None:
    expected = copy.deepcopy(GLOBAL)
    drawing = tm.tensor(lambda v: v + GLOBAL.normal(size=3) if v.sum() >= 0 else v)
    for _ in range(2):
        np.testing.assert_array_equal(drawing(tm.tensor(np.zeros(3))), expected.normal(size=3))
    found = tm.vmap(lambda v: v + GLOBAL.random())(tm.tensor(np.zeros(3)))
    np.testing.assert_array_equal(found, expected.random(3))
    assert GLOBAL.bit_generator.state == expected.bit_generator.state
