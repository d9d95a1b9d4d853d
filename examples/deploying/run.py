"""Precompile in Python, run in C: saves a trained classifier, and runs it without Python.

Needs the C library, which wheels have and `make runtime` makes, or the folder where you installed
it.

Run: python examples/deploying/run.py [folder]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import save

import ipujax as ipu

SOURCE = Path(__file__).with_name("classify.c")


def main(installed):
    with tempfile.TemporaryDirectory() as folder:
        accuracy = save.main(Path(folder))
        program = Path(folder, "classify")
        build = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", SOURCE, "-o", program]
        build += [f"-I{installed}/include", f"-L{installed}/lib", "-lipujax_runtime"]
        subprocess.run([*build, f"-Wl,-rpath,{installed}/lib"], check=True)
        ran = subprocess.run([program, folder], check=True, stdout=subprocess.PIPE, text=True)
    print(ran.stdout, end="")
    in_c = float(ran.stdout.rsplit(":", 1)[1])
    if abs(in_c - accuracy) > 1e-3 or in_c < 0.95:
        raise SystemExit(f"needs the accuracy of JAX, {accuracy:.3f}; got {in_c:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ipu.runtime.folder())
