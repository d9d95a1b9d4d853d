"""Random programs as people write them: Python source with `jnp` and `lax` calls, made from a seed.

Every op that makes broadcasts, views, constants and scalars feeds every consumer, inside and
outside of control flow and transforms. A program prints as source that a person can paste.
"""
