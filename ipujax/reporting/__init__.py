"""The reports of `ipu.report`: where a program's time and memory go, and ways to view them."""
