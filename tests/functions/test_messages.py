"""Messages with values that are captured are Python's, or refused: ``logging`` swallows the errors that it meets, and warnings are kept."""

import logging
import warnings

import numpy as np
import pytest

import tensormagic as tm

log = logging.getLogger("tests.messages")
adapter = logging.LoggerAdapter(log, {})
X = np.arange(3.0)


def arguments(x):
    log.info("sum %.2f", x.sum())
    return x * 2


def texts(x):
    log.warning(f"sum {x.sum()}")  # noqa: G004 (as many write it)
    return x * 2


def module(x):
    logging.error("largest %s", str(x.max()))  # noqa: LOG015 (as many write it)
    return x * 2


def of_level(x):
    log.log(logging.INFO, "shape %s, first %s", x.shape, x[0])
    return x * 2


def in_a_loop(x):
    for i in range(2):
        log.info("step %d: %s", i, x[i])
    return x * 2


def in_a_branch(x):
    if x.sum() > 1:
        log.info("large: %s", x.sum())
    return x * 2


def by_an_adapter(x):
    adapter.info("mean %s", x.mean())
    return x * 2


def in_a_container(x):
    log.info("%s", {"x": [x.sum()]})
    return x * 2


FUNCTIONS = (arguments, texts, module, of_level, in_a_loop, in_a_branch, by_an_adapter, in_a_container)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_messages_are_pythons(function, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]):
    caplog.set_level(logging.INFO)
    captured = tm.tensor(function)
    for x in (X, X + 1, X):
        caplog.clear()
        expected = function(x), [r.getMessage() for r in caplog.records]
        caplog.clear()
        np.testing.assert_array_equal(captured(x), expected[0])
        assert [r.getMessage() for r in caplog.records] == expected[1]
    assert "Logging error" not in capsys.readouterr().err


@pytest.mark.parametrize("function", FUNCTIONS)
def test_graphs_refuse_them(function, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(tm.CaptureError, match=r"log|side effect"):
        tm.compile(function, X)
    with pytest.raises(tm.CaptureError, match=r"log|side effect"):
        tm.grad(lambda x: function(x).sum())(X)
    assert "Logging error" not in capsys.readouterr().err


def test_a_message_without_values_is_logged_at_each_call(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)

    def f(x):
        log.info("called")
        return (x * 2).sum()

    captured = tm.tensor(f)
    for _ in range(3):
        assert captured(X) == 6
    assert [r.getMessage() for r in caplog.records] == ["called"] * 3
    assert tm.grad(f)(X).tolist() == [2, 2, 2]


def warned(x):
    warnings.warn(f"sum {x.sum()}", stacklevel=1)
    return x * 2


def warned_twice(x):
    for i in range(2):
        warnings.warn(f"step {i}: {x[i]}", RuntimeWarning, stacklevel=1)
    return x * 2


def warned_of_an_object(x):
    warnings.warn(UserWarning(f"largest {x.max()}"), stacklevel=1)
    return x * 2


@pytest.mark.parametrize("function", [warned, warned_twice, warned_of_an_object])
def test_warnings_are_pythons(function):
    captured = tm.tensor(function)
    for x in (X, X + 1, X):
        said: list[list[str]] = []
        for f in (function, captured):
            with warnings.catch_warnings(record=True) as met:
                warnings.simplefilter("always")
                np.testing.assert_array_equal(f(x), 2 * x)
            said.append([str(w.message) for w in met if not issubclass(w.category, tm.PlainRunWarning)])
        assert said[0] == said[1]
    with pytest.raises(tm.CaptureError):
        tm.compile(function, X)
