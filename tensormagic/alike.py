"""Suggestions for a misspelt word, from a list of words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LESS = 0.15  # of the ratio of difflib: a word that is so much less like another than the best one is not meant


def alike(word: str, words: Iterable[str], most: int = 3, least: float = 0.6) -> list[str]:
    """Words that resemble ``word``, the most similar first; words much less similar than the best match are left out.

    If any has exactly the letters of ``word`` in another order, only such words are returned.

    >>> alike("wieght", ["weight", "height", "exit"]), alike("wght", ["weight", "exit", "what"])
    (['weight'], ['weight', 'what'])
    """
    found = difflib.get_close_matches(word, list(words), most, least)
    found = [near for near in found if sorted(near) == sorted(word)] or found
    shares = [difflib.SequenceMatcher(None, near, word).ratio() for near in found]
    return [near for near, share in zip(found, shares, strict=True) if share > shares[0] - _LESS]
