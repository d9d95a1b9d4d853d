"""Random pipelines, as people write them, against the plain functions that they stand for."""
