#include "engine/kernels/conv/Window.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/Errors.hpp"

namespace ipujax::engine {

Window Window::of(std::vector<std::int64_t> sizes) {
  Window w;
  const std::size_t rank = sizes.size();
  w.sizes = std::move(sizes);
  w.strides.assign(rank, 1);
  w.base_dilations.assign(rank, 1);
  w.window_dilations.assign(rank, 1);
  w.padding_low.assign(rank, 0);
  w.padding_high.assign(rank, 0);
  return w;
}

void Window::check(const char* where, std::size_t rank) const {
  const auto refuse = [&](const std::string& needs, const std::string& got) {
    throw poplar_error(std::string("[") + where + "] needs " + needs + "; got " + got +
                       ". Check the window.");
  };
  for (const auto* v :
       {&sizes, &strides, &base_dilations, &window_dilations, &padding_low, &padding_high}) {
    if (v->size() != rank) {
      refuse(std::to_string(rank) + " numbers, one a dimension", std::to_string(v->size()));
    }
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t least =
        std::min({sizes[d], strides[d], base_dilations[d], window_dilations[d]});
    if (least < 1) refuse("sizes, strides and dilations of 1 or more", std::to_string(least));
  }
}

std::int64_t Window::outputSize(std::size_t d, std::int64_t n) const {
  const std::int64_t dilated = n == 0 ? 0 : (n - 1) * base_dilations[d] + 1;
  const std::int64_t padded = dilated + padding_low[d] + padding_high[d];
  const std::int64_t span = (sizes[d] - 1) * window_dilations[d] + 1;
  return padded < span ? 0 : (padded - span) / strides[d] + 1;
}

std::int64_t Window::volume() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

bool Window::isPlain(std::size_t d, std::int64_t n) const {
  return sizes[d] == 1 && strides[d] == 1 && base_dilations[d] == 1 && padding_low[d] == 0 &&
         outputSize(d, n) == n;
}

Attributes::Integers Window::toIntegers() const {
  Attributes::Integers all;
  for (const auto* v :
       {&sizes, &strides, &base_dilations, &window_dilations, &padding_low, &padding_high}) {
    all.insert(all.end(), v->begin(), v->end());
  }
  return all;
}

Window Window::from(const Attributes::Integers& integers) {
  Window w;
  const std::size_t rank = integers.size() / 6;
  auto at = integers.begin();
  for (auto* v : {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations, &w.padding_low,
                  &w.padding_high}) {
    v->assign(at, at + static_cast<std::ptrdiff_t>(rank));
    at += static_cast<std::ptrdiff_t>(rank);
  }
  return w;
}

Window Window::check(const StepCheck& check, const OperandCheck& in, const OperandCheck& out) {
  constexpr std::int64_t kMost = StepCheck::kMostElements;
  const std::size_t rank = in->shape.size();
  out.hasRank(in.rank());
  const Window w = from(check.integers("window", 6 * rank));
  std::int64_t volume = 1;
  std::int64_t tries = 1;  // of tapsOf
  for (std::size_t d = 0; d < rank; ++d) {
    for (const auto* v : {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations})
      check.need((*v)[d] >= 1 && (*v)[d] <= kMost, "a window of sizes, strides and dilations");
    check.need(w.padding_low[d] >= -kMost && w.padding_low[d] <= kMost &&
                   w.padding_high[d] >= -kMost && w.padding_high[d] <= kMost,
               "a window with less padding");
    check.need(out->shape[d] == w.outputSize(d, in->shape[d]), "outputs that its window gives");
    volume *= w.sizes[d];
    check.need(volume <= kMost, "a smaller window");
    if (w.base_dilations[d] > 1) tries += out->shape[d] * std::min(w.sizes[d], w.base_dilations[d]);
    check.need(tries <= kMost, "a smaller dilation");
  }
  return w;
}

Taps WindowDim::tapsOf(std::int64_t output) const {
  // Every `period`-th tap hits an element, without gaps between the first and the last hit.
  const std::int64_t period = base_dilation / std::gcd(base_dilation, window_dilation);
  Taps taps;
  taps.step = window_dilation * period / base_dilation;
  const std::int64_t limit = std::min(size, period);
  const std::int64_t start = output * stride - low;
  for (std::int64_t k = 0; k < limit; ++k) {
    const std::int64_t at = start + k * window_dilation;
    if (((at % base_dilation) + base_dilation) % base_dilation != 0) continue;
    std::int64_t index = at / base_dilation;
    std::int64_t count = (size - k + period - 1) / period;
    if (index < 0) {
      const std::int64_t skip = (-index + taps.step - 1) / taps.step;
      index += skip * taps.step;
      count -= skip;
    }
    if (index < n) count = std::min(count, (n - 1 - index) / taps.step + 1);
    if (index >= n || count <= 0) break;
    taps.first = index;
    taps.count = count;
    break;
  }
  return taps;
}

std::vector<WindowDim> windowDims(const Window& window, const OperandDesc& in,
                                  const OperandDesc& out) {
  std::vector<WindowDim> dims;
  for (std::size_t d = 0; d < window.rank(); ++d) {
    WindowDim dim{in.shape[d],
                  out.shape[d],
                  in.strides[d],
                  out.strides[d],
                  window.sizes[d],
                  window.strides[d],
                  window.base_dilations[d],
                  window.window_dilations[d],
                  window.padding_low[d],
                  window.isPlain(d, in.shape[d])};
    dims.push_back(dim);
  }
  return dims;
}

}  // namespace ipujax::engine
