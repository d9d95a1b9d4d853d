#pragma once
#include <cmath>
#include <functional>
#include <poplar/Tensor.hpp>
#include <vector>

#include "Check.hpp"

using Values = std::vector<double>;

/// The gradients of sum(weights * run(v)) by central differences.
inline Values differences(const std::function<Values(const Values&)>& run, Values v,
                          const Values& weights) {
  const auto loss = [&] {
    const Values y = run(v);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  Values found(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double kept = v[i];
    v[i] = kept + 1e-5;
    const double up = loss();
    v[i] = kept - 1e-5;
    found[i] = (up - loss()) / 2e-5;
    v[i] = kept;
  }
  return found;
}

/// Compares the elements of `found` from `at` on.
inline void checkFrom(const std::vector<float>& found, std::size_t at, const Values& wanted) {
  CHECK(at + wanted.size() <= found.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK_NEAR(found[at + i], wanted[i], 1e-3 * (1 + std::abs(wanted[i])));
}

inline poplar::Tensor flat(const std::vector<poplar::Tensor>& tensors) {
  std::vector<poplar::Tensor> parts;
  for (const poplar::Tensor& t : tensors) parts.push_back(t.flatten());
  return poplar::concat(parts);
}
