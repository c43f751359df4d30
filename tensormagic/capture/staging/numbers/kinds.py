"""Questions about the class of a value: a stand-in answers with the class that its value has in NumPy or Python."""

from __future__ import annotations

from types import UnionType
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse, refuse_python
from tensormagic.capture.inputs.items import Lifting
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.library import sharing
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import optional
from tensormagic.capture.numbers.alternatives import LazyText, OneOf
from tensormagic.capture.numbers.by_class import asked_classes
from tensormagic.capture.numbers.optional import Perhaps
from tensormagic.capture.python import usercode
from tensormagic.capture.random import module as random_module
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.numbers.array_attributes import of_array
from tensormagic.capture.staging.numbers.array_names import EVERY
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import TensorError
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form


def is_instance(value: Any, kinds: Any) -> Any:
    """Return what ``isinstance`` gives: a lazy array counts as NumPy's, a list of data-dependent length as a list."""
    if isinstance(value, OneOf):
        return value.mapped(lambda v: is_instance(v, kinds))
    if isinstance(value, LazyText):
        return is_instance("", kinds)
    if isinstance(value, Perhaps):
        return optional.as_of(value, lambda v: is_instance(v, kinds))
    if isinstance(value, Tensor):
        if (classes := asked_classes(value.node)) is not None:
            of = [t for t in classes.types if isinstance(_one_of(t), kinds)]
            known = len(of) in {0, len(classes.types)}
            return bool(of) if known else wrap(to_form(number_classes.is_of(classes, of), "python"))
        if value.has_labels:
            return issubclass(value.array_class, kinds) or _is_ours(kinds)
        return isinstance(_one_of(value.type), kinds) or _is_ours(kinds)
    if isinstance(value, StandIn):
        several = kinds if isinstance(kinds, tuple) else (kinds,)
        return issubclass(value.own_class, tuple(map(random_module.class_of, several)))
    return isinstance([] if isinstance(value, GrownList) else value, kinds)


def _one_of(kind: Type) -> Any:
    """Return a sample array, NumPy scalar or Python number of a lazy value's class, whose attributes can be examined."""
    return np.empty((0,) * kind.ndim) if kind.form == "array" else stands_for(kind)(0)


def _is_ours(kinds: Any) -> bool:
    """Return whether code asks for lazy values themselves."""
    if isinstance(kinds, tuple | UnionType):
        return any(map(_is_ours, kinds if isinstance(kinds, tuple) else kinds.__args__))
    return isinstance(kinds, type) and issubclass(Tensor, kinds) and kinds.__module__.startswith("tensormagic.")


def stands_for(kind: Type) -> type:
    """Return the class of the array, NumPy scalar or Python number that a lazy value stands for."""
    if kind.form == "array":
        return np.ndarray
    return kind.dtype.type if kind.form == "scalar" else type(kind.dtype.type(0).item())


def type_of(*args: Any, **options: Any) -> Any:
    """Return what ``type`` gives: for a lazy value, the class of NumPy's value."""
    if len(args) == 3 and isinstance(args[2], dict) and (frame := usercode.user_frame()) is not None:
        args = (
            *args[:2],
            {"__module__": frame.f_globals["__name__"], **args[2]},
        )  # the name that Python reads from its caller's frame
    if len(args) != 1:
        return type(*args, **options)
    if isinstance(args[0], OneOf) or (isinstance(args[0], Perhaps) and args[0].now is args[0]):
        refuse("the type of a value that depends on data", "Ask `is None`, or isinstance(...), instead.")
    if isinstance(args[0], Tensor):
        classes = asked_classes(args[0].node)
        if classes is not None and len({*map(stands_for, classes.types)}) > 1:
            refuse("the type of a number that depends on data", "Ask isinstance(...), or convert it: float(x), int(x).")
        return args[0].array_class if args[0].has_labels else stands_for(args[0].type)
    if isinstance(args[0], TensorError) and args[0].numpys:
        return args[0].numpys_class
    if isinstance(args[0], GrownList | Lifting):
        return tuple if isinstance(args[0], tuple) else list
    return args[0].own_class if isinstance(args[0], StandIn) else type(args[0])


def class_of(value: Any) -> Any:
    """Return ``value.__class__``: for a stand-in, the class of what it stands for."""
    stands = isinstance(value, Tensor | TensorError | GrownList | Lifting | StandIn)
    return type_of(value) if stands else value.__class__


def interface_of(value: Any) -> Any:
    """Return ``value.__array_interface__``."""
    return (
        sharing.interface(value)
        if isinstance(value, Tensor) and value.type.form == "array"
        else value.__array_interface__
    )


def has_attribute(value: Any, name: str) -> Any:
    """Return what ``hasattr`` gives: a lazy number has what numbers have; as a lazy bool where the class is data-dependent."""
    if isinstance(value, Perhaps):
        return optional.as_of(value, lambda v: has_attribute(v, name))
    if not isinstance(value, Tensor):
        return hasattr(value, name)
    if value.has_labels:
        columns: Any = getattr(value, "columns", ()) if value.ndim > 1 else ()
        return hasattr(value.array_class, name) or name in columns
    classes = asked_classes(value.node)
    types = [value.type] if classes is None else [*classes.types]
    having = [t for t in types if any(name in vars(kind) for kind in stands_for(t).__mro__)]
    if classes is None or len(having) in {0, len(types)}:
        return bool(having)
    return wrap(to_form(number_classes.is_of(classes, having), "python"))


def attribute(value: Any, name: str, *default: Any) -> Any:
    """Return what ``getattr`` gives: a lazy number has only attributes of numbers; unsupported ones are refused, even with a default."""
    if name == "__class__":
        return class_of(value)
    if default and isinstance(value, Tensor):
        found = has_attribute(value, name)
        if not isinstance(found, bool):
            refuse_python(f"getattr of {name!r}, which depends on data whether there is one,", "Ask isinstance first.")
        return of_array(value, name) if found and name in EVERY else getattr(value, name) if found else default[0]
    if name in EVERY and not default:
        return of_array(value, name)
    return getattr(value, name, *default)
