#include "engine/blas/Lapack.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/blas/OpenBlas.hpp"
#include "engine/blas/PerturbedTridiagonal.hpp"

namespace ipujax::engine::blas {
namespace {

/// Calls a Fortran routine of the library. All arguments are pointers; each character argument adds
/// its length at the end, as gfortran passes them.
template <class>
using Pointer = const void*;

template <class... Args>
int call(void* routine, const Args*... args) {
  constexpr std::size_t kCharacters = (std::size_t{0} + ... + std::is_same_v<Args, char>);
  int info = 0;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    using Fn = void (*)(Pointer<Args>..., int*, decltype(I)...);
    reinterpret_cast<Fn>(routine)(args..., &info, (static_cast<void>(I), std::size_t{1})...);
  }
  (std::make_index_sequence<kCharacters>{});
  return info;
}

/// Looks a routine up by LAPACK's name: a letter for T, then a stem, which may differ if complex.
template <class T>
void* routineOf(const char* real, const char* imaginary) {
  constexpr bool kDouble = sizeof(Real<T>) == sizeof(double);
  const char letter = kIsComplex<T> ? (kDouble ? 'z' : 'c') : (kDouble ? 'd' : 's');
  const std::string stem = kIsComplex<T> ? imaginary : real;
  return openBlasSymbol(("scipy_" + (letter + stem) + "_").c_str());
}

#define IPUJAX_ROUTINE(name, real, imaginary)                   \
  template <class T>                                            \
  void* name##Routine() {                                       \
    static void* const found = routineOf<T>(#real, #imaginary); \
    return found;                                               \
  }
IPUJAX_ROUTINE(potrf, potrf, potrf)
IPUJAX_ROUTINE(trsm, trsm, trsm)
IPUJAX_ROUTINE(getrf, getrf, getrf)
IPUJAX_ROUTINE(geqrf, geqrf, geqrf)
IPUJAX_ROUTINE(geqp3, geqp3, geqp3)
IPUJAX_ROUTINE(orgqr, orgqr, ungqr)
IPUJAX_ROUTINE(ormqr, ormqr, unmqr)
IPUJAX_ROUTINE(heevd, syevd, heevd)
IPUJAX_ROUTINE(hetrd, sytrd, hetrd)
IPUJAX_ROUTINE(geev, geev, geev)
IPUJAX_ROUTINE(gees, gees, gees)
IPUJAX_ROUTINE(gehrd, gehrd, gehrd)
IPUJAX_ROUTINE(gesdd, gesdd, gesdd)
IPUJAX_ROUTINE(gesvd, gesvd, gesvd)
IPUJAX_ROUTINE(gtsv, gtsv, gtsv)
IPUJAX_ROUTINE(lagtf, lagtf, lagtf)
IPUJAX_ROUTINE(lagts, lagts, lagts)
#undef IPUJAX_ROUTINE

/// The size that a routine returns for lwork = -1. A float holds sizes up to 2^24 exactly; larger
/// sizes may have been rounded down.
template <class T>
int sizeOf(T answer) {
  const Real<T> size = std::real(answer);
  return static_cast<int>(size < Real<T>(1 << 24) ? size : std::nextafter(size, 2 * size));
}

/// Runs `routine(work, lwork)` twice: first to query the size, then to compute.
template <class T, class F>
int withWork(const F& routine) {
  T answer{};
  const int query = -1;
  if (const int info = routine(&answer, &query)) return info;
  const int size = std::max(1, sizeOf(answer));
  Workspace workspace;
  return routine(workspace.get<T>(size), &size);
}

const int kOne = 1;

int atLeastOne(int n) { return std::max(1, n); }

template <class T>
bool allFinite(const T* a, std::int64_t count) {
  const auto* x = reinterpret_cast<const Real<T>*>(a);
  const std::int64_t n = count * static_cast<std::int64_t>(sizeof(T) / sizeof(Real<T>));
  Real<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * Real<T>(0);
  return sum == Real<T>(0);
}

/// The same for one triangle: the contents of the other one must not matter.
template <class T>
bool triangleFinite(char uplo, int n, const T* a) {
  for (std::int64_t c = 0; c < n; ++c) {
    const bool lower = uplo == 'L';
    if (!allFinite(a + c * n + (lower ? c : 0), lower ? n - c : c + 1)) return false;
  }
  return true;
}

constexpr int kNotFinite = -4;  // JAX's own status for a matrix with NaN or infinity

/// LAPACK stores a real matrix's conjugate pair of vectors x + iy and x - iy as real columns x, y.
template <class T>
void unpack(int n, const T* imaginary, const T* packed, Complex<T>* vectors) {
  for (int j = 0; j < n; ++j) {
    const T* x = packed + std::int64_t{j} * n;
    Complex<T>* v = vectors + std::int64_t{j} * n;
    if (imaginary[j] == T(0) || j + 1 == n) {
      std::copy(x, x + n, v);
      continue;
    }
    for (int i = 0; i < n; ++i) {
      v[i] = {x[i], x[n + i]};
      v[n + i] = {x[i], -x[n + i]};
    }
    ++j;
  }
}

template <class T>
int geevReal(int n, T* a, Complex<T>* w, Complex<T>* left, Complex<T>* right) {
  const char jobs[2] = {left ? 'V' : 'N', right ? 'V' : 'N'};
  const std::int64_t square = std::int64_t{n} * n;
  Workspace workspace;
  T* wr = workspace.get<T>(2 * n + 2 * square);
  T* wi = wr + n;
  T* vl = wi + n;
  T* vr = vl + square;
  const int info = withWork<T>([&](T* space, const int* lwork) {
    return call(geevRoutine<T>(), &jobs[0], &jobs[1], &n, a, &n, wr, wi, vl, &n, vr, &n, space,
                lwork);
  });
  for (int i = 0; i < n; ++i) w[i] = {wr[i], wi[i]};
  if (left) unpack(n, wi, vl, left);
  if (right) unpack(n, wi, vr, right);
  return info;
}

template <class T>
int geevComplex(int n, T* a, T* w, T* left, T* right) {
  const char jobs[2] = {left ? 'V' : 'N', right ? 'V' : 'N'};
  Workspace workspace;
  auto* rwork = workspace.get<Real<T>>(2 * n);
  return withWork<T>([&](T* space, const int* lwork) {
    return call(geevRoutine<T>(), &jobs[0], &jobs[1], &n, a, &n, w, left ? left : a, &n,
                right ? right : a, &n, space, lwork, rwork);
  });
}

}  // namespace

