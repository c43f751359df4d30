"""The entrance for the user's values: captured code computes with each as NumPy or pandas would, or refuses it by name.

Every value is checked here, wherever it comes from: names, arguments, containers, operands, indices, what is stored,
and what other code returns. A value that becomes a lazy array loses its own operators and methods; where these mean
something else than an array's, it is refused.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import run_time
from tensormagic.ir.errors import DTypeError, ForeignError
from tensormagic.ir.modules import is_users, module_of, package_of
from tensormagic.ir.plain_texts import key_text
from tensormagic.ir.stored import SEEN, is_narrow, is_stored


class Kind(enum.Enum):
    """How captured code treats a class of values."""

    OTHER = "no array and no number: it stays as it is"
    PLAIN = "an array or a number of Python's or NumPy's own"
    VIEW = "an ndarray's subclass that computes as ndarray does"
    READ = "an object that NumPy reads as an array, without operators or methods of its own"
    USERS = "one of a class of the user's: it stays as it is, and is read where NumPy meets it"
    METHODS = "an object that NumPy reads as an array, with methods of its own"
    NUMBER = "a number's subclass with operators or methods of its own, which NumPy's arrays do not ask"
    OWN = "operators of its own, which NumPy's arrays ask"


_NUMBERS = (bool, int, float, complex, np.generic)
_PYTHONS = (int, float, complex)
_OWN_NUMBERS: dict[type, Callable[[Any], Any]] = {kind: kind.__pos__ for kind in _PYTHONS}
OPERATORS = {
    f"__{side}{name}__"
    for side in ("", "r", "i")
    for name in (
        "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()  # noqa: SIM905 (a table)
    )
} | {f"__{name}__" for name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")}
_PROTOCOLS = {"__array_ufunc__", "__array_function__", "__array_namespace__"}
_ALIKE = {  # attributes that a class may have without computing differently
    *("shape", "dtype", "ndim", "tolist", "item", "nbytes", "itemsize", "astype", "copy"),
    *("__array__", "__array_interface__", "__array_struct__", "__array_finalize__", "__array_priority__"),
    *("__len__", "__iter__", "__getitem__", "__contains__", "__copy__", "__deepcopy__", "__buffer__", "__eq__", "__ne__"),
    *("__dlpack__", "__dlpack_device__", "__class_getitem__"),
}  # fmt: skip
_MEANS = {n for n in dir(np.ndarray) if n not in dir(object)} - _ALIKE
_OVERRIDES = (_MEANS | OPERATORS | _PROTOCOLS | {"__getitem__", "__iter__", "__eq__", "__ne__", "astype", "copy"}) - {
    *("__reduce__", "__reduce_ex__", "__setstate__", "__array_finalize__"),
    *("__buffer__", "__class_getitem__"),
}
_ASKED = OPERATORS | {"__eq__", "__float__", "__getattr__"}  # methods of numbers
_MAKING = {"__new__", "__init__", "__init_subclass__", "__hash__", "__reduce__", "__reduce_ex__", "__getnewargs__"}
_KNOWN_VIEWS = (np.memmap, np.recarray)
_kinds: WeakKeyDictionary[type, Kind] = WeakKeyDictionary()


def kind_of(value: Any) -> Kind:
    """Return the kind of a value, by its class."""
    cls = type(value)
    found = _kinds.get(cls)
    if found is None:
        found = _kinds[cls] = _found(cls)
    return found


def _found(cls: type) -> Kind:
    if issubclass(cls, np.ndarray):
        return _kind_of_array(cls)
    if issubclass(cls, _NUMBERS):
        return _kind_of_number(cls)
    if package_of(cls) == "tensormagic":
        return Kind.OTHER
    return Kind.OWN if _has_one(cls, _PROTOCOLS) else _kind_of_object(cls)


def _has_one(cls: type, names: Iterable[str]) -> bool:
    return any(hasattr(cls, name) for name in names)


def _kind_of_number(cls: type) -> Kind:
    own = [c for c in cls.__mro__ if issubclass(c, _NUMBERS) and not _is_basic(c)]
    told_apart = issubclass(cls, enum.Enum) and not issubclass(cls, int)  # compared by `is`
    if not told_apart and not any(_is_own(n, f) for c in own for n, f in vars(c).items()):
        return Kind.PLAIN
    return Kind.OWN if _has_one(cls, _PROTOCOLS) and not issubclass(cls, np.generic) else Kind.NUMBER


def _is_own(name: str, value: Any) -> bool:
    """Return whether an attribute of a class, an operator, method or property, would be lost in a plain Python number."""
    if name in _ASKED:
        return module_of(value) != "enum"  # of flags
    method = isinstance(value, FunctionType | property | classmethod | cached_property)
    return method and name not in _MAKING and getattr(value, "__module__", None) != "enum"


def _kind_of_object(cls: type) -> Kind:
    """Return the kind of a class that does not take part in NumPy's function protocol."""
    if not _has_one(cls, ("__array__", "__array_interface__", "__array_struct__")):
        return Kind.OTHER
    names = {name for c in cls.__mro__ if c is not object for name in vars(c)}
    if names & (OPERATORS | {"__getattr__", "__getattribute__"}):
        return Kind.OWN
    if names & _MEANS:
        return Kind.METHODS
    read = getattr(cls, "__array__", None)
    return Kind.USERS if isinstance(read, FunctionType) and is_users(read.__code__.co_filename) else Kind.READ


