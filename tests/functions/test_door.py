"""The door: kinds of values at every place where values come in, each computed as plain Python computes it, or refused by name."""

import contextlib
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DTypeError, GuardError, TensorError
from tests.functions.value_kinds import KINDS, ROW, Held, Interface, Level, Named, Rate, Record, memory_map

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")


# places where values come in ------------------------------------------------------------------------------------------

BODIES = {
    "v * 2.0": lambda v, x: v * 2.0,
    "v * v": lambda v, x: v * v,
    "v.sum()": lambda v, x: v.sum(),
    "v.std()": lambda v, x: v.std(),
    "np.sum(v)": lambda v, x: np.sum(v),
    "np.mean(v)": lambda v, x: np.mean(v),
    "np.exp(v)": lambda v, x: np.exp(v),
    "x + v": lambda v, x: x + v,
    "v + x": lambda v, x: v + x,
    "x * v": lambda v, x: x * v,
    "v * x": lambda v, x: v * x,
    "v - x, mean": lambda v, x: (v - x).mean(),
    "x / v, deviation": lambda v, x: (x / (v + 1.0)).std(),
    "x @ v": lambda v, x: x @ v,
    "np.add(x, v)": lambda v, x: np.add(x, v),
    "np.multiply(v, x)": lambda v, x: np.multiply(v, x),
    "np.where(x > 1, v, 0)": lambda v, x: np.where(x > 1, v, 0.0),
    "np.concatenate": lambda v, x: np.concatenate([x, v]),
    "np.maximum, sum": lambda v, x: np.maximum(x, v).sum(),
    "np.dot(x, v)": lambda v, x: np.dot(x, v),
    "np.stack": lambda v, x: np.stack([x, v]).sum(axis=0),
    "np.array([...])": lambda v, x: np.array([x.sum(), 1.0]) + v,
    "np.clip": lambda v, x: np.clip(x, 0.5, v),
    "x[v]": lambda v, x: x[v],
    "v[1:]": lambda v, x: v[1:] + 1.0,
    "v > x": lambda v, x: v > x,
    "x == v": lambda v, x: x == v,
    "-v": lambda v, x: -v,
    "v ** 2": lambda v, x: v**2,
    "np.asarray(v)": lambda v, x: np.asarray(v) + x,
}


def stored(v, x):
    y = x.copy()
    y[...] = v
    return y


def stored_at(v, x):
    y = x.copy()
    y[1] = v
    return y


def added(v, x):
    y = x.copy()
    y += v
    return y


def iterated(v, x):
    for part in [v, v]:
        x = x + part
    return x


def chosen(v, x):
    y = x
    if x[0] > 0:
        y = v
    return y * 2.0


BODIES |= {
    "y[...] = v": stored,
    "y[1] = v": stored_at,
    "y += v": added,
    "for part in [v, v]": iterated,
    "y = v": chosen,
}


def by_argument(body, v, x):
    return tm.tensor(lambda v, x: body(v, x))(v, x)


def by_keyword(body, v, x):
    return tm.tensor(lambda v, x: body(v, x))(x=x, v=v)


def by_missing(body, v, x):
    return tm.tensor(lambda v, x: body(v, x), missing={"v": v})(x=x)


def after_an_array(body, v, x):
    f = tm.tensor(lambda v, x: body(v, x))
    with contextlib.suppress(Exception):  # only to fill what the function remembers
        f(np.array(ROW), x)
    return f(v, x)


def by_closure(body, v, x):
    return tm.tensor(lambda x: body(v, x))(x)


def by_global(body, v, x):
    space = {"body": body, "v": v, "np": np}
    exec("def f(x): return body(v, x)", space)
    return tm.tensor(space["f"])(x)


def by_default(body, v, x):
    def f(x, v=v):
        return body(v, x)

    return tm.tensor(f)(x)


def by_attribute(body, v, x):
    o = types.SimpleNamespace(v=v)
    return tm.tensor(lambda o, x: body(o.v, x))(o, x)


def by_list(body, v, x):
    return tm.tensor(lambda vs, x: body(vs[0], x))([v], x)


def by_dict(body, v, x):
    return tm.tensor(lambda vs, x: body(vs["v"], x))({"v": v}, x)


@dataclass
class Box:
    v: Any


def by_dataclass(body, v, x):
    return tm.tensor(lambda box, x: body(box.v, x))(Box(v), x)


def by_call(body, v, x):
    table = types.SimpleNamespace(get=lambda: v)
    return tm.tensor(lambda x: body(table.get(), x))(x)


def by_data(body, v, x):
    return computed(body(tm.tensor(v), tm.tensor(x)))


def by_operand(body, v, x):
    return computed(body(v, tm.tensor(x)))


def computed(value):
    return value.numpy() if isinstance(value, tm.Tensor) else value


