"""Random compositions of transforms of ipujax and of JAX, against the plain functions."""
