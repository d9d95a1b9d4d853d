"""Options in force, the devices that a process has, and its seed."""
