"""What staged code calls: each decides between Python, where what it asks is known, and a region of the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging import raising
from tensormagic.capture.staging.branches import joined, staged_branch, staged_value
from tensormagic.capture.staging.calls import called
from tensormagic.capture.staging.lists import FEW
from tensormagic.capture.staging.loops import Loop, Names, conditional, counted
from tensormagic.capture.staging.ranges import First, Items, is_lazy, items_of
from tensormagic.capture.staging.trial import NeedsPython, World, attempt, can_compute, spoil, trial
from tensormagic.capture.value import Tensor, extent, node_of, static_value, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, is_at_least, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops import scalar
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, index_node, input_node, size_node
from tensormagic.ops.pointwise import astype

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


# truth ----------------------------------------------------------------------------------------------------------------


def truth(value: Any) -> bool | Node:
    """What a value is as a condition: known, or a node."""
    if not isinstance(value, Tensor):
        return bool(value)
    known = static_value(value.node)
    if known is not None:
        return bool(known)
    if value.ndim:
        if any(s != 1 for s in value.type.shape):
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        value = value.reshape(())
    return to_form(astype(to_form(value.node, "scalar"), bool), "python")


def _computed(condition: bool | Node) -> bool:
    """A condition's value, in a cell whose values are there."""
    return condition if isinstance(condition, bool) else bool(wrap(condition).numpy())


