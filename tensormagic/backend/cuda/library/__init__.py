"""Calls of the device's library, by the op that each computes."""
