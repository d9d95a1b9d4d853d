"""`python -m tests.mutants.files --count 20000`: altered files of each kind, with right checksums.

Each must be read, or refused with an error of ipujax (or OSError) whose text a terminal can show:
no signal, no other exception, no wait, and no more than 4 GiB. The last line has the counts; the
exit status is 1 if anything else happened. `--show KIND SEED` writes one file for a closer look.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Seconds that one file may take.
_LONGEST = 60
_MOST_BYTES = 4 << 30
#: Failures of one kind that are printed.
_SHOWN = 5


def altered(kind: str, original: bytes, seed: int) -> bytes:
    """The file of a seed: its JSON or its bytes altered, then sealed again if it can be."""
    from tests.mutants import alterations
    from tests.mutants.data_files import KINDS

    rng = random.Random(f"{kind} {seed}")
    tree, body = KINDS[kind].parts(original)
    if tree is None or rng.random() < 0.2:
        return alterations.content(original, rng)
    if body and rng.random() < 0.2:
        return KINDS[kind].seal(tree, alterations.content(body, rng))
    return KINDS[kind].seal(alterations.json_value(tree, rng), body)


def check(kind: str, path: Path) -> str:
    """What is wrong with reading a file; "refused" or "" where nothing is."""
    from ipujax.errors import IpuError, printable
    from tests.mutants.data_files import KINDS

    try:
        KINDS[kind].read(path)
    except (IpuError, OSError) as error:
        text = str(error)
        return (
            "refused" if printable(text) == text else f"its error has control characters: {text!r}"
        )
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = next((f for f in reversed(frames) if "ipujax" in Path(f.filename).parts), frames[-1])
        return f"{type(error).__name__}: {str(error)[:200]!r} at {own.filename}:{own.lineno}"
    return ""


def child(kind: str, first: int, count: int) -> None:
    """Reads files in this process; prints the seed before each, and what is wrong after it."""
    from tests.mutants.data_files import KINDS

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, KINDS[kind].name)
        KINDS[kind].write(path)
        original = path.read_bytes()
        wrong = check(kind, path)
        assert not wrong, f"{kind}: the file that is not altered: {wrong}"
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MOST_BYTES,) * 2)
        for seed in range(first, first + count):
            path.write_bytes(altered(kind, original, seed))
            os.write(1, f"{seed} ".encode())
            faulthandler.dump_traceback_later(_LONGEST, exit=True)
            wrong = check(kind, path)
            faulthandler.cancel_dump_traceback_later()
            os.write(1, f"{wrong}\n".encode())


def run(kind: str, first: int, count: int) -> dict[str, int]:
    """Counts of files that were read, refused, or neither, which are printed."""
    counts = {"read": 0, "refused": 0, "wrong": 0}
    end = first + count
    while first < end:
        command = [
            sys.executable,
            "-m",
            "tests.mutants.files",
            "--child",
            kind,
            str(first),
            str(end - first),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = done.stdout.split("\n")
        for line in lines[:-1]:
            seed, _, wrong = line.partition(" ")
            counts[{"": "read", "refused": "refused"}.get(wrong, "wrong")] += 1
            if wrong not in ("", "refused") and counts["wrong"] <= _SHOWN:
                print(f"{kind} {seed}: {wrong}", flush=True)
        first += len(lines) - 1
        if done.returncode and first < end:
            counts["wrong"] += 1
            print(f"{kind} {first}: exit code {done.returncode}: {done.stderr[-2000:]}", flush=True)
            first = first + 1 if lines[-1] else end
    return counts


def main() -> int:
    from tests.mutants.data_files import KINDS

    parser = argparse.ArgumentParser(prog="python -m tests.mutants.files", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--first", type=int, default=0, help="seed of the first file")
    parser.add_argument("--count", type=int, default=20000, help="files of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", nargs=2, metavar=("KIND", "SEED"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], int(given.child[1]), int(given.child[2]))
        return 0
    if given.show:
        return _show(given.show[0], int(given.show[1]))
    total = {"read": 0, "refused": 0, "wrong": 0}
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = pool.map(lambda kind: (kind, run(kind, given.first, given.count)), given.kinds)
        for kind, counts in runs:
            print(kind, counts, flush=True)
            total = {name: total[name] + number for name, number in counts.items()}
    print(", ".join(f"{name} {number}" for name, number in total.items()))
    return 1 if total["wrong"] else 0


def _show(kind: str, seed: int) -> int:
    from tests.mutants.data_files import KINDS

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, KINDS[kind].name)
        KINDS[kind].write(path)
        content = altered(kind, path.read_bytes(), seed)
        Path(KINDS[kind].name).write_bytes(content)
        path.write_bytes(content)
        print(check(kind, path) or "read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
