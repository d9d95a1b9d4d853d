"""The benchmark behind `python -m ipujax bench`: programs, timing, host memory, cycle counts."""
