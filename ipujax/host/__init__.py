"""What the process on the host does for programs: files, logs, locks of IPUs, and calls back."""
