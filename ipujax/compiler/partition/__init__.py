"""Stage 2 of the compiler: the global program -> one program for each device."""

from ipujax.compiler.partition.stage import partition as partition
