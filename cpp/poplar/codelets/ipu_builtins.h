#pragma once
#include <ipu_vector_math>

// The compiler's own functions for the IPU, as far as they compute with their arguments alone. Those
// that read or set a tile's registers or memory layout have no meaning here and are not defined.
template <class V>
ipu::emulated::Number<V> __builtin_ipu_exp(V v) {
  return ipu::exp(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_exp2(V v) {
  return ipu::exp2(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_ln(V v) {
  return ipu::log(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_log2(V v) {
  return ipu::log2(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_tanh(V v) {
  return ipu::tanh(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_sigm(V v) {
  return ipu::sigmoid(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_rsqrt(V v) {
  return ipu::rsqrt(v);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_max(V v, V w) {
  return ipu::max(v, w);
}
template <class V>
ipu::emulated::Number<V> __builtin_ipu_min(V v, V w) {
  return ipu::min(v, w);
}
