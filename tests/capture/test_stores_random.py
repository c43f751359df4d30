"""Random programs of stores and views on arrays of one to three axes, some of which share memory: each as NumPy runs it, or refused."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.store_programs import compare, grow

ended: Counter[str] = Counter()


@settings(max_examples=300)
@given(st.integers(0, 2**40))
def test_a_random_program(seed: int):
    ended[compare(seed, grow(seed))] += 1


def test_most_programs_are_captured():
    for seed in range(60):
        ended[compare(seed, grow(seed))] += 1
    assert ended["same"] > 0.8 * ended.total()
