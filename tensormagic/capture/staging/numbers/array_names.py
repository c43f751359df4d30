"""The names of attributes that arrays have and Python's numbers do not."""

from __future__ import annotations

import numpy as np

EVERY = {n for n in dir(np.ndarray) if not n.startswith("_")}.difference(*map(dir, (complex, int)))
"""The names of attributes of arrays that Python's numbers have not."""
NAMES = EVERY.difference(*map(dir, (list, dict, str)))
"""Those that its containers have not either."""