template <class T>
int potrf(char uplo, int n, T* a) {
  if (n == 0) return 0;
  return call(potrfRoutine<T>(), &uplo, &n, a, &n);
}

template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, T* b) {
  if (m == 0 || n == 0) return;
  const T one(1);
  const int lda = side == 'L' ? m : n;
  using P = const void*;
  using Fn =
      void (*)(P, P, P, P, P, P, P, P, P, P, P, std::size_t, std::size_t, std::size_t, std::size_t);
  reinterpret_cast<Fn>(trsmRoutine<T>())(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &m,
                                         1, 1, 1, 1);
}

template <class T>
int getrf(int m, int n, T* a, std::int32_t* pivots) {
  if (m == 0 || n == 0) return 0;
  return call(getrfRoutine<T>(), &m, &n, a, &m, pivots);
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  if (m == 0 || n == 0) return 0;
  return withWork<T>([&](T* space, const int* lwork) {
    return call(geqrfRoutine<T>(), &m, &n, a, &m, tau, space, lwork);
  });
}

template <class T>
int geqp3(int m, int n, T* a, std::int32_t* columns, T* tau) {
  if (m == 0 || n == 0) return 0;
  Workspace workspace;
  Real<T>* rwork = kIsComplex<T> ? workspace.get<Real<T>>(2 * n) : nullptr;
  return withWork<T>([&](T* space, const int* lwork) {
    if constexpr (kIsComplex<T>) {
      return call(geqp3Routine<T>(), &m, &n, a, &m, columns, tau, space, lwork, rwork);
    } else {
      return call(geqp3Routine<T>(), &m, &n, a, &m, columns, tau, space, lwork);
    }
  });
}

template <class T>
int orgqr(int m, int n, int k, T* a, T* tau) {
  if (m == 0 || n == 0) return 0;
  return withWork<T>([&](T* space, const int* lwork) {
    return call(orgqrRoutine<T>(), &m, &n, &k, a, &m, tau, space, lwork);
  });
}

