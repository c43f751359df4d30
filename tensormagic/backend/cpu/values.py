"""Expressions of kernels as instructions: the operators of Python on numbers of NumPy's kinds, by Numba's rules."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.backend.cpu.calls import CALLS, Module, element, entry, scopes
from tensormagic.backend.cpu.kinds import (
    FLOATS,
    KINDS,
    Buffer,
    UnknownTextError,
    Value,
    Writer,
    arithmetic,
    comparison,
    in_memory,
    integer,
    is_integer,
    is_signed,
    llvm,
    real,
    truth,
    unified,
)

_ARITHMETIC: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITWISE: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_RELATIONS: dict[type, str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_CONSTANTS = {"inf": math.inf, "nan": math.nan}


class Expressions:
    """What gives expressions their values, in one function of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.code = Writer(module.declared)
        self.known: dict[str, Value] = {}
        self._by_type: dict[type, Callable[[Any], Value]] = {
            ast.Name: self._name,
            ast.Constant: self._constant,
            ast.BinOp: self._operation,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._either,
            ast.IfExp: self._choice,
            ast.Subscript: self._subscript,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
        }

    def value(self, expression: ast.expr) -> Value:
        """Return the value of an expression."""
        emit = self._by_type.get(type(expression))
        if emit is None:
            raise UnknownTextError(ast.unparse(expression))
        return emit(expression)

    def truth(self, expression: ast.expr) -> Value:
        """Return whether an expression's value counts as true."""
        return self.code.cast(self.value(expression), "bool")

    def loaded(self, name: str) -> Value:
        """Return the value of a name that has memory."""
        raise UnknownTextError(name)

    def call_helper(self, name: str, arguments: Sequence[Value]) -> Value:
        """Call a function that is itself written as text."""
        raise UnknownTextError(f"{name}{len(arguments)}")

    def _name(self, expression: ast.Name) -> Value:
        return self.known.get(expression.id) or self.loaded(expression.id)

    def _constant(self, expression: ast.Constant) -> Value:
        value = expression.value
        if isinstance(value, bool):
            return truth(value)
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            return integer(value)
        if isinstance(value, float):
            return real(value, "float64")
        raise UnknownTextError(repr(value))

    # arithmetic -------------------------------------------------------------------------------------------------------

    def _operation(self, expression: ast.BinOp) -> Value:
        return self.operate(expression.op, self.value(expression.left), self.value(expression.right))

    def operate(self, operator: ast.operator, a: Value, b: Value) -> Value:
        """Return the value of an operator for two operands."""
        if type(operator) in _ARITHMETIC:
            return self._arithmetic(_ARITHMETIC[type(operator)], a, b)
        if type(operator) in _BITWISE:
            return self._bitwise(_BITWISE[type(operator)], a, b)
        if isinstance(operator, ast.Div):
            return self._quotient(a, b)
        if isinstance(operator, ast.FloorDiv | ast.Mod):
            return self._floored(a, b, rest=isinstance(operator, ast.Mod))
        if isinstance(operator, ast.LShift | ast.RShift):
            return self._shift(a, b, left=isinstance(operator, ast.LShift))
        raise UnknownTextError(type(operator).__name__)

    def _binary(self, instruction: str, kind: str, a: Value, b: Value) -> Value:
        left, right = self.code.cast(a, kind), self.code.cast(b, kind)
        return self.code.new(kind, f"{instruction} {llvm(kind)} {left.text}, {right.text}")

    def _arithmetic(self, name: str, a: Value, b: Value) -> Value:
        kind = arithmetic(a.kind, b.kind)
        if kind == "complex128":
            return self._complex(name, self.code.cast(a, kind), self.code.cast(b, kind))
        if kind in FLOATS:
            return self._binary(f"f{name}", kind, a, b)
        return self._binary(f"{name} nsw" if is_signed(kind) else name, kind, a, b)

    def _complex(self, name: str, x: Value, y: Value) -> Value:
        (a, b), (c, d) = ([self.code.part(v, k) for k in (0, 1)] for v in (x, y))
        if name != "mul":
            return self.code.complex(self._arithmetic(name, a, c), self._arithmetic(name, b, d))
        if sys.version_info >= (3, 14):
            raise UnknownTextError("a product of complex numbers, which asks for infinities from CPython 3.14 on")
        ac, bd, ad, bc = (self._arithmetic("mul", *pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return self.code.complex(self._arithmetic("sub", ac, bd), self._arithmetic("add", ad, bc))

    def _bitwise(self, name: str, a: Value, b: Value) -> Value:
        kind = "bool" if a.kind == b.kind == "bool" else arithmetic(a.kind, b.kind)
        if kind != "bool" and not is_integer(kind):
            raise UnknownTextError(f"bits of {kind}")
        return self._binary(name, kind, a, b)

    def _quotient(self, a: Value, b: Value) -> Value:
        kind = arithmetic(a.kind, b.kind)
        if kind == "complex128":
            raise UnknownTextError("a quotient of complex numbers")
        return self._binary("fdiv", kind if kind in FLOATS else "float64", a, b)

    def _floored(self, a: Value, b: Value, *, rest: bool) -> Value:
        """Return the quotient rounded down, or what it leaves; 0 where it is not defined."""
        kind = arithmetic(a.kind, b.kind)
        if not is_integer(kind):
            raise UnknownTextError(f"a floor division of {kind}")
        x, y = self.code.cast(a, kind), self.code.cast(b, kind)
        if not is_signed(kind):
            return self._safely(x, y, "urem" if rest else "udiv", f"icmp eq i64 {y.text}, 0")
        if y.number is not None and y.number > 0:
            return self._rounded_down(x, y, rest=rest)
        zero = self.code.new("bool", f"icmp eq i64 {y.text}, 0")
        least = self.code.new("bool", f"icmp eq i64 {x.text}, {-(1 << 63)}")
        minus = self.code.new("bool", f"icmp eq i64 {y.text}, -1")
        over = self.code.new("bool", f"and i1 {least.text}, {minus.text}")
        bad = self.code.new("bool", f"or i1 {zero.text}, {over.text}")
        divisor = self.code.new(kind, f"select i1 {bad.text}, i64 1, i64 {y.text}")
        found = self._rounded_down(x, divisor, rest=rest)
        return self.code.new(kind, f"select i1 {bad.text}, i64 0, i64 {found.text}")

    def _safely(self, x: Value, y: Value, instruction: str, test: str) -> Value:
        bad = self.code.new("bool", test)
        divisor = self.code.new(y.kind, f"select i1 {bad.text}, i64 1, i64 {y.text}")
        found = self.code.new(y.kind, f"{instruction} i64 {x.text}, {divisor.text}")
        return self.code.new(y.kind, f"select i1 {bad.text}, i64 0, i64 {found.text}")

    def _rounded_down(self, x: Value, y: Value, *, rest: bool) -> Value:
        """By a divisor for which the machine's own division is defined."""
        code = self.code
        left = code.new(x.kind, f"srem i64 {x.text}, {y.text}")
        if y.number is not None:
            lower = code.new("bool", f"icmp slt i64 {left.text}, 0")
        else:
            signs = code.new(x.kind, f"xor i64 {y.text}, {left.text}")
            differ = code.new("bool", f"icmp slt i64 {signs.text}, 0")
            some = code.new("bool", f"icmp ne i64 {left.text}, 0")
            lower = code.new("bool", f"and i1 {some.text}, {differ.text}")
        if rest:
            more = code.new(x.kind, f"add i64 {left.text}, {y.text}")
            return code.new(x.kind, f"select i1 {lower.text}, i64 {more.text}, i64 {left.text}")
        quotient = code.new(x.kind, f"sdiv i64 {x.text}, {y.text}")
        less = code.new(x.kind, f"sub i64 {quotient.text}, 1")
        return code.new(x.kind, f"select i1 {lower.text}, i64 {less.text}, i64 {quotient.text}")

    def _shift(self, a: Value, b: Value, *, left: bool) -> Value:
        if not (is_integer(a.kind) and is_integer(b.kind)):
            raise UnknownTextError(f"a shift of {a.kind} by {b.kind}")
        kind = "int64" if is_signed(a.kind) else "uint64"
        return self._binary("shl" if left else "ashr" if kind == "int64" else "lshr", kind, a, b)

    def _unary(self, expression: ast.UnaryOp) -> Value:
        operator, code = expression.op, self.code
        if isinstance(operator, ast.USub) and isinstance(expression.operand, ast.Constant):
            number = expression.operand.value
            if isinstance(number, int | float) and not isinstance(number, bool):
                return self._constant(ast.Constant(-number))
        value = self.value(expression.operand)
        if isinstance(operator, ast.Not):
            return code.new("bool", f"xor i1 {code.cast(value, 'bool').text}, true")
        if isinstance(operator, ast.USub) and value.kind in FLOATS:
            return code.negated(value)
        if isinstance(operator, ast.USub) and value.kind == "complex128":
            return code.complex(*(code.negated(code.part(value, k)) for k in (0, 1)))
        if not is_integer(value.kind) or not isinstance(operator, ast.USub | ast.Invert):
            raise UnknownTextError(ast.unparse(expression))
        own = llvm(value.kind)
        line = f"sub {own} 0, {value.text}" if isinstance(operator, ast.USub) else f"xor {own} {value.text}, -1"
        return code.cast(code.new(value.kind, line), "int64" if is_signed(value.kind) else "uint64")

    # truth ------------------------------------------------------------------------------------------------------------

    def _compare(self, expression: ast.Compare) -> Value:
        if len(expression.ops) == 1:
            return self._relation(expression.ops[0], self.value(expression.left), self.value(expression.comparators[0]))
        operands = [expression.left, *expression.comparators]
        pairs: list[ast.expr] = [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(operands, expression.ops, operands[1:], strict=False)
        ]
        return self._either(ast.BoolOp(ast.And(), pairs))

    def _relation(self, relation: ast.cmpop, a: Value, b: Value) -> Value:
        name = _RELATIONS.get(type(relation))
        kind = comparison(a.kind, b.kind)
        if name is None or (kind == "complex128" and name not in {"eq", "ne"}):
            raise UnknownTextError(f"{type(relation).__name__} of {kind}")
        x, y = self.code.cast(a, kind), self.code.cast(b, kind)
        if kind == "complex128":
            halves = [self._relation(relation, self.code.part(x, k), self.code.part(y, k)) for k in (0, 1)]
            return self._bitwise("and" if name == "eq" else "or", *halves)
        if kind in FLOATS:
            test = f"fcmp {'une' if name == 'ne' else f'o{name}'}"
        else:
            sign = "" if name in {"eq", "ne"} else "s" if is_signed(kind) else "u"
            test = f"icmp {sign}{name}"
        return self.code.new("bool", f"{test} {llvm(kind)} {x.text}, {y.text}")

    def _either(self, expression: ast.BoolOp) -> Value:
        """Return the value of ``and`` or ``or``, computing further operands only where they decide."""
        both = isinstance(expression.op, ast.And)
        first, *others = expression.values
        found = self._truth_of(first)
        code, end = self.code, self.code.fresh("b")
        room = code.room("i1")
        for other in others:
            code.do(f"store i1 {found.text}, ptr {room}")
            more = code.fresh("b")
            code.branch(found, *((more, end) if both else (end, more)))
            code.begin(more)
            found = self._truth_of(other)
        code.do(f"store i1 {found.text}, ptr {room}")
        code.begin(end)
        return code.new("bool", f"load i1, ptr {room}")

    def _truth_of(self, expression: ast.expr) -> Value:
        """Return a truth value: Python's ``and`` and ``or`` give operands, which are the same where these are truth values."""
        value = self.value(expression)
        if value.kind != "bool":
            raise UnknownTextError(f"and, or of {value.kind}")
        return value

    def _choice(self, expression: ast.IfExp) -> Value:
        code = self.code
        test = self.truth(expression.test)
        then, otherwise, end = (code.fresh("b") for _ in range(3))
        code.branch(test, then, otherwise)
        code.begin(then)
        yes = self.value(expression.body)
        last = len(code.lines)
        code.jump(end)
        code.begin(otherwise)
        no = self.value(expression.orelse)
        kind = unified(yes.kind, no.kind)
        room = code.room(llvm(kind))
        code.do(f"store {llvm(kind)} {code.cast(no, kind).text}, ptr {room}")
        code.begin(end)
        self._insert(last, yes, str(kind), room)
        return code.new(kind, f"load {llvm(kind)}, ptr {room}")

    def _insert(self, place: int, value: Value, kind: str, room: str) -> None:
        """Store a value where a block has ended already: its kind was not known there."""
        code = self.code
        tail = code.lines[place:]
        del code.lines[place:]
        code.do(f"store {llvm(kind)} {code.cast(value, kind).text}, ptr {room}")
        code.lines += tail

    # memory, parts, calls ---------------------------------------------------------------------------------------------

    def _subscript(self, expression: ast.Subscript) -> Value:
        if isinstance(expression.value, ast.Name) and expression.value.id == "table":
            return entry(self.code, self._place(expression))
        buffer = self.value(expression.value)
        if not isinstance(buffer.kind, Buffer):
            raise UnknownTextError(ast.unparse(expression))
        kind, number = buffer.kind
        address = element(self.code, buffer, self._index(expression))
        found = self.code.new(kind, f"load {in_memory(kind)}, ptr {address.text}{scopes(self.module, number)}")
        return self.code.new(kind, f"trunc i8 {found.text} to i1") if kind == "bool" else found

    def _place(self, expression: ast.Subscript) -> int:
        """Return a place in the table, which is written out."""
        place = expression.slice
        if not isinstance(place, ast.Constant) or not isinstance(place.value, int):
            raise UnknownTextError(ast.unparse(expression))
        return place.value

    def _index(self, expression: ast.Subscript) -> Value:
        index = self.value(expression.slice)
        if not is_integer(index.kind):
            raise UnknownTextError(ast.unparse(expression))
        return index

    def store(self, target: ast.Subscript, value: Value) -> None:
        """Store an element."""
        buffer = self.value(target.value)
        if not isinstance(buffer.kind, Buffer):
            raise UnknownTextError(ast.unparse(target))
        kind, number = buffer.kind
        address = element(self.code, buffer, self._index(target))
        given = self.code.cast(value, kind)
        if kind == "bool":
            given = self.code.new("uint8", f"zext i1 {given.text} to i8")
        self.code.do(f"store {in_memory(kind)} {given.text}, ptr {address.text}{scopes(self.module, number)}")

    def _attribute(self, expression: ast.Attribute) -> Value:
        if isinstance(expression.value, ast.Name) and expression.value.id == "np" and expression.attr in _CONSTANTS:
            return real(_CONSTANTS[expression.attr], "float64")
        if expression.attr in {"real", "imag"}:
            return self.code.part(self.value(expression.value), int(expression.attr == "imag"))
        raise UnknownTextError(ast.unparse(expression))

    def _call(self, expression: ast.Call) -> Value:
        function, given = expression.func, expression.args
        if expression.keywords:
            raise UnknownTextError(ast.unparse(expression))
        if isinstance(function, ast.Attribute):
            return self._method(function, given)
        name = function.id if isinstance(function, ast.Name) else ""
        if name in CALLS:
            return CALLS[name](self, given)
        return self.call_helper(name, [self.value(g) for g in given])

    def _method(self, function: ast.Attribute, given: Sequence[ast.expr]) -> Value:
        kind = "bool" if function.attr == "bool_" else function.attr
        if isinstance(function.value, ast.Name) and function.value.id == "np" and kind in KINDS and len(given) == 1:
            return self.code.cast(self.value(given[0]), kind)
        if function.attr == "conjugate" and not given:
            value = self.value(function.value)
            return self.code.complex(self.code.part(value, 0), self.code.negated(self.code.part(value, 1)))
        raise UnknownTextError(ast.unparse(function))
