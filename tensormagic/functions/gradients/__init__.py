"""Derivatives of functions: grad, vjp, jvp, Jacobians, and checks of them."""
