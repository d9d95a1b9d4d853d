#!/bin/sh
# Prints what this machine lacks to build ipujax, and the command that installs it. Prints nothing
# if nothing is missing.
# Usage: .ci/check_toolchain.sh [python] [c++ compiler]
python=${1:-python3}
compiler=${2:-c++}
missing=
packages=

lack() {
  missing="$missing
  - $1"
  packages="$packages $2"
}

if ! command -v "$python" >/dev/null 2>&1; then
  lack "Python 3.11 to 3.13 (looked for: $python)" "python3 python3-venv python3-dev"
elif ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; then
  lack "Python 3.11 to 3.13; $python is $("$python" -V). Set PYTHON=<a newer one>" \
    "python3 python3-venv python3-dev"
else
  "$python" -c 'import venv, ensurepip' 2>/dev/null || lack "the venv module of $python" python3-venv
  "$python" -c 'import sys, sysconfig, os
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    lack "the headers of $python" python3-dev
fi

command -v make >/dev/null 2>&1 || lack "make" make
program='#include <concepts>
#include <span>
int main() { int a[2] = {0, 0}; return std::span<int>(a).front(); }'
if ! command -v "$compiler" >/dev/null 2>&1; then
  lack "a C++ compiler (looked for: $compiler)" g++
else
  object=$(mktemp)
  printf '%s\n' "$program" | "$compiler" -std=c++20 -x c++ -c - -o "$object" 2>/dev/null ||
    lack "a C++20 compiler; $compiler is not one. Set CXX=<a newer one> (g++ 12 or clang 14)" g++
  rm -f "$object"
fi

[ -z "$missing" ] && exit 0
echo "This machine lacks:$missing" >&2
echo "On Debian or Ubuntu:" >&2
echo "  sudo apt-get install -y$packages" >&2
exit 1
