"""What the host's process does for programs: files, logs, locks of IPUs, and callbacks."""
