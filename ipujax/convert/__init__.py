"""Changes programs that `jax.export` serialised: precision, placement, pipelines, single ops."""
