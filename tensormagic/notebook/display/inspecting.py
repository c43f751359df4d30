"""The text that Shift-Tab and ``?`` show of a lazy value: type, place, formula and gradient. Nothing is computed for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MethodType
from typing import Any

import numpy as np

from tensormagic.capture.values.summary import is_computed, is_on_device, type_text
from tensormagic.capture.values.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.errors import TensorError
from tensormagic.ir.node import topological
from tensormagic.notebook.display.value_texts import actual_type, value_text
from tensormagic.notebook.formulas.equations import Formula, formula_of, inputs_of
from tensormagic.notebook.options import help_here

MOST_NODES = 5_000  # of a graph that is read for a formula
MOST_GRADIENTS = 3
_MARKDOWN = "text/markdown"


class Inspecting:
    """The hooks in IPython's inspector: text in its fields, with formulas typeset where the page can."""

    def __init__(self, shell: Any, magics: Any) -> None:
        self.shell = shell
        self.magics = magics
        self._inspector: Any = None

    def attend(self) -> None:
        """Hook into IPython's inspector, which some versions recreate when colours change."""
        inspector = self.shell.inspector
        if inspector is self._inspector:
            return
        self.leave()
        self._inspector = inspector
        inspector.info = self.info
        inspector.mime_hooks = {**inspector.mime_hooks, _MARKDOWN: self.markdown}

    def leave(self) -> None:
        """Take everything back."""
        inspector, self._inspector = self._inspector, None
        if inspector is not None:
            del inspector.info
            inspector.mime_hooks = {k: hook for k, hook in inspector.mime_hooks.items() if hook != self.markdown}

    def info(self, obj: Any, oname: str = "", info: Any = None, detail_level: int = 0) -> Any:
        """Return IPython's fields for an object; those of a lazy value are made here, as IPython's would compute it."""
        standing_for = _Lazy() if isinstance(obj, Tensor) else _numpys(obj)
        fields = type(self._inspector).info(self._inspector, standing_for, oname, info, detail_level)
        if isinstance(obj, MethodType) and obj == self.magics.tensor:
            fields["docstring"] = help_here(fields["docstring"])
        if isinstance(obj, Tensor):
            formula = self.formula(obj, oname)
            told = [*self.words(obj), *([f"\n{formula}"] if formula is not None else [])]
            fields |= {
                "type_name": "Tensor",
                "base_class": str(Tensor),
                "string_form": None,
                "source": None,
                "file": None,
            }
            fields |= {"docstring": "\n".join(told), "class_docstring": Tensor.__doc__ if detail_level else None}
        return fields

    def markdown(self, data: Any) -> str | None:
        """Return the same as Markdown with typeset formulas, or None for other objects."""
        value = data.obj
        if not isinstance(value, Tensor):
            return None
        name = data.info_dict["name"]
        formula = self.formula(value, name)
        title, *rest = self.words(value)
        lines = [f"**{_escaped(name)}** · {_escaped(title)}", *map(_escaped, rest)]
        lines += [f"$\\displaystyle {formula.latex}$"] if formula is not None else []
        return "\n\n".join(lines)

    def words(self, value: Tensor) -> list[str]:
        """Return the type, the origin, the value if it is computed, and what has changed since."""
        places = [s for s in site.of(value.node) if s.role == "value"]
        place = str(max(places, key=lambda s: s.run)) if places else ""
        if is_on_device(value):
            title, shown = type_text(value.type), ["on the device"]
        elif is_computed(value):
            found = value.numpy()
            title, shown = actual_type(found), [value_text(found)]
        else:
            title, shown = type_text(value.type), ["not computed yet"]
        note = self.magics.origins.note(value.node, "", self.shell.user_ns)
        return [
            " · ".join(filter(None, ["lazy " + title, f"from {place}" if place else ""])),
            *shown,
            *filter(None, [note]),
        ]

    def formula(self, value: Tensor, name: str) -> Formula | None:
        """Return the formula, with those of the gradients that the notebook has, else with respect to the inputs."""
        if len(topological([value.node])) > MOST_NODES:
            return None
        space = self.shell.user_ns
        try:
            return formula_of(value, name, space, default_wrt(value, space))
        except TensorError:
            return None


def default_wrt(value: Tensor, space: Mapping[str, Any]) -> list[str]:
    """Return the names with respect to which gradients are written: those with gradients in the notebook, else the first inputs."""
    known = inputs_of(value)
    asked = [n for n in known if isinstance(space.get(f"grad_{n}"), Tensor)] or known
    return asked[:MOST_GRADIENTS]


class _Lazy:
    """Stands for a lazy value where IPython asks for its text."""


def _numpys(found: Any) -> Any:
    """Return NumPy's method for a lazy value's method, for its signature and docstring."""
    if not isinstance(found, MethodType) or not isinstance(value := found.__self__, Tensor):
        return found
    kind: Any = value.type.dtype
    like = np.empty((0,), kind) if value.type.form == "array" else kind.type()
    if value.type.form == "python":
        like = like.item()
    return getattr(like, found.__name__, found)


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|$~&])", r"\\\1", text)
