"""Replication over IPUs: `ipu.pmap`, collectives, weights that lie partitioned over replicas."""
