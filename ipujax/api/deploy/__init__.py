"""Programs that are compiled in one process and run in others, and devices that failed."""
