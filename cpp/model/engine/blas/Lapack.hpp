#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

/// OpenBLAS's LAPACK, on the calling thread alone. Matrices are column-major without gaps. Each
/// function returns LAPACK's status: 0, or a failure. T is float, double, or complex of either.
namespace ipujax::engine::blas {

template <class T>
struct NumberOf {
  using Real = T;
};
template <class T>
struct NumberOf<std::complex<T>> {
  using Real = T;
};
template <class T>
using Real = typename NumberOf<T>::Real;
template <class T>
using Complex = std::complex<Real<T>>;
template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

/// A = L L^H or U^H U; the other triangle of A is left as it is.
template <class T>
int potrf(char uplo, int n, T* a);

/// B[m, n] := op(A)^-1 B ('L') or B op(A)^-1 ('R') for a triangular A; `trans` selects op: N, T, C.
template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, T* b);

template <class T>
int getrf(int m, int n, T* a, std::int32_t* pivots);

template <class T>
int geqrf(int m, int n, T* a, T* tau);
template <class T>
int geqp3(int m, int n, T* a, std::int32_t* columns, T* tau);
/// Overwrites A[m, n] with the first n columns of the product of k reflectors.
template <class T>
int orgqr(int m, int n, int k, T* a, T* tau);
/// C[m, n] := Q C or C Q, or the same with Q^H; A[a_rows, k] holds the reflectors.
template <class T>
int ormqr(char side, bool adjoint, int m, int n, int k, T* a, int a_rows, T* tau, T* c);

/// Overwrites A with the eigenvectors; eigenvalues are in ascending order.
template <class T>
int heevd(char uplo, int n, T* a, Real<T>* w);
template <class T>
int hetrd(char uplo, int n, T* a, Real<T>* d, Real<T>* e, T* tau);

/// Eigenvalues, and left and right eigenvectors where not null; A is destroyed.
template <class T>
int geev(int n, T* a, Complex<T>* w, Complex<T>* left, Complex<T>* right);
/// Overwrites A with its Schur form; gives the Schur vectors if not null, and the eigenvalues.
template <class T>
int gees(int n, T* a, T* vectors, Complex<T>* w);
template <class T>
int gehrd(int n, T* a, T* tau);

/// job N: values only; S: thin; A: full. A is destroyed. `divide`: divide and conquer, else QR.
template <class T>
int gesvd(char job, bool divide, int m, int n, T* a, Real<T>* s, T* u, T* vt);

/// Solves tridiagonal systems with partial pivoting; destroys the diagonals, B[n, columns] gets X.
template <class T>
int gtsv(int n, int columns, T* lower, T* diagonal, T* upper, T* b);
/// The same, but raises tiny pivots to eps times the largest element of U, so that X stays finite.
template <class T>
int gtsvPerturbed(int n, int columns, T* lower, T* diagonal, T* upper, T* b);

}  // namespace ipujax::engine::blas
