"""What is given to lazy arrays from above: by the session, how to compute them; by the run time of staged code, branches and checks."""

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
    array: Callable[[Node], Any]  # the lazy array that stands for a node
    on_values: Callable[[], AbstractContextManager[None]]  # around functions that are not captured, and run on values
    called_back: Callable[[], AbstractContextManager[None]]  # around captured code that these call back
    calls_back: Callable[
        [Any], Any
    ]  # functions that one call of a library may have as they are written, by what it is lent
    is_computed: Callable[[Node], bool]
    is_on_device: Callable[[Node], bool]  # whether a value that is there lies on a device alone
    methods: dict[str, Callable[..., Any]]
    call_numpy: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    call_ufunc: Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]
    handed_out: Callable[[Any, Callable[[Any], Any]], Any]  # what other code goes over for an iterator
    address_of: Callable[[Any], Any]  # what functions of C take for a lazy array
    failed: Callable[[BaseException], None]  # told of an error while the program of a function runs
    differentiated: Callable[
        [Node, Sequence[Node]], None
    ]  # called with a value, and the nodes that it is differentiated in
    by_class: Callable[[Node], Node]  # what each class gives, where the class of a number is data-dependent
    of_rules: (
        Callable[[Any], Callable[..., Any] | None] | None
    )  # what is called for a function that patterns of rules hold
    form_of: Callable[[Node, Sequence[Node]], Form | None]  # of formulas of numbers
    choices: Callable[[], Any]  # what decides a value beside its graph
    own_rules: Mapping[str, Any]  # rules of the user's own, by name
    batch: Callable[[Sequence[Node], dict[Node, Node], Size], list[Node | None]]

    def __init__(self) -> None:
        self.methods = {}
        self.of_rules = None
        self.failed = lambda error: None
        self.differentiated = lambda value, by: None


class RunTime:
    """Functions that the run time of staged code installs: branches for values that are one of several, and raising of errors."""

    module: ModuleType  # what staged code calls
    choose: Callable[..., Any]  # what one of two gives, as a condition says, with what they do to what they reach
    raised: Callable[[Any], Any]  # an error that is raised on trial
    defer: Callable[
        [Node, Exception], bool
    ]  # have the graph raise an error unless a condition holds; whether that can wait
    staged: Callable[[Any], Any]  # what is called for a function of the user's


hooks = Hooks()
run_time = RunTime()
