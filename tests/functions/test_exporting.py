"""Compiled functions for C: a program of C calls them without Python, and gets NumPy's values and errors."""

import ctypes
import itertools
import shutil
import subprocess
import threading

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.cli import main
from tensormagic.functions.compiled import exporting
from tensormagic.ir.errors import ArgumentError

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no compiler of C, which builds the library"
)
RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 2))

PROGRAM = r"""
#include "loss.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

int main(void) {
    double x[] = {0.5, -1, 2, 0, 3, 1}, w[] = {0.25, 1, -0.5}, slope[3] = {0}, value = 0;
    if (loss(2, x, w, 1, &value, slope) != 0) return 1;
    printf("%.17g %.17g %.17g %.17g\n", value, slope[0], slope[1], slope[2]);
    if (loss(1, x, w, 1, &value, slope) != 0) return 2;
    printf("%.17g %.17g %.17g %.17g\n", value, slope[0], slope[1], slope[2]);
    printf("%d %s\n", loss(2, x, w, 0, &value, slope), loss_error());
    printf("%d %s\n", loss(-1, x, w, 1, &value, slope), loss_error());
    printf("%d %s\n", loss(2, x, w, 1, &value, x + 4), loss_error());
    clock_t begin = clock();
    for (int k = 0; k < 20000; k++) loss(2, x, w, 1, &value, slope);
    printf("%.0f\n", 1e9 * (double)(clock() - begin) / CLOCKS_PER_SEC / 20000);
    return 0;
}
"""


def loss(x, w, scale):
    value = np.mean(np.log1p(np.exp(-(x @ w)))) / scale
    if scale == 0:
        raise ZeroDivisionError(f"the scale is {scale}")
    return value


@needs_compiler
def test_f13_b40_b47_a_program_of_c_calls_a_function_and_its_gradient_without_python(tmp_path):
    made = tm.compile(tm.value_and_grad(loss, "w"), "float64[n, 3]", "float64[3]", "int64")
    found = made.export_c(tmp_path, name="loss")
    assert "int loss(int64_t n, const double *x, const double *w, int64_t scale, double *out0, double *out1);" in (
        found.header.read_text()
    )
    for path in (found.header, found.source):
        assert "Python.h" not in path.read_text()
        assert "numpy" not in path.read_text()
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(PROGRAM)
    parts = [compiler, "-Wall", "-Werror", "program.c", found.library.name, "-Wl,-rpath,.", "-o", program.name, "-lm"]
    subprocess.run(parts, check=True, cwd=tmp_path)
    done = subprocess.run([program], check=True, cwd=tmp_path, capture_output=True, text=True, env={})
    lines = done.stdout.splitlines()
    x, w = np.array([[0.5, -1, 2], [0, 3, 1]]), np.array([0.25, 1, -0.5])
    for line, rows in zip(lines, (x, x[:1]), strict=False):
        value, slope = tm.value_and_grad(loss, "w")(rows, w, 1)
        np.testing.assert_allclose([float(v) for v in line.split()], [value, *slope], rtol=1e-14)
    assert float(lines.pop()) < 1000, "nanoseconds of the processor's time for a call"
    assert lines[2:] == [
        "4 ZeroDivisionError: the scale is 0",
        "1 a size is negative",
        "3 a result shares memory with an argument or with another result",
    ]
    if shutil.which("nm"):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", found.library], capture_output=True, text=True, check=True
        )
        assert {line.split()[-1] for line in listed.stdout.splitlines()} >= {"loss", "loss_error"}
        every = subprocess.run(["nm", "-D", found.library], capture_output=True, text=True, check=True).stdout
        assert not {
            line.split()[-1] for line in every.splitlines() if line.split()[-1].startswith(("Py", "_Py", "NRT"))
        }
        assert "kernel" not in listed.stdout


def branch(x):
    return x * 2 if x.sum() > 0 else -x


def loop(x):
    for k in range(len(x)):
        x[k] += x[k - 1] if k else 1.0
    return x


def several(x):
    return {"rows": np.cumsum(x, 1), "most": (x.max(), x.argmax()), "turned": x.T, "size": len(x), "same": x}


