"""Numba's typing context with a memory: the compilers for the processor and for GPUs ask the same calls again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RememberingContext:
    """A typing context that remembers the signatures of calls: it would go through all definitions each time.

    Parameters
    ----------
    context
        Numba's own.
    changes
        Which functions are asked each time: their signatures are not the same for good.
    """

    def __init__(self, context: Any, changes: Callable[[Any], bool] = lambda _function: False) -> None:
        self._context = context
        self._changes = changes
        self._known: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """Return the signature of a call."""
        if keywords or self._changes(function):
            return self._context.resolve_function_type(function, arguments, keywords)
        found = self._known.get((function, arguments))
        if found is None:
            found = self._known[function, arguments] = self._context.resolve_function_type(
                function, arguments, keywords
            )
        return found
