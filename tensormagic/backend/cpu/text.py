"""A kernel's text as a module in LLVM's language: one pass over Python's syntax tree, without Numba.

The text is a small part of Python: numbers and elements of arrays, loops over ranges, branches. A name has one kind
throughout; where an assignment shows that its kind is wider than was thought, the function is written anew.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tensormagic.backend.cpu.calls import LOOPS, Module, metadata
from tensormagic.backend.cpu.formulas import defined
from tensormagic.backend.cpu.kinds import KINDS, Kind, UnknownTextError, Value, Writer, llvm, unified
from tensormagic.backend.cpu.names import Names
from tensormagic.backend.cpu.shares import HELPER, SHARE_OUT, Captured, captured_names, is_fault
from tensormagic.backend.cpu.target import abilities, described
from tensormagic.backend.cpu.values import Expressions
from tensormagic.backend.vecmath import complex_text as complex_numbers
from tensormagic.backend.vecmath import division_text as divisions

SYMBOL = "kernel"
CONSTANTS = {**divisions.CONSTANTS, **complex_numbers.CONSTANTS}
TEXTS = {**divisions.TEXTS, **complex_numbers.TEXTS}
_RETRIES = 8  # times that a function is written before it is given up


class _WiderError(Exception):
    """A name is of another kind than was thought."""


class _Function(Expressions):
    """One function: its statements."""

    def __init__(
        self, module: Module, body: Sequence[ast.stmt], kinds: dict[str, Kind], result: str, left: int = 0
    ) -> None:
        super().__init__(module)
        self._left = left  # what a function gives that is left early
        self._names = Names(body)
        self._kinds = kinds  # of names with memory
        self._rooms: dict[str, str] = {}
        self._ends: list[str] = []  # of the loops around
        self._result = result

    # names

    def loaded(self, name: str) -> Value:
        """Return the value of a name that has memory."""
        if name in CONSTANTS:
            return self.value(ast.Constant(CONSTANTS[name]))
        room, kind = self._rooms.get(name), self._kinds.get(name)
        if room is None or kind is None:
            raise UnknownTextError(f"{name} before it is given a value")
        return self.code.new(kind, f"load {llvm(kind)}, ptr {room}")

    def assign(self, name: str, value: Value) -> None:
        """Give a name a value."""
        if name in self._names.values:
            self.known[name] = value
            return
        kind = unified(self._kinds.setdefault(name, value.kind), value.kind)
        if kind != self._kinds[name]:
            self._kinds[name] = kind
            raise _WiderError
        if name not in self._rooms:
            self._rooms[name] = self.code.room(llvm(kind))
        self.code.do(f"store {llvm(kind)} {self.code.cast(value, kind).text}, ptr {self._rooms[name]}")

    def call_helper(self, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function of complex numbers or of floats, whose own text is compiled with the kernel."""
        if name not in TEXTS:
            raise UnknownTextError(f"a call of {name}")
        if name not in self.module.helpers:
            self.module.helpers[name] = _helper(self.module, name)
        kind = _kind_of(name)
        given = ", ".join(f"{KINDS[kind]} {self.code.cast(a, kind).text}" for a in arguments)
        return self.code.new(kind, f"call {KINDS[kind]} @{name}({given})")

    # statements

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Write statements, one after the other."""
        for statement in body:
            if not self.code.is_open:
                return
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.assign(name, self.value(statement.value))
            case ast.Assign(targets=[ast.Subscript() as target]):
                self.store(target, self.value(statement.value))
            case ast.AugAssign(target=ast.Name(id=name)):
                old = self.value(ast.Name(name, ast.Load()))
                self.assign(name, self.operate(statement.op, old, self.value(statement.value)))
            case ast.For() | ast.While() | ast.If():
                self._block(statement)
            case ast.Expr(value=ast.Call()):
                self.value(statement.value)
            case ast.Return():
                self._leave(statement.value)
            case ast.Break() if self._ends:
                self.code.jump(self._ends[-1])
            case ast.Pass():
                pass
            case _:
                raise UnknownTextError(ast.unparse(statement))

    def _leave(self, value: ast.expr | None) -> None:
        if self._result == "i32":
            self.code.do(f"ret i32 {self._left}")
        elif value is not None:
            self.code.do(f"ret {KINDS[self._result]} {self.code.cast(self.value(value), self._result).text}")
        self.code.is_open = False

    def _block(self, statement: ast.For | ast.While | ast.If) -> None:
        if isinstance(statement, ast.If):
            self._if(statement)
        elif statement.orelse:
            raise UnknownTextError("else of a loop")
        elif isinstance(statement, ast.While):
            self._while(statement)
        elif isinstance(statement.iter, ast.Call) and ast.unparse(statement.iter.func) == "parallel":
            self._parallel(statement, statement.iter.args)
        else:
            self._for(statement)

    def _if(self, statement: ast.If) -> None:
        code = self.code
        then, end = code.fresh("b"), code.fresh("b")
        otherwise = code.fresh("b") if statement.orelse else end
        code.branch(self.truth(statement.test), then, otherwise)
        code.begin(then)
        self.run(statement.body)
        code.jump(end)
        if statement.orelse:
            code.begin(otherwise)
            self.run(statement.orelse)
        code.begin(end)

    def _while(self, statement: ast.While) -> None:
        code = self.code
        head, end = code.fresh("b"), code.fresh("b")
        code.begin(head)
        if not (isinstance(statement.test, ast.Constant) and statement.test.value is True):
            body = code.fresh("b")
            code.branch(self.truth(statement.test), body, end)
            code.begin(body)
        self._body(statement.body, head, end)
        code.begin(end)

    def _body(self, body: Sequence[ast.stmt], following: str, end: str) -> None:
        self._ends.append(end)
        self.run(body)
        self._ends.pop()
        self.code.jump(following)

    def _for(self, statement: ast.For) -> None:
        """Write a loop over a range with a positive step, whose own counter is in memory of its own."""
        code = self.code
        kind = ast.unparse(statement.iter.func) if isinstance(statement.iter, ast.Call) else ""
        start, stop, step = self._range(statement.iter)
        if not isinstance(statement.target, ast.Name):
            raise UnknownTextError(ast.unparse(statement.target))
        counter = code.room("i64")
        code.do(f"store i64 {start.text}, ptr {counter}")
        head, body, latch, end = (code.fresh("b") for _ in range(4))
        code.begin(head)
        at = code.new("int64", f"load i64, ptr {counter}")
        code.branch(code.new("bool", f"icmp slt i64 {at.text}, {stop.text}"), body, end)
        code.begin(body)
        self.assign(statement.target.id, at)
        self._body(statement.body, latch, end)
        code.begin(latch)
        following = code.new("int64", f"add nsw i64 {at.text}, {step.text}")
        code.do(f"store i64 {following.text}, ptr {counter}")
        code.jump(head, f", !llvm.loop !{LOOPS[kind]}" if kind in LOOPS else "")
        code.begin(end)

    def _parallel(self, statement: ast.For, given: Sequence[ast.expr]) -> None:
        """Write a loop whose iterations may run on several threads, as a function that finds what it reads in a frame."""
        code = self.code
        rows, share, threads, work = (code.cast(self.value(g), "int64") for g in given)
        if not isinstance(statement.target, ast.Name) or not isinstance(given[1], ast.Name):
            raise UnknownTextError(ast.unparse(statement.iter))
        count = code.new("int64", f"add i64 {rows.text}, {share.text}")
        count = code.new("int64", f"sub i64 {count.text}, 1")
        count = code.new("int64", f"sdiv i64 {count.text}, {share.text}")
        names = [n for n in captured_names(statement.body) if n in self.known or n in self._rooms]
        captured = Captured([(name, self.known.get(name) or self.loaded(name)) for name in names])
        frame = code.room(captured.layout)
        for line in captured.stores(code, frame):
            code.do(line)
        fault = next((v.text for name, v in captured.items if is_fault(name)), "null")
        loop = f"loop_{statement.lineno}"
        self.module.helpers[HELPER] = SHARE_OUT
        self.module.helpers[loop] = self._loop(statement, statement.target.id, given[1].id, captured, loop)
        status = code.new(
            "int32",
            f"call i32 @{HELPER}(ptr @{loop}, ptr {frame}, i64 {count.text}, i64 {work.text}, i64 {threads.text}, ptr {fault})",
        )
        left, end = code.fresh("b"), code.fresh("b")
        code.branch(code.new("bool", f"icmp ne i32 {status.text}, 0"), left, end)
        code.begin(left)
        self._leave(None)
        code.begin(end)

    def _loop(self, statement: ast.For, target: str, share: str, captured: Captured, name: str) -> str:
        """Return the function that runs one share of a loop."""
        kinds: dict[str, Kind] = {}
        for _ in range(_RETRIES):
            function = _Function(self.module, statement.body, kinds, "i32", left=1)
            function.known.update(captured.loaded(function.code))
            function.known[target] = function.code.new("int64", f"mul i64 %number, {function.known[share].text}")
            try:
                function.run(statement.body)
            except _WiderError:
                continue
            function.code.do("ret i32 0")
            head = f"define internal i32 @{name}(ptr noalias %frame, i64 %number, ptr noalias %local) noinline nounwind"
            return _lines(head, function.code)
        raise UnknownTextError("the kinds of names")

    def _range(self, expression: ast.expr) -> tuple[Value, Value, Value]:
        match expression:
            case ast.Call(func=ast.Name(id="range" | "few" | "woven"), args=given, keywords=[]) if 1 <= len(given) <= 3:
                pass
            case _:
                raise UnknownTextError(ast.unparse(expression))
        zero, one = ast.Constant(0), ast.Constant(1)
        parts = [zero, given[0], one] if len(given) == 1 else [*given, one][:3]
        values = [self.value(part) for part in parts]
        if any(v.kind != "int64" for v in values) or (values[2].number is not None and values[2].number <= 0):
            raise UnknownTextError(ast.unparse(expression))
        return values[0], values[1], values[2]


def _written(module: Module, tree: ast.FunctionDef, parameters: Mapping[str, Value], result: str) -> Writer:
    """Return the instructions of a function."""
    kinds: dict[str, Kind] = {}
    for _ in range(_RETRIES):
        function = _Function(module, tree.body, kinds, result)
        function.known.update(parameters)
        try:
            function.run(tree.body)
        except _WiderError:
            continue
        if function.code.is_open:
            function.code.do("ret i32 0" if result == "i32" else "unreachable")
        return function.code
    raise UnknownTextError("the kinds of names")


def _lines(head: str, code: Writer) -> str:
    return "\n".join([f"{head} {{", "entry:", *code.entry, "  br label %begin", "begin:", *code.lines, "}"])


def _kind_of(name: str) -> str:
    """Return the kind of operands and results of a function whose text is compiled with kernels."""
    return "float64" if name in divisions.TEXTS else "complex128"


def _helper(module: Module, name: str) -> str:
    """Return a function of complex numbers, or of floats."""
    (tree,) = ast.parse(TEXTS[name]).body
    if not isinstance(tree, ast.FunctionDef):
        raise UnknownTextError(name)
    kind = _kind_of(name)
    parameters = {a.arg: Value(kind, f"%{a.arg}") for a in tree.args.args}
    given = ", ".join(f"{KINDS[kind]} {p.text}" for p in parameters.values())
    return _lines(f"define internal {KINDS[kind]} @{name}({given}) nounwind", _written(module, tree, parameters, kind))


def module_of(source: str) -> str:
    """Return the module of a kernel, whose function is called as Numba calls: ``kernel(result*, exception*, table*)``.

    Raises
    ------
    UnknownTextError
        For what this compiler does not know.
    """
    (tree,) = ast.parse(source).body
    if not isinstance(tree, ast.FunctionDef):
        raise UnknownTextError("no function")
    triple, _, features = described()
    module = Module(has_fma=abilities(triple, features)[0])
    code = _written(module, tree, {}, "i32")
    head = f"define i32 @{SYMBOL}(ptr noalias %result, ptr noalias %exception, ptr %table) nounwind"
    declared, formulas = defined(module.formulas)
    declared = {**module.declared, **declared}
    parts = [f'target triple = "{triple}"', *formulas, *module.helpers.values(), _lines(head, code)]
    return "\n".join([*parts, *declared.values(), *metadata(module), ""])
