"""Calls of every public function of JAX's namespaces, found by introspection, against the CPU."""