template <class T>
int ormqr(char side, bool adjoint, int m, int n, int k, T* a, int a_rows, T* tau, T* c) {
  if (m == 0 || n == 0) return 0;
  const char trans = !adjoint ? 'N' : kIsComplex<T> ? 'C' : 'T';
  return withWork<T>([&](T* space, const int* lwork) {
    return call(ormqrRoutine<T>(), &side, &trans, &m, &n, &k, a, &a_rows, tau, c, &m, space, lwork);
  });
}

template <class T>
int heevd(char uplo, int n, T* a, Real<T>* w) {
  if (n == 0) return 0;
  if (!triangleFinite(uplo, n, a)) return kNotFinite;
  const char job = 'V';
  T answer{};
  Real<T> real_answer = 0;
  int integers = 0;
  const int query = -1;
  const auto run = [&](T* space, const int* lwork, [[maybe_unused]] Real<T>* rwork,
                       [[maybe_unused]] const int* lrwork, int* iwork, const int* liwork) {
    if constexpr (kIsComplex<T>) {
      return call(heevdRoutine<T>(), &job, &uplo, &n, a, &n, w, space, lwork, rwork, lrwork, iwork,
                  liwork);
    } else {
      return call(heevdRoutine<T>(), &job, &uplo, &n, a, &n, w, space, lwork, iwork, liwork);
    }
  };
  if (const int info = run(&answer, &query, &real_answer, &query, &integers, &query)) return info;
  const int lwork = sizeOf(answer);
  const int lrwork = atLeastOne(sizeOf(real_answer));
  Workspace workspace;
  return run(workspace.get<T>(lwork), &lwork, workspace.get<Real<T>>(lrwork), &lrwork,
             workspace.get<int>(integers), &integers);
}

template <class T>
int hetrd(char uplo, int n, T* a, Real<T>* d, Real<T>* e, T* tau) {
  if (n == 0) return 0;
  return withWork<T>([&](T* space, const int* lwork) {
    return call(hetrdRoutine<T>(), &uplo, &n, a, &n, d, e, tau, space, lwork);
  });
}

template <class T>
int geev(int n, T* a, Complex<T>* w, Complex<T>* left, Complex<T>* right) {
  if (n == 0) return 0;
  if (!allFinite(a, std::int64_t{n} * n)) return kNotFinite;
  if constexpr (kIsComplex<T>) {
    return geevComplex(n, a, w, left, right);
  } else {
    return geevReal(n, a, w, left, right);
  }
}

template <class T>
int gees(int n, T* a, T* vectors, Complex<T>* w) {
  if (n == 0) return 0;
  if (!allFinite(a, std::int64_t{n} * n)) return kNotFinite;
  const char job = vectors ? 'V' : 'N';
  const char sort = 'N';
  int sorted = 0;
  const int unused = 0;
  T* v = vectors ? vectors : a;
  Workspace workspace;
  auto* reals = workspace.get<Real<T>>(2 * n);
  const int info = withWork<T>([&](T* space, const int* lwork) {
    if constexpr (kIsComplex<T>) {
      return call(geesRoutine<T>(), &job, &sort, static_cast<const void*>(nullptr), &n, a, &n,
                  &sorted, w, v, &n, space, lwork, reals, &unused);
    } else {
      return call(geesRoutine<T>(), &job, &sort, static_cast<const void*>(nullptr), &n, a, &n,
                  &sorted, reals, reals + n, v, &n, space, lwork, &unused);
    }
  });
  if constexpr (!kIsComplex<T>) {
    for (int i = 0; i < n; ++i) w[i] = {reals[i], reals[n + i]};
  }
  return info;
}

template <class T>
int gehrd(int n, T* a, T* tau) {
  if (n == 0) return 0;
  return withWork<T>([&](T* space, const int* lwork) {
    return call(gehrdRoutine<T>(), &n, &kOne, &n, a, &n, tau, space, lwork);
  });
}

