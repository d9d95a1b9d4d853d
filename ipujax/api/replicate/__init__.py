"""Replication over IPUs: `ipu.pmap`, collectives, weights partitioned over replicas."""
