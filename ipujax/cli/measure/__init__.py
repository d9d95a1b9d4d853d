"""What `python -m ipujax bench` measures: programs, timing, host memory, cycle counts."""
