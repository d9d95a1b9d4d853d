"""Functions of popops, poplin and poprand as JAX functions: each is one file."""