def cases():
    x, y = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 3))
    yield "gemm", lambda x, y: x @ y, ("float64[n, k]", "float64[k, m]"), [(x, y), (x[:1], y), (x[:, :0], y[:0])]
    big = RNG.normal(size=(90, 70)), RNG.normal(size=(80, 90))
    yield "turned", lambda x, y: x.T @ y.T, ("float64[n, k]", "float64[m, n]"), [big]
    yield "stacks", lambda x, y: np.einsum("bij,bjk->bik", x, y), ("float64[b, 4, 4]", "float64[b, 4, 3]"), [
        (RNG.normal(size=(b, 4, 4)), RNG.normal(size=(b, 4, 3))) for b in (3, 1, 0)
    ]  # fmt: skip
    yield "reads", lambda x: x @ W, ("float64[n, 3]",), [(RNG.normal(size=(n, 3)),) for n in (4, 1)]
    yield "branch", branch, ("float64[n]",), [(np.ones(4),), (-np.ones(3),)]
    yield "loop", lambda x: loop(x.copy()), ("float64[n]",), [(np.arange(5.0),), (np.ones(1),), (np.ones(0),)]
    yield "several", several, ("float64[n, m]",), [(x,), (x[:1],), (x[:, :1],), (x[:1, :1],)]
    yield "narrow", lambda x: (x // 3, x % 3, x.mean(), x > 2), ("int16[n]",), [(np.arange(-9, 200, dtype="i2"),)]
    yield "single", lambda x: np.exp(x) / np.exp(x).sum(), ("float32[n]",), [(np.linspace(-2, 2, 3000, dtype="f4"),)]
    yield "pairs", lambda x: np.exp(1j * x) * (2 + 1j), ("float64[n]",), [(np.arange(5.0),)]
    yield "index", lambda x, i: x[i], ("float64[n]", "int64"), [
        (np.arange(5.0), np.int64(k)) for k in (3, -5, 5, -6)
    ]  # fmt: skip
    yield (
        "zeros",
        lambda x, n: np.zeros(n) + x.sum(),
        ("float64[m]", "int64"),
        [(np.ones(3), np.int64(n)) for n in (2, 1, 0, -1)],
    )
    yield "extreme", lambda x: x.max(), ("float64[n]",), [(np.ones(3),), (np.ones(0),)]


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [v for part in value for v in leaves(part)] if isinstance(value, tuple | list) else [np.asarray(value)]


def outcome(function, args):
    try:
        return leaves(function(*args))
    except (ValueError, IndexError) as error:
        return error


def called(library, name, args, results):
    """Call a function of C with sizes, arrays and numbers; what it says."""
    function, said = getattr(library, name), getattr(library, f"{name}_error")
    said.restype = ctypes.c_char_p
    args = [a if isinstance(a, int | np.integer) else np.ascontiguousarray(a) for a in args]
    numbers = [ctypes.c_int64(a) if isinstance(a, int | np.integer) else ctypes.c_void_p(a.ctypes.data) for a in args]
    return function(*numbers, *(ctypes.c_void_p(r.ctypes.data) for r in results)), said().decode()


CASES = list(cases())


@needs_compiler
@pytest.mark.parametrize(("name", "function", "types", "calls"), CASES, ids=[c[0] for c in CASES])
def test_values_and_errors_are_those_of_numpy(tmp_path, name, function, types, calls):
    found = tm.compile(function, *types).export_c(tmp_path, name=f"c_{name}")
    library = ctypes.CDLL(str(found.library))
    names = [
        t.strip() for kind in types for t in kind.partition("[")[2].strip("]").split(",") if t.strip().isidentifier()
    ]
    for args in calls:
        shapes = [n for kind, a in zip(types, args, strict=True) for n in np.shape(a)]
        every = [t.strip() for kind in types for t in kind.partition("[")[2].strip("]").split(",") if t.strip()]
        sizes = dict(zip(every, shapes, strict=True))
        given = [*(sizes[n] for n in dict.fromkeys(names)), *args]
        expected = outcome(function, args)
        if isinstance(expected, Exception):
            status, said = called(library, f"c_{name}", given, [np.empty(100)])
            assert (status, said.partition(":")[0]) == (4, type(expected).__name__), said
            assert said.partition(": ")[2].split(" operation")[0] == str(expected).split(" operation")[0]
            continue
        results = [np.zeros(e.shape, e.dtype) for e in expected]
        assert called(library, f"c_{name}", given, results) == (0, "")
        for ours, theirs in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6 if ours.dtype == np.float32 else 1e-12, atol=1e-13)