def _is_basic(cls: type) -> bool:
    return cls in {bool, int, float, complex} or module_of(cls) in {"numpy", "builtins", "enum"} or is_narrow(cls)


def _kind_of_array(cls: type) -> Kind:
    if cls is np.ndarray:
        return Kind.PLAIN
    between = cls.__mro__[: cls.__mro__.index(np.ndarray)]
    own = [c for c in between if c not in _KNOWN_VIEWS]
    changed = any((_OVERRIDES | {"__getattr__", "__getattribute__"}) & vars(c).keys() for c in own)
    changed |= any(isinstance(vars(c).get("__array_finalize__"), FunctionType) for c in own)  # results have attributes
    return Kind.OWN if changed else Kind.VIEW


def variable(value: Any, name: str = "") -> Any:
    """Return the value of a variable as captured code sees it: a plain array or number, or the object itself.

    Raises
    ------
    RefusedError
        For a value whose operators or methods mean something else than an array's.
    """
    if type(value) is np.ndarray or type(value) is float:
        return value
    kind = kind_of(value)
    if kind in _READ or (kind is Kind.OTHER and _has_interface(value)):
        return _read(value, name)
    if kind in _TAKEN:
        return value if isinstance(value, int) else _number(value)
    raise RefusedError(value, name)


def operand(value: Any, name: str = "") -> Any:
    """Return a value as an operand beside an array; its own operators have been tried before."""
    if type(value) is np.ndarray or type(value) is float:
        return value
    kind = kind_of(value)
    if kind is Kind.OWN:
        found = numbers_of(value, name or "a table") if is_table(value) else _labels(value)
        if found is None:
            raise RefusedError(value, name)
        return found
    if kind is Kind.OTHER:
        return _read(value, name) if _has_interface(value) else value
    return _number(value) if kind in {Kind.PLAIN, Kind.NUMBER} else _read(value, name)


def converted(value: Any, dtype: Any = None) -> Any:
    """Return the array that ``np.asarray`` makes of an object that is used only where it is converted explicitly.

    Any other value is returned unchanged.
    """
    return _read_only_view(np.asarray(value, dtype)) if is_converted(value) else value


def is_converted(value: Any) -> bool:
    """Return whether an object is used only where it is converted explicitly."""
    return kind_of(value) in {Kind.OWN, Kind.METHODS}


def is_read(value: Any) -> bool:
    """Return whether NumPy reads an object as an array."""
    return kind_of(value) is not Kind.OTHER or _has_interface(value)


