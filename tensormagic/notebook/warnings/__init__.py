"""Warnings about values that are stale, paired by mistake, or no longer lazy."""