def by_compile(body, v, x):
    return tm.compile(lambda v, x: body(v, x), v, x).run(v, x)


def by_run(body, v, x):
    return tm.compile(lambda v, x: body(v, x), np.array(ROW), x).run(v, x)


def by_cond(body, v, x):
    return tm.tensor(lambda x: tm.cond(x[0] > 0, lambda u: body(u, x), lambda u: body(u, x), v))(x)


def by_vjp(body, v, x):
    return tm.vjp(lambda v, x: body(v, x), v, x)[0]


def by_evaluate(body, v, x):
    return tm.evaluate(tm.tensor(lambda v, x: tm.stop_gradient(body(v, x)))(v, x))


DOORS = [
    by_argument, by_keyword, by_missing, after_an_array, by_closure, by_global, by_default, by_attribute, by_list, by_dict, by_dataclass,
    by_call, by_data, by_operand, by_compile, by_run, by_cond, by_vjp, by_evaluate,
]  # fmt: skip


def same(found, expected) -> bool:
    """Whether captured code gave the values of plain Python: bit for bit but for the last digits of sums, and of the same dtype."""
    if isinstance(expected, np.ma.MaskedArray) and np.ma.getmaskarray(expected).any():
        return isinstance(found, np.ma.MaskedArray) and str(found) == str(expected)  # nothing lazy was in it
    if isinstance(expected, pandas.Series | pandas.Categorical) and type(found) is type(expected):
        return bool(found.equals(expected))
    left, right = np.asarray(found), np.asarray(expected)
    if left.shape != right.shape or (left.dtype != right.dtype):
        return False
    if right.dtype.kind not in "biufc":
        return bool(np.all(left == right))
    return bool(np.allclose(left, right, rtol=1e-3 if right.dtype == np.float16 else 1e-12, atol=0, equal_nan=True))


def expected_of(kind, body, x) -> tuple[Any, list[Exception]]:
    """What plain Python gives; where it raises for want of an operator or a method, what it gives for the array or the number itself."""
    errors: list[Exception] = []
    for value in (KINDS[kind](), plain(KINDS[kind]())):
        try:
            return BODIES[body](value, x.copy()), errors
        except Exception as error:  # noqa: BLE001 (compared)
            errors.append(error)
            if not isinstance(error, TypeError | AttributeError):
                break
    return Raised(errors), errors


class Raised(list[Exception]):
    """The errors of plain Python."""


def plain(value) -> Any:
    """The array that an object without operators is, or the number that one without methods is."""
    return np.asarray(value) if type(value) in {Held, Interface, Record, Named, Rate, Level, pandas.Index} else value


def difference(kind, door, body) -> str:
    """What is wrong with a kind of value at a door; empty where nothing is."""
    x = np.array([2.0, 5.0, 0.5, 4.0])
    with np.errstate(all="ignore"):
        expected, errors = expected_of(kind, body, x)
        try:
            found = door(BODIES[body], KINDS[kind](), x.copy())
        except TensorError:
            return ""
        except Exception as error:  # noqa: BLE001 (compared)
            return "" if type(error) in set(map(type, errors)) else f"{type(error).__name__}: {error}"
    if isinstance(expected, Raised):
        return f"a value where Python says {expected!r}"
    return "" if same(found, expected) else f"{found!r} for {expected!r}"


ALL = [(kind, door, body) for kind in KINDS for door in DOORS for body in BODIES]
DRAWN = np.random.default_rng(59).permutation(len(ALL))[:1500]