template <class T>
int gesvd(char job, bool divide, int m, int n, T* a, Real<T>* s, T* u, T* vt) {
  const std::int64_t small = std::min(m, n);
  const std::int64_t large = std::max(m, n);
  if (small == 0) return 0;
  if (!allFinite(a, small * large)) return kNotFinite;
  const int ldu = m;
  const int ldvt = job == 'S' ? static_cast<int>(small) : n;
  T* left = u ? u : a;
  T* right = vt ? vt : a;
  // LAPACK's documentation of cgesdd and cgesvd.
  const std::int64_t reals =
      divide ? small * std::max(5 * small + 7, 2 * large + 2 * small + 1) : 5 * small;
  Workspace workspace;
  [[maybe_unused]] Real<T>* rwork = kIsComplex<T> ? workspace.get<Real<T>>(reals) : nullptr;
  int* iwork = divide ? workspace.get<int>(8 * small) : nullptr;
  return withWork<T>([&](T* space, const int* lwork) {
    if (divide) {
      if constexpr (kIsComplex<T>) {
        return call(gesddRoutine<T>(), &job, &m, &n, a, &m, s, left, &ldu, right, &ldvt, space,
                    lwork, rwork, iwork);
      } else {
        return call(gesddRoutine<T>(), &job, &m, &n, a, &m, s, left, &ldu, right, &ldvt, space,
                    lwork, iwork);
      }
    }
    if constexpr (kIsComplex<T>) {
      return call(gesvdRoutine<T>(), &job, &job, &m, &n, a, &m, s, left, &ldu, right, &ldvt, space,
                  lwork, rwork);
    } else {
      return call(gesvdRoutine<T>(), &job, &job, &m, &n, a, &m, s, left, &ldu, right, &ldvt, space,
                  lwork);
    }
  });
}

template <class T>
int gtsv(int n, int columns, T* lower, T* diagonal, T* upper, T* b) {
  if (n == 0 || columns == 0) return 0;
  return call(gtsvRoutine<T>(), &n, &columns, lower, diagonal, upper, b, &n);
}

template <class T>
int gtsvPerturbed(int n, int columns, T* lower, T* diagonal, T* upper, T* b) {
  if (n == 0 || columns == 0) return 0;
  if constexpr (kIsComplex<T>) {
    PerturbedTridiagonal<T>{n, columns, lower, diagonal, upper, b}.solve();
    return 0;
  } else {
    const T shift = 0;
    const T tolerance = 0;
    Workspace workspace;
    auto* second = workspace.get<T>(n);
    auto* swaps = workspace.get<int>(n);
    int info =
        call(lagtfRoutine<T>(), &n, diagonal, &shift, upper, lower, &tolerance, second, swaps);
    if (info != 0) return info;
    const int perturb = -1;
    T raised = 0;  // 0: lagts finds eps times the largest of U, and keeps it for the next column
    for (int j = 0; j < columns && info >= 0; ++j) {
      info = call(lagtsRoutine<T>(), &perturb, &n, diagonal, upper, lower, second, swaps,
                  b + std::int64_t{j} * n, &raised);
    }
    return info;
  }
}

#define IPUJAX_INSTANTIATE(T)                                         \
  template int potrf(char, int, T*);                                  \
  template void trsm(char, char, char, char, int, int, const T*, T*); \
  template int getrf(int, int, T*, std::int32_t*);                    \
  template int geqrf(int, int, T*, T*);                               \
  template int geqp3(int, int, T*, std::int32_t*, T*);                \
  template int orgqr(int, int, int, T*, T*);                          \
  template int ormqr(char, bool, int, int, int, T*, int, T*, T*);     \
  template int heevd(char, int, T*, Real<T>*);                        \
  template int hetrd(char, int, T*, Real<T>*, Real<T>*, T*);          \
  template int geev(int, T*, Complex<T>*, Complex<T>*, Complex<T>*);  \
  template int gees(int, T*, T*, Complex<T>*);                        \
  template int gehrd(int, T*, T*);                                    \
  template int gesvd(char, bool, int, int, T*, Real<T>*, T*, T*);     \
  template int gtsv(int, int, T*, T*, T*, T*);                        \
  template int gtsvPerturbed(int, int, T*, T*, T*, T*);
IPUJAX_INSTANTIATE(float)
IPUJAX_INSTANTIATE(double)
IPUJAX_INSTANTIATE(std::complex<float>)
IPUJAX_INSTANTIATE(std::complex<double>)
#undef IPUJAX_INSTANTIATE

}  // namespace ipujax::engine::blas
