"""The emulator: what goes wrong in a kernel is found, each sort of it planted here."""

from fractions import Fraction

import numpy as np
import pytest

from tensormagic.backend.cuda.compiling.compiler import compiled
from tensormagic.backend.cuda.kernels.launch import Count, Launch, Scratch
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.emulator import EmulatorError, Report, blank, launch, parse
from tests.backend.cuda.emulator.arithmetic import fused

pytestmark = compiles


def run(body: str, count: int = 64, threads: int = 64, blocks: int = 1, held: str = "uint8") -> Report:
    """Run the lines of a kernel whose arrays ``a`` and ``b`` have ``count`` numbers."""
    source = "def kernel(a, b, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    parameters = (*(Scratch(name, count, "float32", written=True) for name in "ab"), Count(count))
    code = compiled(Launch("planted", source, source, parameters, blocks, threads))
    arrays = [np.arange(count, dtype=np.float32).view(np.uint8) for _ in range(2)]
    if held != "uint8":
        arrays = [np.arange(count).astype(held) for _ in range(2)]
    return launch(parse(code.data.decode()), blocks, threads, 0, [*arrays, np.int64(count)])


def test_nothing_wrong():
    assert not run("i = block() * 64 + thread()\nb[i] = a[i] * 2").issues


def test_out_of_bounds():
    with pytest.raises(EmulatorError, match=r"out of bounds: byte 256 of 256 of array 0: ld.global"):
        run("i = block() * 64 + thread() + 1\nb[i - 1] = a[i]")


def test_alignment():
    with pytest.raises(EmulatorError, match=r"an access of 16 bytes at .* is not aligned"):
        run("x = vector(a, thread() + 1, 4)\nb[thread()] = x[0]", 128)


def test_stores_out_of_bounds_and_off_their_alignment():
    with pytest.raises(EmulatorError, match=r"out of bounds: byte 256 of 256 of array 1: st.global"):
        run("b[thread() + 1] = a[thread()]")
    with pytest.raises(EmulatorError, match=r"out of bounds: byte -?\d+ of .*: st.global"):
        run("b[thread() - 1] = a[thread()]")
    with pytest.raises(EmulatorError, match=r"an access of 16 bytes at .* is not aligned: st.global"):
        run("store(b, thread() + 1, (1.0, 1.0, 1.0, 1.0))", 128)


def test_memory_that_nobody_has_written():
    """Of another launch, too: what the first one has left out, the second one reads."""
    source = "def kernel(a, b, n):\n    if thread() < n:\n        b[thread()] = a[thread()]\n"
    parameters = (*(Scratch(name, 64, "float32", written=True) for name in "ab"), Count(64))
    code = parse(compiled(Launch("planted", source, source, parameters, 1, 64)).data.decode())
    first, second, third = (blank(np.zeros(256, np.uint8)) for _ in range(3))
    assert any("uninitialised memory is read" in text for text in launch(code, 1, 64, 0, [first, second, 64]).issues)
    whole = np.ones(64, np.float32).view(np.uint8)
    for count in (64, 63):
        second = blank(np.zeros(256, np.uint8))
        assert not launch(code, 1, 64, 0, [whole, second, np.int64(count)]).issues
        issues = launch(code, 1, 64, 0, [second, third, np.int64(64)]).issues
        assert bool(issues) is (count == 63)


def test_every_element_of_a_vector_is_looked_at():
    body = "x = vector(a, thread() * 4, 4)\nb[thread()] = x[2]\nif thread() == 0:\n    a[6] = 1.0"
    assert any("stores where another thread reads" in text for text in run(body, 256).issues)
    body = "if thread() == 0:\n    a[6] = 1.0\nx = vector(a, thread() * 4, 4)\nb[thread()] = x[2]"
    assert any("reads what another thread of the launch wrote" in text for text in run(body, 256).issues)


def test_sectors_beyond_the_ideal_are_counted():
    def excess(body: str) -> int:
        return sum(t.sectors * 32 - t.bytes for text, t in run(body, 512).traffic.items() if text.startswith("ld"))

    assert excess("b[thread()] = a[thread()]") == 0
    assert excess("b[thread()] = a[thread() * 8]") == 64 * 28


@pytest.mark.parametrize(
    ("body", "issue"),
    [
        ("b[quotient(thread(), 2)] = a[thread()]", "two threads store to one element"),
        ("a[thread()] = 1.0\nb[thread()] = a[63 - thread()]", "reads what another thread of the launch wrote"),
        ("b[thread()] = a[63 - thread()]\na[thread()] = 1.0", "stores where another thread reads"),
        ('s = shared("float32", 64)\nb[thread()] = s[thread()]', "uninitialised shared memory is read"),
        ('s = shared("float32", 64)\ns[thread()] = 1.0\nb[thread()] = s[63 - thread()]', "with no barrier between"),
        (
            's = shared("float32", 64)\ns[rest(thread(), 32)] = a[thread()]\nbarrier()\nb[thread()] = s[0]',
            "two threads store to one element of shared",
        ),
        ("if thread() < 32:\n    barrier()\nb[thread()] = 1.0", "a barrier that part of a block does not reach"),
        ("if thread() < 7:\n    b[thread()] = shuffle(a[thread()], 1, -1)", "a shuffle whose mask names lanes"),
    ],
)
def test_planted(body: str, issue: str):
    assert any(issue in text for text in run(body).issues)


def test_arrays_of_another_dtype():
    body = "b[thread()] = a[thread()] * 2"
    assert not run(body, held="float32").issues
    for held in ("float64", "int32", "complex64"):
        issues = run(body, held=held).issues
        assert (held == "complex64") is not any("an element of float32 in an array of" in text for text in issues)


def test_a_barrier_between():
    body = 's = shared("float32", 64)\ns[thread()] = a[thread()]\nbarrier()\nb[thread()] = s[63 - thread()]'
    assert not run(body).issues


def test_no_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.backend.cuda.emulator.machine.MOST_STEPS", 1000)
    with pytest.raises(EmulatorError, match="does not end"):
        run("i = 0\nwhile a[i] < 1e9:\n    b[thread()] = i\n    i = rest(i + 1, 64)")


def test_a_product_and_a_sum_are_rounded_once():
    """Against fractions, where terms cancel or lie on halves; and the signs of zeros."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 900)) * 10.0 ** rng.integers(-8, 8, (2, 900))
    z = np.where(rng.random(900) < 0.5, -x * y * (1 + rng.integers(-3, 4, 900) * 2.0**-52), rng.normal(size=900))
    x[:200], y[:200], z[:200] = (rng.integers(*ends, 200) for ends in ((1, 1 << 53), (1, 1 << 20), (-2, 3)))
    z[:200] /= 2
    zeros = np.array([(0.0, -1.5, -0.0), (-0.0, 1.0, -0.0), (0.0, 1.0, -0.0), (2.0, 3.0, -6.0)]).T
    found = fused([np.concatenate(pair) for pair in zip((x, y, z), zeros, strict=True)], x.dtype)
    wanted = [float(Fraction(a) * Fraction(b) + Fraction(c)) for a, b, c in np.stack([x, y, z], 1).tolist()]
    np.testing.assert_array_equal(found, [*wanted, 0, 0, 0, 0])
    assert np.signbit(found[-4:]).tolist() == [True, True, False, False]