def is_itself(value: Any) -> bool:
    """Return whether an object is one of the user's, which only NumPy reads as an array."""
    return kind_of(value) is Kind.USERS


def lazy_array_of(value: Any, **options: Any) -> Any:
    """Return the result of ``__array__`` of an object of the user's class, which may be lazy; None if there is none."""
    method = getattr(type(value), "__array__", None)
    if not isinstance(method, FunctionType) or package_of(type(value)) in {"tensormagic", "pandas", "numpy", "scipy"}:
        return None
    return run_time.staged(getattr(method, "__wrapped__", method))(value, **options)


def read_by(function: Callable[..., Any], value: Any) -> Any:
    """Return an operand of a NumPy function; for a user's object that NumPy reads as an array, that array, which may be lazy."""
    kind = type(value)
    if kind in {list, tuple}:
        if not any(map(_may_be_read, set(map(type, value)))):  # a long list of numbers is not searched
            return value
        parts = [read_by(function, v) for v in value]
        return kind(parts) if any(map(operator.is_not, parts, value)) else value
    if not _may_be_read(kind):
        return value
    if any(hasattr(kind, name) for name in (function.__name__, "__array_function__", "__array_ufunc__")):
        return value  # NumPy calls these first
    found = lazy_array_of(value)
    return value if found is None else found


def _may_be_read(kind: type) -> bool:
    """Return whether objects of a class are read by a method of the user's, or may hold such objects."""
    return kind in {list, tuple} or isinstance(getattr(kind, "__array__", None), FunctionType)


def is_sequence(value: Any) -> bool:
    """Return whether NumPy reads the elements of an object that is not an array: it has a length and an index, and no keys."""
    cls = type(value)
    if issubclass(cls, str | bytes | bytearray | Mapping) or is_read(value) or package_of(cls) == "tensormagic":
        return False
    return hasattr(cls, "__len__") and hasattr(cls, "__getitem__")


def has_buffer(value: Any) -> bool:
    """Return whether an object exposes its memory as a buffer."""
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _has_interface(value: Any) -> bool:
    """Return whether an object itself, rather than its class, exposes an array interface."""
    try:
        struct = getattr(value, "__array_struct__", None)
        return type(struct).__name__ == "PyCapsule" or isinstance(getattr(value, "__array_interface__", None), dict)
    except Exception:  # noqa: BLE001 (a __getattr__ of the user's, which may give anything)
        return False


def _number(value: Any) -> Any:
    """Return a number of a subclass of Python's as a plain one; other values unchanged."""
    if type(value) in _PYTHONS or not isinstance(value, _PYTHONS) or isinstance(value, bool | np.generic):
        return value
    return next(own for kind, own in _OWN_NUMBERS.items() if isinstance(value, kind))(value)


_TAKEN = {Kind.PLAIN, Kind.OTHER, Kind.USERS}
_READ = {Kind.VIEW, Kind.READ}


def _read(value: Any, name: str) -> np.ndarray[Any, Any]:
    """Return the array that NumPy reads from an object: read-only, where a store into it would not reach the object."""
    given = lazy_array_of(value)
    array = np.asarray(value if given is None else given)
    if isinstance(value, np.ndarray):
        return array
    check_dtype(array.dtype, name or f"a {type(value).__name__}")
    return _read_only_view(array)


