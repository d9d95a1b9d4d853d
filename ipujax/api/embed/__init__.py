"""Tables in the host's memory that compiled steps look up and update: `ipu.HostEmbedding`."""
