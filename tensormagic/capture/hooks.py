"""Functions that upper floors install for lazy arrays: the session's, to compute them; staged code's, for branches and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, NamedTuple

from tensormagic.ir.node import Node
from tensormagic.ir.type import Size


class Form(NamedTuple):
    """A compiled formula of its operands, and the levels of the rules that made it."""

    run: Callable[[Sequence[Any]], Any]
    levels: set[str]


class Hooks:
    """Functions that the session installs: how to compute and differentiate lazy values."""

    compute: Callable[[Sequence[Node]], list[Any]]
    array: Callable[[Node], Any]  # makes the lazy array of a node
    on_values: Callable[
        [], AbstractContextManager[None]
    ]  # a context around functions that are not captured, and run on values
    called_back: Callable[[], AbstractContextManager[None]]  # a context around captured code that these call back
    calls_back: Callable[[Any], Any]  # the functions that one library call may run as plain Python, by its loan
    is_computed: Callable[[Node], bool]
    is_on_device: Callable[[Node], bool]  # whether a computed value lies only on a device
    methods: dict[str, Callable[..., Any]]
    call_numpy: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    call_ufunc: Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]
    handed_out: Callable[[Any, Callable[[Any], Any]], Any]  # the iterable that other code gets for an iterator
    address_of: Callable[[Any], Any]  # the argument that C functions get for a lazy array
    failed: Callable[[BaseException], None]  # called with an error raised while the program of a function runs
    differentiated: Callable[[Node, Sequence[Node]], None]  # called with a value, and the nodes to differentiate by
    by_class: Callable[[Node], Node]  # the result for each class, where the class of a number is data-dependent
    of_rules: (
        Callable[[Any], Callable[..., Any] | None] | None
    )  # what is called for a function that patterns of rules contain
    form_of: Callable[[Node, Sequence[Node]], Form | None]  # the accurate form of a formula of numbers
    choices: Callable[[], Any]  # settings that decide a value beside its graph
    own_rules: Mapping[str, Any]  # the user's own rules, by name
    batch: Callable[[Sequence[Node], dict[Node, Node], Size], list[Node | None]]

    def __init__(self) -> None:
        self.methods = {}
        self.of_rules = None
        self.failed = lambda error: None
        self.differentiated = lambda value, by: None


class RunTime:
    """Functions that the run time of staged code installs: branches for values that are one of several, and raising of errors."""

    module: ModuleType  # what staged code calls
    choose: Callable[..., Any]  # selects one of two results by a condition, with their effects on what they reach
    raised: Callable[[Any], Any]  # an error that is raised on trial
    defer: Callable[
        [Node, Exception], bool
    ]  # lets the graph raise an error unless a condition holds; returns whether it can be deferred
    staged: Callable[[Any], Any]  # what is called for a function of the user's


hooks = Hooks()
run_time = RunTime()