def _read_only_view(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only view of an array."""
    array = array.view()
    array.flags.writeable = False
    return array


# tables ---------------------------------------------------------------------------------------------------------------


class ObjectsError(DTypeError, told_as=DTypeError):
    """Raised for a table with a column of objects that are numbers."""

    pythons = False


def is_table(value: Any) -> bool:
    """Return whether a value is a Series or a DataFrame."""
    kind = type(value)
    return package_of(kind) == "pandas" and kind.__name__ in {"Series", "DataFrame"}


def numbers_of(value: Any, name: str) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a Series, or of a DataFrame of one dtype; None if there are gaps, or other values.

    Raises
    ------
    ObjectsError
        For numbers in a column of objects, with the column's name: in a cell pandas computes with them, elsewhere
        nothing does.
    """
    columns = [(name, value)] if type(value).__name__ == "Series" else [(f"{name}[{k!r}]", c) for k, c in value.items()]
    others = any(column.dtype != object for _, column in columns)  # columns of their own, for functions
    for place, column in () if others or context.in_cell() else columns:
        if column.dtype == object and _of_numbers(column):
            raise ObjectsError(
                f"column {place} is of objects, some of them numbers; %%tensor takes numbers",
                f"Convert it: {place} = pd.to_numeric({place}, errors='coerce'), and fill or drop the gaps.",
            )
    kinds = {column.dtype for _, column in columns}
    dtype = kinds.pop() if len(kinds) == 1 else None
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc":
        return None
    array = value.to_numpy()
    return None if dtype.kind in "fc" and np.isnan(array).any() else array


def _of_numbers(column: Any) -> bool:
    """Return whether a column of objects holds only numbers and gaps; with texts among them, as in a row of a table, it is pandas' own."""
    gaps = column.isna()
    return not gaps.all() and all(isinstance(v, int | float | complex | np.number) for v in column[~gaps])


def whole(value: Any, name: str) -> Any:
    """Return ``value``, which must not be a Series or DataFrame with gaps: pandas skips these, and NumPy does not.

    Raises
    ------
    RefusedError
        If it has gaps, or non-numbers.
    """
    if is_table(value) and numbers_of(value, name) is None:
        raise RefusedError(value, name)
    return value


def _labels(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of an index of pandas, which computes with them as NumPy does; None for any other value."""
    if package_of(type(value)) != "pandas" or not type(value).__name__.endswith("Index"):
        return None
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return None
    array = value.to_numpy()
    return None if dtype.kind == "f" and np.isnan(array).any() else array


# refusals -------------------------------------------------------------------------------------------------------------


class RefusedError(ForeignError):
    """A value with which captured code would not compute as NumPy or pandas does.

    Parameters
    ----------
    value
        The refused value.
    name
        How the user reaches it: the name of a variable, or a description.
    """

    pythons = True

    def __init__(self, value: Any, name: str = "") -> None:
        self.value = value
        self.name = name
        own = name or "it"
        kind = type(value)
        what, hint = _reason(value, own)
        article = "an" if kind.__name__[:1] in "aeioAEIO" else "a"
        told = what if is_table(value) else f"is {article} {kind.__name__}, {what}"
        super().__init__(f"{name or 'a value'} {told}", hint)


def _reason(value: Any, name: str) -> tuple[str, str]:
    lost = "with operators and methods of its own, which captured code would lose"
    module = package_of(type(value))
    if isinstance(value, np.ma.MaskedArray):
        return (
            "which is not supported: captured code would use the masked values, too",
            f"Fill the masked values, {name}.filled(value), or use the data without the mask: np.asarray({name}).",
        )
    if isinstance(value, np.matrix):
        return (
            "which is not supported: captured code multiplies element by element",
            f"Take the array: np.asarray({name}).",
        )
    if is_table(value):
        return (
            "has gaps, or columns that are not numbers or differ in kind",
            f"Drop or fill the gaps, or give an array: {name}.to_numpy(float).",
        )
    if type(value).__name__ == "Categorical":
        return "whose categories are not numbers for NumPy", f"Take the codes: np.asarray({name}.codes)."
    if module in {"pandas", "xarray"}:
        return lost, f"Take its numbers: {name}.to_numpy()."
    if isinstance(value, int | float | complex | np.generic):
        plain = next((k.__name__ for k in _PYTHONS if isinstance(value, k)), "float")
        return lost, f"Take the number: {plain}({name})."
    return lost, f"Take its numbers: np.asarray({name})."


def name_of(value: Any, args: Sequence[Any], options: Mapping[str, Any], parameters: Sequence[str]) -> str:
    """Return how a function's caller reaches a value among the arguments: ``x``, ``state['w']``, ``o.rate``."""
    named = [(parameters[k] if k < len(parameters) else f"argument {k + 1}", v) for k, v in enumerate(args)]
    for name, given in [*named, *options.items()]:
        path = _path(given, value)
        if path is not None:
            return name + path
    return ""


def _path(tree: Any, value: Any) -> str | None:
    if tree is value:
        return ""
    parts: list[tuple[str, Any]] = []
    if isinstance(tree, dict):
        parts = [(f"[{key_text(k)}]", v) for k, v in tree.items()]
    elif isinstance(tree, list | tuple):
        fields = getattr(tree, "_fields", None)
        parts = [(f".{fields[k]}" if fields else f"[{k}]", v) for k, v in enumerate(tree)]
    elif hasattr(type(tree), "__dataclass_fields__"):
        parts = [(f".{k}", getattr(tree, k)) for k in type(tree).__dataclass_fields__]
    found = ((step, _path(part, value)) for step, part in parts)
    return next((step + rest for step, rest in found if rest is not None), None)


# dtypes ---------------------------------------------------------------------------------------------------------------

_ADVICE = {
    "O": (
        "an object array",
        "Convert it: np.asarray(list, dtype=float). The cause is often a table column with gaps or text.",
    ),
    "U": ("an array of strings", "Encode the strings as numbers first (np.unique(..., return_inverse=True))."),
    "S": ("an array of bytes", "Decode and encode it as numbers first."),
    "M": ("an array of dates", "Subtract a start and divide by np.timedelta64(1, 's') first."),
    "m": ("an array of time differences", "Divide it by np.timedelta64(1, 's') first."),
    "V": ("a structured array", "Read its fields outside of captured code: a = x['name']."),
}


class OtherBitsError(ForeignError, told_as=ForeignError):
    """Raised for numbers of another size or byte order than a graph holds: calls with them are Python's."""

    pythons = True


def check_dtype(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a dtype that is not numeric, naming the value."""
    if is_stored(dtype):
        SEEN.add(dtype)
        return
    if dtype.type.__module__ != "numpy":
        whose = dtype.type.__module__.partition(".")[0]
        text = f"{name} has dtype {dtype} of {whose}; captured code computes with NumPy's own dtypes, and bfloat16"
        raise ForeignError(text, "Convert it by .astype(np.float32).")
    if dtype.kind in _ADVICE:
        what, hint = _ADVICE[dtype.kind]
        raise ForeignError(f"{name} is {what} ({dtype}); %%tensor takes numbers", hint)
    if not _is_held(dtype):
        raise OtherBitsError(f"{name} has dtype {dtype}, which is not supported", f"Convert it: {name}.astype(float).")
    if not dtype.isnative:
        raise OtherBitsError(
            f"{name} has byte-swapped dtype {dtype}", f"Convert it: {name}.astype({name}.dtype.newbyteorder('='))."
        )


def _is_held(dtype: np.dtype[Any]) -> bool:
    """Return whether graphs hold numbers of a dtype, byte order aside."""
    numpys = dtype.kind in "biufc" and dtype.type.__module__ == "numpy"
    return is_stored(dtype) or (numpys and dtype.itemsize <= (16 if dtype.kind == "c" else 8))


def stays_numpys(value: Any) -> bool:
    """Return whether a value is an array, or a NumPy number, that no graph holds: in a cell NumPy computes with it.

    Arrays of texts, dates, objects and structures, numbers of other sizes and byte orders, and all subclasses, which
    at least have attributes of their own.
    """
    if isinstance(value, np.ndarray):
        return type(value) not in _GRAPHS or not (_is_held(value.dtype) and value.dtype.isnative)
    return isinstance(value, np.generic) and not _is_held(value.dtype)


_GRAPHS = {np.ndarray, np.memmap}
