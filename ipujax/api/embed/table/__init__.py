"""Tables in the host's memory that compiled steps look up and update: `ipujax.HostEmbedding`.

Nothing here uses JAX: `table` has the rows and their versions, `sgd` the optimizer, `ahead` reads
rows before they are needed, `files` saves and restores.
"""
