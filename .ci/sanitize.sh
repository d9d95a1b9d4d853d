#!/usr/bin/env bash
# Builds C++ tests (and, for address, the extension) with a sanitizer and runs them.
# Usage: .ci/sanitize.sh <sanitizers> <build folder> <python>
# With MUTANTS=<count> it runs this many altered executables instead.
set -euo pipefail
sanitizers=$1
build=$2
python=$3
bin=$(dirname "$python")
compiler=${CXX:-c++}
root=$PWD
extension=OFF
[ "${sanitizers%%,*}" = address ] && extension=ON

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
"$bin/cmake" -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_MAKE_PROGRAM="$root/$bin/ninja" \
  -DPython_EXECUTABLE="$root/$python" "${launcher[@]}" \
  -Dpybind11_DIR="$("$python" -m pybind11 --cmakedir)" \
  -DIPUJAX_SANITIZE="$sanitizers" -DIPUJAX_BUILD_TESTS=ON -DIPUJAX_BUILD_EXTENSION=$extension
# Under the thread sanitizer: code that owns threads, runs programs on them, or is called by them.
targets=()
only=()
if [ $extension = OFF ]; then
  mapfile -t targets < <(for test in cpp/model/tests/{engine,gcl,poplar,support}/test_*.cpp tests/cpp/{popx,runtime}/test_*.cpp; do
    name=${test%.cpp}
    folder=${name%/*}
    echo "tests/${folder##*/}_${name##*/}"
  done)
  only=(-k "engine/ or gcl/ or poplar/ or support/ or popx/ or runtime/")
fi
[ -n "${MUTANTS:-}" ] && targets=(tests/mutants)
"$bin/cmake" --build "$build" -j "${JOBS:-$(nproc)}" ${targets:+--target "${targets[@]}"}

# OpenBLAS's own threads are not instrumented.
export OPENBLAS_NUM_THREADS=1
# Python never frees some memory, tests raise these signals on purpose, and frames are larger.
export ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:handle_sigbus=0:handle_sigfpe=0
ulimit -s 65536
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:handle_sigbus=0
export IPUJAX_CPP_TESTS="$root/$build/tests"
# dlopen goes through the sanitizer's library, which does not know our rpath.
blas=$("$python" -c 'import scipy_openblas32 as b; print(b.get_lib_dir())')
export LD_LIBRARY_PATH="$blas"
if [ -n "${MUTANTS:-}" ]; then
  # Allocating too much memory must be an error, as it is without the sanitizer.
  export ASAN_OPTIONS="$ASAN_OPTIONS:allocator_may_return_null=1:max_allocation_size_mb=8192"
  exec "$python" -m tests.mutants --binary "$build/tests/mutants" --count "$MUTANTS" \
    --first "${FIRST:-0}" --failures "$build/mutants"
fi
"$python" -m pytest tests/test_cpp.py "${only[@]}"

if [ $extension = ON ]; then
  tree="$root/$build/tree"
  rm -rf "$tree" && mkdir -p "$tree"
  cp -r ipujax "$tree/ipujax"
  rm -f "$tree"/ipujax/_poplar/*.so
  "$bin/cmake" --install "$build" --prefix "$tree" >/dev/null
  # The tree must come before the source tree, which pytest and -m would put first, both here and
  # in the processes that tests start.
  export PYTHONSAFEPATH=1
  LD_PRELOAD="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so)" \
    PYTHONPATH="$tree" "$python" -m pytest -m tiny --import-mode=append --ignore=tests/test_cpp.py
fi
