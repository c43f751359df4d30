"""A package that is absent where tests run: it builds 38 grammars where nbformat is imported, seconds in each process.

It checks addresses with letters beyond ASCII in JSON, which no notebook has. jsonschema, which imports it, does without it.
"""

raise ImportError(__doc__)
