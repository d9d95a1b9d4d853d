#include "engine/image/Overlap.hpp"

#include <algorithm>
#include <cstdlib>

namespace ipujax::engine {
namespace {

/// Where elements lie within a period: an interval that may wrap around its end.
struct Window {
  std::int64_t begin = 0;
  std::int64_t width = 0;
};

/// Dimensions that step by whole periods do not move an element within one.
Window within(const Footprint& f, std::int64_t period) {
  std::int64_t low = f.at;
  std::int64_t width = f.element;
  for (const auto& dim : f.dims) {
    if (dim.stride % period == 0) continue;
    const std::int64_t reach = (dim.n - 1) * dim.stride;
    if (reach < 0) low += reach;
    width += std::abs(reach);
  }
  return {((low % period) + period) % period, width};
}

bool areApartWithin(const Footprint& a, const Footprint& b, std::int64_t period) {
  const Window x = within(a, period);
  const Window y = within(b, period);
  if (x.width + y.width > period) return false;
  const std::int64_t from_x_to_y = (y.begin - x.begin + period) % period;
  const std::int64_t from_y_to_x = (x.begin - y.begin + period) % period;
  return from_x_to_y >= x.width && from_y_to_x >= y.width;
}

}  // namespace

void Footprint::assign(const OperandDesc& operand, std::int64_t place) {
  space = 0;
  element = static_cast<std::int64_t>(sizeOf(operand.type));
  at = begin = end = place;
  dims.clear();
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    if (operand.shape[d] == 0) {
      begin = end = place;
      dims.clear();
      return;
    }
    if (operand.shape[d] == 1) continue;
    dims.push_back({operand.shape[d], operand.strides[d] * element});
    const std::int64_t reach = (operand.shape[d] - 1) * dims.back().stride;
    (reach < 0 ? begin : end) += reach;
  }
  end += element;
}

bool isSame(const Footprint& a, const Footprint& b) {
  return a.space == b.space && a.at == b.at && a.element == b.element &&
         std::ranges::equal(a.dims, b.dims, [](const auto& x, const auto& y) {
           return x.n == y.n && x.stride == y.stride;
         });
}

bool areApart(const Footprint& a, const Footprint& b) {
  if (a.isEmpty() || b.isEmpty() || a.space != b.space) return true;
  if (a.end <= b.begin || b.end <= a.begin) return true;
  for (const auto* f : {&a, &b})
    for (const auto& dim : f->dims)
      if (dim.stride != 0 && areApartWithin(a, b, std::abs(dim.stride))) return true;
  return false;
}

bool areElementsApart(const Footprint& footprint) {
  // Mostly row-major: from the last dimension on, each stride spans all inner dimensions.
  std::int64_t inner = footprint.element;
  bool nested = true;
  for (std::size_t d = footprint.dims.size(); d-- > 0 && nested;) {
    const std::int64_t stride = std::abs(footprint.dims[d].stride);
    nested = stride >= inner;
    inner += (footprint.dims[d].n - 1) * stride;
  }
  if (nested) return true;
  auto dims = footprint.dims;
  std::ranges::sort(dims, {}, [](const auto& dim) { return std::abs(dim.stride); });
  inner = footprint.element;
  for (const auto& dim : dims) {
    if (std::abs(dim.stride) < inner) return false;
    inner += (dim.n - 1) * std::abs(dim.stride);
  }
  return true;
}

}  // namespace ipujax::engine
