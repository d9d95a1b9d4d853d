"""Models that the benchmark times, written plainly in JAX: functions over trees of arrays."""