class PlainPython(Exception):  # noqa: N818 (no error: a loop over Python's own numbers)
    """There is nothing lazy in a loop; ``alone`` says that there is nothing lazy in reach of it either."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.alone = alone


class _Forcing:
    """Python runs what cannot be staged: what it asks for is computed."""

    def __enter__(self) -> None:
        capture = context.current()
        if capture is not None:
            capture.forcing += 1

    def __exit__(self, *_: object) -> None:
        capture = context.current()
        if capture is not None:
            capture.forcing -= 1


def _unstaged(error: Exception) -> None:
    """Note why Python runs what might have been a region."""
    capture, frame = context.current(), context.user_frame()
    if capture is not None and frame is not None and not capture.trials:
        capture.unstaged[context.span(frame)] = _said(error) or type(error).__name__


def _said(error: Exception) -> str:
    lazy = any(isinstance(a, Tensor) for a in error.args)  # of a turn that was tried out
    return "" if lazy else getattr(error, "message", str(error))


# branches -------------------------------------------------------------------------------------------------------------


def branch(test: Any, then: Thunk, otherwise: Thunk, told: tuple[Sequence[str], Sequence[str]]) -> None:
    """``if``."""
    if test is True or test is False:  # most often, and many times where Python runs a loop
        (then if test else otherwise)()
        return
    condition = truth(test)
    if not isinstance(condition, bool):
        try:
            staged_branch(condition, (then, otherwise), *told)
        except Exception as error:
            if not can_compute():
                raise
            failed = error
        else:
            raising.settle()
            return
        _unstaged(failed)
        condition = _computed(condition)
        with _Forcing():
            (then if condition else otherwise)()
        return
    (then if condition else otherwise)()


def chosen(test: Any, first: Thunk, second: Thunk) -> Any:
    """``first if test else second``."""
    condition = truth(test)
    if isinstance(condition, bool):
        return (first if condition else second)()
    return _one_of(condition, (first, second), (first, second))


def _one_of(condition: Node, ways: tuple[Thunk, Thunk], functions: Sequence[Any]) -> Any:
    try:
        found = staged_value(condition, ways, functions)
    except Exception as error:
        if not can_compute():
            raise
        failed = error
    else:
        raising.settle()
        return found
    _unstaged(failed)
    value = _computed(condition)
    with _Forcing():
        return ways[0 if value else 1]()


def both(first: Any, *rest: Thunk) -> Any:
    """``and``."""
    return _connected(first, rest, conjunction=True)


def either(first: Any, *rest: Thunk) -> Any:
    """``or``."""
    return _connected(first, rest, conjunction=False)


def _connected(value: Any, rest: Sequence[Thunk], *, conjunction: bool) -> Any:
    """Operands of ``and`` or ``or``, each evaluated where those before it leave that open."""
    for k, thunk in enumerate(rest):
        condition = truth(value)
        if isinstance(condition, bool):
            if condition is not conjunction:
                return value
            value = thunk()
            continue

        def go_on(k: int = k, thunk: Thunk = thunk) -> Any:
            return _connected(thunk(), rest[k + 1 :], conjunction=conjunction)

        if node_of(value).type.dtype == bool:
            found = _tried(
                lambda condition=condition: joined(
                    condition, go_on, rest, scalar.logical_and if conjunction else scalar.logical_or
                )
            )
            if found is not None:
                return found

        def stay(value: Any = value) -> Any:
            return value

        return _one_of(condition, (go_on, stay) if conjunction else (stay, go_on), rest)
    return value


def _tried(run: Thunk) -> Any:
    """What ``run`` gives; None where it fails, which the way that is taken otherwise says better."""
    try:
        return run()
    except Exception:  # noqa: BLE001 (as above)
        return None


def negated(value: Any) -> Any:
    """``not``."""
    condition = truth(value)
    return not condition if isinstance(condition, bool) else wrap(to_form(scalar.logical_not(condition), "python"))


def compared(names: Sequence[str], first: Any, *rest: Thunk) -> Any:
    """A chain of comparisons."""

    def step(k: int, left: Any) -> Any:
        right = rest[k]()
        found = _COMPARISONS[names[k]](left, right)
        return found if k == len(names) - 1 else both(found, lambda: step(k + 1, right))

    return step(0, first)


def asserted(test: Any, told: Thunk | None) -> None:
    """``assert``."""
    condition = truth(test)
    known = condition if isinstance(condition, bool) else None
    if known is None and can_compute():
        known = raising.known(condition)  # type: ignore[arg-type]
    if known is None and not raising.may_wait():
        raise spoil("`assert` on data in a `try`", "Check it outside the `try`, or write `if` and `else`.")
    if known:
        return
    error = AssertionError(*(() if told is None else (told(),)))
    if known is False:
        raise raising.raising(error)
    raising.note(raising.wait(condition, error))  # type: ignore[arg-type]


def attempted() -> None:
    """``try``: which error is met, and where, is known when the code runs, so a region cannot hold one."""
    if trial() is not None:
        raise spoil("`try` around what depends on data", "Write it outside the loop or the branch.")


def itself(function: Any, line: int) -> bool:
    """Whether the name of a function means the function that is running, which begins at ``line``."""
    while not isinstance(function, FunctionType) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    frame = context.user_frame()
    if not isinstance(function, FunctionType) or frame is None or context.current() is None:
        return False
    code = function.__code__
    return (code.co_filename, code.co_firstlineno) == (frame.f_code.co_filename, line)


# loops ----------------------------------------------------------------------------------------------------------------


def each(
    iterable: Any,
    turn: Callable[[Any], None],
    stop: Thunk | None,
    told: tuple[Sequence[str], ...],
    simple: bool = False,
) -> Iterable[Any]:
    """``for``; what is left to go over, where Python can run the body as it is written: ``simple`` says that it is there."""
    items = items_of(iterable) if context.current() is not None else None
    names = Names(*map(tuple, told))
    failed: Exception | None = None
    if items is not None and _may_stage(items):
        try:
            staged_each(items, turn, stop, names)
        except Exception as error:  # noqa: BLE001 (Python runs the loop, and meets the same error, if it is one)
            failed = error
        else:
            raising.settle()
            return ()
    if simple and isinstance(failed, PlainPython) and failed.alone and not is_lazy(iterable):
        return iterable
    _go_over(iterable, items, failed, turn, stop, names)
    return ()


def _may_stage(items: Items) -> bool:
    count = items.count()
    return not isinstance(count, int) or count > 1


def _go_over(
    iterable: Any,
    items: Items | None,
    failed: Exception | None,
    turn: Callable[[Any], None],
    stop: Thunk | None,
    names: Names,
) -> None:
    """Have Python run a loop."""
    if items is not None and failed is not None and not isinstance(failed, PlainPython):
        if nodes_of(items.count()) and not can_compute():
            raise failed
        _unstaged(failed)
    over: Iterable[Any] = _listed(items) if items is not None and is_lazy(iterable) else iterable
    if failed is None or isinstance(failed, PlainPython):
        _turns(over, turn, stop, names)
        return
    with _Forcing():
        _turns(over, turn, stop, names)


def _listed(items: Items) -> Iterable[Any]:
    count = items.count()
    number = int(wrap(size_node(count)).numpy()) if nodes_of(count) else int(extent(count))
    return (items.at(k) for k in range(number))


def _turns(items: Iterable[Any], turn: Callable[[Any], None], stop: Thunk | None, names: Names) -> None:
    if stop is None:
        for item in items:
            turn(item)
        return
    for item in items:
        condition = truth(stop())
        if isinstance(condition, bool):
            if condition:
                break
            turn(item)
        elif _guarded(condition, turn, item, names):
            break


def _guarded(stopped: Node, turn: Callable[[Any], None], item: Any, names: Names) -> bool:
    """A turn that runs unless the loop was left before, which depends on data; gives whether it is known that it was."""

    def nothing() -> None:
        """The loop was left."""

    try:
        staged_branch(stopped, (nothing, lambda: turn(item)), names.bound, (*names.entering, *names.leaving), (turn,))
    except Exception:
        if not can_compute():
            raise
        if _computed(stopped):
            return True
        turn(item)
    return False


def staged_each(
    items: Items, turn: Callable[[Any], None], stop: Thunk | None, names: Names, lists: Sequence[list[Any]] = ()
) -> None:
    """A ``for`` as a region: a ``loop``, or a ``while`` where data may end it early; ``lists`` are what turns append to."""
    count: Size = items.count()
    once = is_at_least(count, 1)
    index = index_node("index", 0, count)

    def run() -> tuple[Any, Any]:
        before = stop() if stop is not None else False
        turn(items.at(wrap(index)))
        return before, stop() if stop is not None else False

    loop = Loop([getattr(turn, "__wrapped__", turn), *([stop] if stop else [])], names, run, once=once, lists=lists)
    loop.index = index
    loop.trace()
    if isinstance(count, int) and not loop.is_lazy(index):
        raise PlainPython(alone=loop.world.has_no_tensors)
    if loop.appended and not isinstance(count, int):
        if nodes_of(count):
            raise NeedsPython("a list grows as often as data say", "Fill an array of the largest size.")
        staged_each(First(items, int(extent(count))), turn, stop, names, lists)
        return
    if loop.appended and isinstance(count, int) and count <= FEW:
        raise NeedsPython(f"a list gets no more than {FEW} values", "They stay values of their own.")
    before, after = (truth(v) for v in loop.outcome.result)
    number = size_node(count)
    if after is False:
        counted(loop, number, index)
        return
    if isinstance(before, bool):
        raise NeedsPython("the loop is left in its first turn", "Write what it does without a loop.")
    asked = input_node(Source("index"), python(int))
    going = scalar.logical_and(scalar.less(asked, number), scalar.logical_not(before))
    conditional(loop, to_form(going, "python"), None if once else scalar.greater(number, 0), (index, asked))


# comprehensions -------------------------------------------------------------------------------------------------------


def comprehended(iterable: Any, turn: Callable[..., Any], single: bool) -> list[Any]:
    """``[turn(item) for item in iterable]``: a loop that fills an array, where the turns are alike."""
    one = turn if single else lambda item: turn(*item)
    found = _filled(iterable, turn, one)
    if found is UNFORCED:
        with _Forcing():
            return [one(item) for item in iterable]
    return [one(item) for item in iterable] if found is None else found


def generated(iterable: Any, turn: Callable[..., Any], single: bool) -> Any:
    """``(turn(item) for item in iterable)``."""
    return Generated(iterable, turn, turn if single else lambda item: turn(*item))


class Generated:
    """A generator expression: Python's, unless a function that goes over all of it at once asks for a list."""

    def __init__(self, iterable: Any, turn: Callable[..., Any], one: Callable[[Any], Any]) -> None:
        self.turn = turn
        self.one = one
        self.iterable = iterable if items_of(iterable) is not None else iter(iterable)
        self.running: Any = None

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.running is None:
            self.running = map(self.one, self.iterable)
        return next(self.running)

    def whole(self) -> Any:
        """A list of everything, where it is a region that makes it; else itself."""
        found = _filled(self.iterable, self.turn, self.one) if self.running is None else None
        return self if found is None or found is UNFORCED else found


