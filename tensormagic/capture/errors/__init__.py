"""Errors and warnings of captured code: refusals, tracebacks, floating-point errors."""
