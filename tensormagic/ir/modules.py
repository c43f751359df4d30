"""Where classes come from."""

from __future__ import annotations

from typing import Any


def module_of(kind: type) -> str:
    """The name of a class's module; empty where there is none: Cython's classes of functions have a descriptor in its place."""
    found: Any = kind.__module__
    return found if isinstance(found, str) else ""


def package_of(kind: type) -> str:
    """The first part of that name."""
    return module_of(kind).partition(".")[0]