UNFORCED: list[Any] = []  # says that Python goes over something, and that what it asks for is to be computed


def _filled(iterable: Any, turn: Callable[..., Any], one: Callable[[Any], Any]) -> list[Any] | None:
    """A list of what the turns give, made by a region; None or ``UNFORCED`` where Python makes it."""
    items = items_of(iterable) if context.current() is not None else None
    count = 0 if items is None else items.count()
    if items is None or (isinstance(count, int) and count <= FEW):
        return None
    found: list[Any] = []

    def run(item: Any) -> None:
        found.append(one(item))

    run.__wrapped__ = turn  # type: ignore[attr-defined]  (what it reaches is what the user's function reaches)
    try:
        staged_each(items, run, None, Names((), (), (), (), ()), [found])
    except PlainPython:
        return None
    except Exception:  # noqa: BLE001 (Python goes over it, and meets the same error, if it is one)
        return UNFORCED
    raising.settle()
    return found


def repeat(test: Thunk, turn: Thunk, told: tuple[Sequence[str], ...]) -> None:
    """``while``."""
    condition = truth(test())
    names = Names(*map(tuple, told))
    failed: Exception | None = None
    tried = context.current() is None
    while condition is not False:
        if not isinstance(condition, bool) and failed is None:
            failed = _staged(test, turn, names, condition)
            if failed is None:
                return
        elif not tried and condition is True:
            tried = True
            condition, failed = _first_turn(test, turn, names)
            if condition is None:
                return
            if failed is None:
                continue
        if not isinstance(condition, bool):
            if not can_compute() or failed is None:
                raise failed or AssertionError
            _unstaged(failed)
            if not _computed(condition):
                return
        _forced(turn, failed)
        condition = truth(test())


