"""Cells as students write them in courses: loops over numbers, lists, dictionaries and objects. Each leaves its result in ``h``."""

from tests.notebook.student_algorithms import ALGORITHMS
from tests.notebook.student_chance import CHANCE
from tests.notebook.student_learning import LEARNING
from tests.notebook.student_methods import METHODS

START = """
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=3000)
X2 = rng.normal(size=(300, 2))
y2 = X2 @ [1.0, -2.0] + 0.1 * rng.normal(size=300)
"""

CELLS = ALGORITHMS | CHANCE | LEARNING | METHODS