@needs_compiler
def test_threads_call_it_at_once_and_each_reads_its_own_error(tmp_path):
    def walk(x, i):
        return np.cumsum(x[::-1] * 2)[i]

    found = tm.compile(walk, "float64[n]", "int64").export_c(tmp_path)
    library, wrong = ctypes.CDLL(str(found.library)), []

    def work(seed):
        x, out = np.random.default_rng(seed).normal(size=2000), np.zeros(())
        for i in range(150):
            place = i * 17 if i % 3 else 2000 + seed
            status, said = called(library, "walk", [2000, x, place], [out])
            bad = place >= 2000
            right = (
                "bounds for axis 0 with size 2000" in said and str(place) in said
                if bad
                else abs(out - np.cumsum(x[::-1] * 2)[place]) < 1e-9
            )
            if status != 4 * bad or not right:
                wrong.append((seed, i, status, said))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def printed(x):
    print(x.sum())
    return x


@pytest.mark.parametrize(
    ("function", "types", "said"),
    [
        (lambda x: np.linalg.inv(x), ("float64[n, n]",), "inv of float64"),
        (lambda x: np.sort(x)[0], ("float64[n]",), "sort of float64"),
        (lambda x: np.nonzero(x)[0], ("float64[n]",), "the shape of result 1 depends on data"),
        (lambda x: x + 1, ("complex64[n]",), "complex64, which has no type in C"),
        (lambda x: np.fft.fft(x), ("float64[n]",), "fft"),
        (printed, ("float64[n]",), "^printing .* is computed by a Python library"),
    ],
)
def test_what_c_does_not_have_is_refused_by_name(tmp_path, function, types, said):
    with pytest.raises(tm.CaptureError, match=said.replace(",", r"\,")):
        tm.compile(function, *types).export_c(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_names_that_c_has_are_refused_and_those_of_arguments_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting.shutil, "which", lambda _: None)

    def exp(int, out, x_):  # words of C
        return int + out * x_

    made = tm.compile(exp, "float64[double]", "float64", "float64")
    for name in ("exp", "for", "malloc", "make", "a b", "1a", "ä"):
        with pytest.raises(ArgumentError, match="not a valid name of a function in C"):
            made.export_c(tmp_path, name=name)
    found = made.export_c(tmp_path)
    assert (
        "int exp_function(int64_t double_, const double *int_, double out, double x_, double *out_);"
        in found.header.read_text()
    )
    assert found.library is None
    assert all(path.exists() for path in (found.header, found.source, *found.objects))
    assert found.command.startswith("cc ")


@needs_compiler
def test_the_command_line_exports_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    tm.compile(lambda x: x * W.sum() + 1, "float64[n]").save(tmp_path / "f.tm")
    assert main(["export", "--c", str(tmp_path / "f.tm"), "-o", str(tmp_path / "c"), "--name", "line"]) == 0
    assert "libline" in capsys.readouterr().out
    library, out = ctypes.CDLL(str(next((tmp_path / "c").glob("libline.*")))), np.zeros(3)
    for n in (3, 1, 0):
        assert called(library, "line", [n, np.arange(3.0)], [out]) == (0, "")
    np.testing.assert_allclose(out, np.arange(3.0) * W.sum() + 1)
    tm.compile(lambda x: np.linalg.inv(x), "float64[n, n]").save(tmp_path / "g.tm")
    assert main(["export", "--c", str(tmp_path / "g.tm"), "-o", str(tmp_path / "c")]) == 1
    assert "inv of float64" in capsys.readouterr().err


@needs_compiler
def test_sums_over_many_rows_have_the_bits_that_they_have_here(tmp_path):
    made = tm.compile(lambda x: (np.exp(x).sum(axis=0), x.sum(), (x / 2).max(axis=0)), "float64[n, 3]")
    found = made.export_c(tmp_path, name="sums")
    x = RNG.normal(size=(20_011, 3))
    columns, total, most = np.empty(3), np.empty(()), np.empty(3)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, columns, total, most)]
    assert ctypes.CDLL(str(found.library)).sums(ctypes.c_int64(len(x)), *pointers) == 0
    for a, b in zip((columns, total, most), made(x), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_compiler
def test_of_many_sizes_several_small_ones_at_once_are_refused(tmp_path):
    found = tm.compile(lambda x, y: x @ y + y.sum(), "float64[n, k]", "float64[k, m]").export_c(tmp_path, name="many")
    library, out = ctypes.CDLL(str(found.library)), np.zeros(9)
    for n, k, m in itertools.product((0, 1, 2), repeat=3):
        x, y = RNG.normal(size=(n, k)), RNG.normal(size=(k, m))
        status, said = called(library, "many", [n, k, m, x, y], [out])
        several = sum(size < 2 for size in (n, k, m)) > 1
        assert (status, bool(said)) == (several, several), said
        if not several:
            np.testing.assert_allclose(out[: n * m].reshape(n, m), x @ y + y.sum(), atol=1e-14)
