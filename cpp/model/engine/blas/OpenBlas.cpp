#include "engine/blas/OpenBlas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine::blas {
namespace {

// CBLAS's constants for row-major order and for transposition; 32-bit integers in this build.
constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;
constexpr int kTranspose = 112;

using SgemmFn = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
using SetThreadsFn = void (*)(int);

/// Sets OPENBLAS_CORETYPE while our copy of the library loads. A value that a user set for NumPy's
/// copy must not slow ours: IPUJAX_MAX_ISA governs all of our kernels, including these.
class CoreType {
 public:
  explicit CoreType(const char* value) {
    if (const char* old = std::getenv(kVariable)) old_ = old;
    set(value);
  }
  ~CoreType() { set(old_ ? old_->c_str() : nullptr); }
  CoreType(const CoreType&) = delete;
  CoreType& operator=(const CoreType&) = delete;

 private:
  static constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  static void set(const char* value) { value ? setenv(kVariable, value, 1) : unsetenv(kVariable); }
  std::optional<std::string> old_;
};

/// Null, for OpenBLAS's own choice, where the ISA is not limited.
const char* coreTypeOf(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return nullptr;
    case Isa::kAvx2:
      return "Haswell";
    case Isa::kBaseline:
      break;
  }
#if defined(__x86_64__)
  return "Nehalem";
#else
  return nullptr;
#endif
}

void* open() {
  const CoreType core_type(coreTypeOf(isa()));
  void* library = dlopen(IPUJAX_OPENBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    throw std::runtime_error("[OpenBLAS] needs the PyPI package scipy-openblas32; got: " +
                             std::string(reason ? reason : "no library") +
                             ". Install it with pip install scipy-openblas32.");
  }
  return library;
}

template <class Fn>
Fn symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (!address) throw std::runtime_error(std::string("[OpenBLAS] has no ") + name);
  return reinterpret_cast<Fn>(address);
}

void* library() {
  static void* const handle = open();
  return handle;
}

SgemmFn load() {
  // Our own thread pool distributes the work; no other code uses this copy of the library.
  symbol<SetThreadsFn>(library(), "scipy_openblas_set_num_threads")(1);
  return symbol<SgemmFn>(library(), "scipy_cblas_sgemm");
}

SgemmFn function() {
  static const SgemmFn fn = load();
  return fn;
}

}  // namespace

void loadOpenBlas() { function(); }

void* openBlasSymbol(const char* name) {
  function();  // so that the library runs on one thread
  return symbol<void*>(library(), name);
}

void sgemm(const Sgemm& s) {
  function()(kRowMajor, s.a_transposed ? kTranspose : kNoTranspose,
             s.b_transposed ? kTranspose : kNoTranspose, static_cast<int>(s.m),
             static_cast<int>(s.n), static_cast<int>(s.k), s.alpha, s.a, static_cast<int>(s.lda),
             s.b, static_cast<int>(s.ldb), s.accumulate ? 1.0f : 0.0f, s.c,
             static_cast<int>(s.ldc));
}

}  // namespace ipujax::engine::blas
