"""Runs the test suites that other people wrote for JAX, on "ipu" and on JAX's CPU backend."""
