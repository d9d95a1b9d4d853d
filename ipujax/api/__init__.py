"""What users call beside JAX itself; re-exported by the package."""
