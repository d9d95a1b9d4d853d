"""Passes of stage 3: each takes a program and leaves a simpler one of the same meaning."""
