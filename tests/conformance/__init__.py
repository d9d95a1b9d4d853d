"""Runs JAX's test harnesses and optax's tests on "ipu" and on JAX's CPU backend."""