def _forced(turn: Thunk, failed: Exception | None) -> None:
    if failed is None:
        turn()
        return
    with _Forcing():
        turn()


def _staged(test: Thunk, turn: Thunk, names: Names, condition: bool | Node) -> Exception | None:
    """Stage a ``while``; gives what stands in the way."""
    try:
        staged_repeat(test, turn, names, condition)
    except Exception as error:  # noqa: BLE001 (Python runs the loop, and meets the same error, if it is one)
        return error
    raising.settle()
    return None


def _first_turn(test: Thunk, turn: Thunk, names: Names) -> tuple[bool | Node | None, Exception | None]:
    """The first turn of a ``while`` whose test is known: it stands, if the test is known after it, else the loop is staged.

    Gives whether to go on, None where the loop is done; and what stands in the way of staging it.
    """

    def run() -> bool | Node:
        turn()
        return truth(test())

    try:
        outcome = attempt(World((turn, test)), run, lambda result: isinstance(result, bool))
    except Exception as error:  # noqa: BLE001 (as above)
        return True, error
    if isinstance(outcome.result, bool):
        return outcome.result, None
    failed = _staged(test, turn, names, True)
    return (None, None) if failed is None else (True, failed)


def staged_repeat(test: Thunk, turn: Thunk, names: Names, first: bool | Node) -> None:
    """A ``while`` as a region."""

    def run() -> tuple[Any, Any]:
        before = test()
        turn()
        return before, None

    loop = Loop([turn, test], names, run, once=first is True)
    loop.trace()
    condition = truth(loop.outcome.result[0])
    if isinstance(condition, bool):
        raise NeedsPython("the test of a `while` does not depend on what a turn changes", "Write it as Python does.")
    conditional(loop, condition, None if isinstance(first, bool) else first)


formatted, attempting, raised = raising.formatted, raising.attempting, raising.raising

__all__ = [
    "asserted",
    "attempted",
    "attempting",
    "both",
    "branch",
    "called",
    "chosen",
    "compared",
    "comprehended",
    "each",
    "either",
    "formatted",
    "generated",
    "negated",
    "raised",
    "repeat",
]