@pytest.mark.share(3)
@pytest.mark.parametrize("part", range(6))
@pytest.mark.filterwarnings("ignore")
def test_no_value_is_silently_another(part, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    wrong = [(*case, told) for k in DRAWN[part::6] if (told := difference(*(case := ALL[k])))]
    assert not wrong, "\n".join(f"{kind}, {door.__name__}, {body}: {told}" for kind, door, body, told in wrong)


REFUSED = {
    "a masked array": ("w is a MaskedArray", "w.filled(value)"),
    "a matrix": ("w is a matrix", "np.asarray(w)"),
    "a Series with gaps": ("w has gaps", "w.to_numpy(float)"),
    "a Series of categories": ("w has gaps, or columns that are not numbers", "w.to_numpy(float)"),
    "categories": ("w is a Categorical", "w.codes"),
    "an array of pandas": ("w is an IntegerArray", "w.to_numpy()"),
    "units": ("w is a Units", "np.asarray(w)"),
    "a float with operators": ("w is a Metres", "float(w)"),
    "a quantity": ("w is a Quantity", "np.asarray(w)"),
    "a long double array": ("w has dtype", "w.astype(float)"),
    "a swapped array": ("w has byte-swapped dtype", "newbyteorder"),
    "a structured array": ("w is a structured array", "x['name']"),
    "an object array": ("w is an object array", "dtype=float"),
    "dates": ("w is an array of dates", "np.timedelta64"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_names_the_argument_and_a_way_out(kind):
    message, advice = REFUSED[kind]
    f = tm.tensor(lambda x, w: (x * w).sum())
    with pytest.raises(DTypeError) as caught:
        f.graph(np.ones(4), KINDS[kind]())
    assert message in caught.value.message
    assert advice in caught.value.hint


def test_a_refusal_names_the_way_to_the_value():
    masked = KINDS["a masked array"]()
    f = tm.tensor(lambda state, box=None: state["w"][1] if box is None else box.v)
    with pytest.raises(DTypeError, match=r"state\['w'\]\[1\] is a MaskedArray"):
        f.graph({"w": [1.0, masked]})
    with pytest.raises(DTypeError, match=r"box\.v is a MaskedArray"):
        f.graph({"w": [1.0, 2.0]}, Box(masked))
    for transform in (tm.grad, tm.value_and_grad, tm.vmap):
        with pytest.raises(DTypeError, match="x is a MaskedArray"):
            transform(lambda x: (x * x).sum())(masked)
    with pytest.raises(DTypeError, match="MaskedArray"):
        tm.jvp(lambda x: x * x, (np.ones(4),), (masked,))
    with pytest.raises(DTypeError, match="masked is a MaskedArray"):
        tm.tensor(masked)
    with pytest.raises(DTypeError, match="MaskedArray"):
        tm.tensor([masked, masked])


def test_what_has_been_seen_as_an_array_is_looked_at_again():
    f = tm.tensor(lambda v: v.sum())
    assert f(np.arange(5.0)) == 10
    with pytest.raises(DTypeError, match="v is a MaskedArray"):
        f.graph(np.ma.array(np.arange(5.0), mask=[0, 0, 1, 0, 0]))
    with pytest.raises(DTypeError, match="v has gaps"):
        f.graph(pandas.Series([0.0, 1.0, np.nan, 3.0, 4.0]))
    assert f(memory_map(np.arange(5.0))) == 10


def test_series_meet_by_their_labels_or_not_at_all():
    f = tm.tensor(lambda a, b: (a + b).std())
    one, other = pandas.Series(ROW), pandas.Series(ROW, index=[3, 2, 1, 0])
    assert f(one, one) == pytest.approx((one + one).std(), rel=1e-14)
    with pytest.raises(CaptureError, match="different labels"):
        f.graph(one, other)
    assert f(other, other) == pytest.approx((other + other).std(), rel=1e-14)
    compiled = tm.compile(lambda a: a.std(), "float64[n]")
    with pytest.raises(GuardError, match="have a different structure"):
        compiled.run(one)


@pytest.mark.parametrize("columns", [{"a": [1.0, 2.0], "b": [3, 4]}, {"a": [1.0, np.nan], "b": [3.0, 4.0]}])
def test_who_converts_by_name_gets_the_numbers_of_a_table(columns):
    x = np.array([1.0, 2.0])
    table = pandas.DataFrame(columns)
    f = tm.tensor(lambda x: x @ np.asarray(table))
    np.testing.assert_array_equal(f(x), x @ np.asarray(table))
    table.loc[0, "a"] = 7.0
    np.testing.assert_array_equal(f(x), x @ np.asarray(table))
    with pytest.raises(DTypeError, match="differ in kind"):
        tm.tensor(lambda x: np.mean(x * table)).graph(x)


def test_who_converts_by_name_gets_the_numbers_of_an_extension_array():
    x = np.array([1.0, 2.0])
    grades = pandas.Categorical([1, 2])
    np.testing.assert_array_equal(tm.tensor(lambda x: x * np.array(grades, float))(x), [1.0, 4.0])


def test_a_store_into_a_memory_map_is_seen_in_it():
    held = memory_map(ROW)

    @tm.tensor
    def double(x):
        x *= 2.0

    double(held)
    double(held)
    assert held.tolist() == [4.0 * v for v in ROW]


def test_numbers_with_names_keep_them():
    f = tm.tensor(lambda x, level: x * 2 if level is Level.LOW else x)
    assert f(np.ones(2), Level.LOW).tolist() == [2.0, 2.0]
    with pytest.raises(DTypeError, match="rate is a Rate"):
        tm.tensor(lambda x, rate: x * rate).graph(np.ones(2), Rate.SLOW)
    assert tm.tensor(lambda x: x * Level.LOW)(np.ones(2, np.int8)).dtype == np.int8


if __name__ == "__main__":  # every case: three minutes and a half
    tm.config.tier = "numpy"
    for case in ALL:
        if told := difference(*case):
            print(case[0], case[1].__name__, case[2], told.splitlines()[0], sep=" | ")
    print(len(ALL), "cases")
