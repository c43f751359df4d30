"""What pages say of behaviour that no test elsewhere shows; ``claims.toml`` names these tests."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm

ROOT = Path(__file__).parents[2]


# README, installing, questions ------------------------------------------------------------------------------------------


def test_a_function_that_is_not_captured_gets_values_in_a_cell_and_is_an_error_elsewhere(clean):
    import scipy.signal

    clean["a"] = np.arange(9.0)
    clean.ok("import scipy.signal")
    clean.ok("%%tensor -q\nsmooth = scipy.signal.savgol_filter(a * 2, 5, 2)")
    np.testing.assert_allclose(clean["smooth"], scipy.signal.savgol_filter(np.arange(9.0) * 2, 5, 2))

    def smoothed(x):
        return scipy.signal.savgol_filter(x, 5, 2).sum()

    for made in (tm.tensor(smoothed).graph, tm.grad(smoothed)):
        with pytest.raises(tm.CaptureError, match="savgol_filter is not captured") as told:
            made(np.arange(9.0))
        assert "Call it in a separate cell" in told.value.hint
    with pytest.warns(tm.PlainRunWarning, match="savgol_filter is not captured"):
        assert tm.tensor(smoothed)(np.arange(9.0)) == smoothed(np.arange(9.0))


def test_pages_of_results_that_docs_name_have_a_date_and_those_of_times_what_they_ran_on():
    measured = [p.read_text(encoding="utf-8") for p in (ROOT / "benchmarks").rglob("*.py")]
    measured += [p.read_text(encoding="utf-8") for p in (ROOT / "scripts").glob("*.py")]
    told = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    pages = {ROOT / name for name in re.findall(r"benchmarks/results/\w+\.md", told)}
    assert len(pages) > 10
    for page in sorted(pages):
        text = page.read_text(encoding="utf-8")
        assert re.search(r"20\d\d-\d\d-\d\d|\d+ (?:November|December) 20\d\d", text), page.name
        if re.search(r"\d (?:ms|µs|s)\b|CPU milliseconds|CPU time|[Ss]econds of", text):
            assert re.search(r"x86_64|EPYC|cores|H100|processors|AVX", text), page.name
            assert re.search(r"(?:NumPy|numpy|Python|CPython|Numba|numba) \d+\.\d+", text), page.name
        of_others = "The suite was not one checkout." in text  # how it was put together stands there
        assert of_others or any(page.stem in script for script in measured), page.name


def test_cells_show_the_values_in_lists_and_objects_and_panes_of_variables_the_types(clean):
    clean["a"] = np.arange(4.0)
    clean.ok("%%tensor -q\nv = np.exp(a)\nn = a.sum() * 2")
    unasked = r"\[Tensor\(float64\[4\], from In\[\d+\] line 2, not computed yet\), np\.float64\(12\.0\)\]"
    assert re.fullmatch(unasked, repr([clean["v"], clean["n"]]))
    assert clean.ok("print([v, n])").out == f"{[np.exp(np.arange(4.0)), np.float64(12)]}\n"


def test_the_data_of_the_quickstart_are_as_it_says():
    from sklearn.datasets import load_breast_cancer

    assert load_breast_cancer().data.shape == (569, 30)


def test_without_the_extension_ipython_says_what_the_page_on_installing_says(clean):
    clean.ok("%unload_ext tensormagic")
    try:
        told = clean("%%tensor\n1")
    finally:
        clean.ok("%load_ext tensormagic")
    assert "UsageError: Cell magic `%%tensor` not found" in told.out or "not found" in str(told.error)


# control flow -----------------------------------------------------------------------------------------------------------


def sides(x, other):
    y = x if x.sum() > 0 else other
    return y * 2


@pytest.mark.parametrize(
    ("other", "captured"),
    [(np.ones(7), True), (np.ones((2, 2)), False), (np.arange(3), False)],
    ids=["another length", "another rank", "another dtype"],
)
def test_arrays_of_two_branches_may_differ_in_length_alone(other, captured):
    def f(x):
        return sides(x, other)

    run = tm.tensor(f)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x in (np.ones(3), -np.ones(3)):
            np.testing.assert_array_equal(run(x), f(x), strict=True)
    assert [warning.category for warning in told] == ([] if captured else [tm.PlainRunWarning])
    if captured:
        assert "tape()" in str(run.graph(np.ones(3)))  # for the length that data decide
    else:
        with pytest.raises(tm.TensorError, match="the two branches give"):
            run.graph(np.ones(3))


def test_what_is_not_evaluated_reads_nothing(clean):
    clean.ok("k, n, x = 3, 3, np.ones(3)")
    clean.ok("%%tensor -q\nfound = k < n and x[k] > 0")
    assert bool(clean["found"]) is False


def test_a_try_in_a_loop_on_data_is_an_error_of_the_graph():
    def f(t):
        while t > 1:
            try:
                t = t / 2
            except ZeroDivisionError:
                t = 0.0
        return t

    with pytest.raises(tm.CaptureError, match="`try` around code that depends on data"):
        tm.tensor(f).graph(5.0)


def test_a_size_known_in_the_run_is_not_stretched():
    with pytest.raises(tm.ShapeError, match="1 and 3") as told:
        tm.grad(lambda x: (x[x > 0] + np.ones(3)).sum())(np.array([1.0, -1.0, -1.0]))
    assert "not broadcast when it happens to be 1" in told.value.hint


def test_an_element_at_the_index_of_a_loop_needs_no_check():
    def f(x):
        total = 0.0
        for k in range(len(x)):
            total = total + x[k]
        return total

    assert "bounds" not in str(tm.tensor(f).graph(np.ones(3)))


# limits ---------------------------------------------------------------------------------------------------------------


def checked(m, n):
    if m.sum() < 0:
        np.linalg.cholesky(m)
    return n


def checked_in_a_loop(m, n):
    while n > 0:
        np.linalg.cholesky(m)
        n = n - 1
    return n


@pytest.mark.parametrize("f", [checked, checked_in_a_loop])
def test_a_line_that_is_there_for_its_error_alone_raises_it(f, clean):
    run = tm.tensor(f)
    for _ in range(3):
        assert run(np.eye(2), 2) == f(np.eye(2), 2)
        with pytest.raises(np.linalg.LinAlgError):
            run(-np.eye(2), 2)
    with pytest.raises(np.linalg.LinAlgError):
        tm.compile(f, "float64[2,2]", "int").run(-np.eye(2), 2)
    clean["m"] = -np.eye(2)
    told = clean("%%tensor -q\nif m.sum() < 0:\n    np.linalg.cholesky(m)\nafter = 1")
    assert isinstance(told.error, np.linalg.LinAlgError)
    assert "after" not in clean


def test_what_stands_before_a_line_that_fails_is_printed(capsys):
    def f(m):
        print("before")
        root = np.linalg.cholesky(m)
        print("behind")
        return root

    run = tm.tensor(f)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            run(-np.eye(2))
        assert capsys.readouterr().out == "before\n"
    with pytest.raises(np.linalg.LinAlgError):
        tm.compile(f, "float64[2,2]").run(-np.eye(2))
    assert "behind" not in capsys.readouterr().out


def test_elements_of_a_list_have_classes_of_their_own(clean):
    def f(ts):
        found = []
        for t in ts:
            found.append(0 if t < 0.7 else t)  # noqa: PERF401 (it is what the page writes)
        return found

    run = tm.tensor(f)
    for _ in range(3):
        assert [type(v) for v in run(np.array([0.1, 0.9]))] == [int, np.float64]
    clean["ts"] = np.array([0.1, 0.9])
    clean.ok("%%tensor -q\nfound = [0 if t < 0.7 else t for t in ts]\nprint([type(v).__name__ for v in found])")
    assert [isinstance(v, int) for v in clean["found"]] == [True, False]


def test_containers_that_a_checkpoint_is_given_are_changed_as_python_changes_them():
    def f(kept, x):
        kept[0] = x.sum()
        return x * 2

    run, x = tm.checkpoint(f), np.arange(3.0)
    for _ in range(3):
        kept = [0.0]
        run(kept, x)
        assert kept == [3.0]
    kept = [0.0]
    assert tm.grad(lambda x: run(kept, x).sum())(x).tolist() == [2.0, 2.0, 2.0]
    assert kept == [3.0]


def test_what_python_runs_and_what_is_an_object_has_no_derivative_batch_or_compiled_code():
    import types

    def counting(x):
        counted.count += 1
        return types.SimpleNamespace(twice=x * 2)

    counted = types.SimpleNamespace(count=0)
    run = tm.tensor(counting)
    first, second = run(np.ones(3)), run(np.ones(3))
    assert first is not second
    assert first.twice.tolist() == second.twice.tolist() == [2.0, 2.0, 2.0]
    for made in (lambda: tm.grad(counting)(np.ones(3)), lambda: tm.vmap(counting)(np.ones((2, 3)))):
        with pytest.raises(tm.CaptureError):
            made()
    with pytest.raises(tm.CaptureError):
        tm.compile(counting, "float64[n]")


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_container_that_is_given_twice_or_read_by_a_name_is_changed_by_python():
    kept = [1.0]

    def twice(a, b):
        a.append(2.0)
        return len(b)

    def named(a):
        a.append(2.0)
        return len(kept)

    for k, (f, given) in enumerate(((twice, (kept, kept)), (named, (kept,)))):
        assert tm.tensor(f)(*given) == len(kept) == k + 2


def test_what_the_background_refuses():
    rng = np.random.default_rng(0)
    held = []

    def keeping(x):
        held.append(x.sum())
        return x

    for f in (lambda x: x + rng.normal(), keeping):
        with pytest.raises(tm.CaptureError):
            tm.submit(f, np.ones(2))
    assert held == []


def test_an_error_where_a_view_begins_is_raised_and_one_elsewhere_is_told():
    def corner(a):
        return np.linalg.inv(np.array([[a, 1.0], [1.0, 1.0]]))[0, 0]

    with pytest.raises(np.linalg.LinAlgError):
        tm.live(corner, a=(0.0, 2.0))
    view = tm.live(corner, a=(0.0, 4.0))
    view.a = 1.0
    assert "LinAlgError: Singular matrix" in view._problem
    view.a = 3.0
    assert (view._problem, view.value) == ("", 0.5)
    view.close()


def test_sparse_derivatives_of_containers_are_matrices_in_these():
    found = tm.jacobian(lambda p: {"a": p["u"] ** 2, "b": p["v"] * 2}, sparse=True)({"u": np.ones(2), "v": np.ones(3)})
    assert {name: {of: m.shape for of, m in row.items()} for name, row in found.items()} == {
        "a": {"u": (2, 2), "v": (2, 3)},
        "b": {"u": (3, 2), "v": (3, 3)},
    }
    assert [found["a"]["v"].nnz, found["b"]["u"].nnz] == [0, 0]


# stores and batches -----------------------------------------------------------------------------------------------------


def test_a_view_of_another_dtype_is_fine_where_the_cell_makes_it(clean):
    clean["x"] = np.arange(4.0)
    clean.ok("%%tensor -q\nb = x.view(np.int64)\nb[0] = 4607182418800017408")
    assert clean["x"][0] == 1.0
    clean.ok("b = x.view(np.int64)")
    with pytest.warns(tm.PlainRunWarning, match="of another dtype"):
        clean.ok("%%tensor -q\nx[0] = 2.0\ny = b + 1")
    assert clean["y"][0] == np.float64(2.0).view(np.int64) + 1
    told = clean("%%tensor -q --grad x\nx[0] = 2.0\ny = b + 1\nx.sum()").error
    assert isinstance(told, tm.CaptureError)
    assert "of another dtype" in str(told)


def test_what_all_examples_share_is_stored_into_where_they_all_store_the_same():
    shared = np.zeros(2)

    def alike(x):
        shared[0] = 1
        return x

    def unlike(x):
        shared[0] = x
        return x

    np.testing.assert_array_equal(tm.vmap(alike)(np.arange(3.0)), np.arange(3.0))
    assert shared[0] == 1
    with pytest.raises(tm.CaptureError, match="stores into shared, which all examples share"):
        tm.vmap(unlike)(np.arange(3.0))


def test_an_array_of_no_known_length_has_one_length_in_a_batch():
    def survivors(v):
        while len(v) > 1:
            v = v[v > v.min()]
        return v

    with pytest.raises(tm.ShapeError, match="another length for each element of a batch"):
        tm.vmap(survivors)(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]))


# courses and numbers -----------------------------------------------------------------------------------------------------


def test_units_have_four_or_five_exercises_and_what_the_page_for_teachers_says():
    for path in sorted((ROOT / "lessons").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert len(set(re.findall(r"^```python answer=([\d.]+)", text, re.MULTILINE))) in {4, 5}, path.name
        for said in ("*Time*:", "*The point*:", "*Where students stumble*:", "*Ten-minute demonstration*:"):
            assert said in text, (path.name, said)


def test_running_sums_of_half_floats_stay_where_numpys_stay():
    assert np.cumsum(np.ones(5000, np.float16))[-1] == 2048


# errors -------------------------------------------------------------------------------------------------------------------


def test_errors_are_of_the_class_that_the_page_names():
    from tensormagic.ir import errors

    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `(\w+)` \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    also = {name.strip("` "): builtin for names, builtin in rows for name in names.split(",")}
    assert len(also) > 5
    for name, builtin in also.items():
        kind = getattr(tm, name, None) or getattr(errors, name)
        assert issubclass(kind, getattr(__import__("builtins"), builtin)), name
        assert issubclass(kind, tm.TensorError | UserWarning), name


@pytest.mark.parametrize("inverted", ["table * k", "table"])
def test_an_error_in_a_loop_names_its_line_or_that_of_the_loop(inverted, clean):
    clean["table"] = np.zeros((2, 2))
    told = clean(
        f"%%tensor\ntotal = 0.0\nfor k in range(3):\n    total = total + np.linalg.inv({inverted})[0, 0]\ntotal"
    )
    assert isinstance(told.error, np.linalg.LinAlgError)
    assert re.search(r"line (?:3\n    for k|4\n    total = total)", told.out)
