#include "engine/image/Step.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace ipujax::engine {

/// Visible: <poplar/Type.hpp> calls it.
[[gnu::visibility("default")]] const char* nameOf(ElementType type) {
  constexpr const char* kNames[] = {
      "bool",         "signed char", "unsigned char",     "short", "unsigned short", "int",
      "unsigned int", "longlong",    "unsigned longlong", "half",  "float",          "double"};
  const auto at = static_cast<std::size_t>(type);
  return at < std::size(kNames) ? kNames[at] : "unknown";
}

bool isRowMajor(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool OperandDesc::isContiguous() const { return isRowMajor(shape, strides); }

bool OperandDesc::isSingle() const { return extent().elements == 1; }

OperandDesc::Extent OperandDesc::extent() const {
  Extent extent{offset, 1};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return {offset, 0};
    const std::int64_t reach = (shape[d] - 1) * strides[d];
    extent.first += std::min<std::int64_t>(reach, 0);
    extent.elements += std::abs(reach);
  }
  return extent;
}

std::optional<std::int64_t> OperandDesc::strideOf(std::size_t begin, std::size_t end) const {
  std::int64_t stride = 0;
  std::int64_t next = 0;
  bool first = true;
  for (std::size_t d = end; d-- > begin;) {
    if (shape[d] == 1) continue;
    if (!first && strides[d] != next) return std::nullopt;
    if (first) stride = strides[d];
    first = false;
    next = strides[d] * shape[d];
  }
  return stride;
}

void Cost::raiseTemporaries(std::uint64_t bytes, std::uint64_t rearranged, std::uint64_t received) {
  if (bytes <= temporary_bytes) return;
  temporary_bytes = bytes;
  rearranged_bytes = std::min(rearranged, bytes);
  received_bytes = std::min(received, bytes - rearranged_bytes);
}

Cost& Cost::operator+=(const Cost& other) {
  compute_cycles += other.compute_cycles;
  mean_compute_cycles += other.mean_compute_cycles;
  exchange_cycles += other.exchange_cycles;
  sync_cycles += other.sync_cycles;
  repeated_exchange_cycles += other.repeated_exchange_cycles;
  repeated_sync_cycles += other.repeated_sync_cycles;
  link_cycles += other.link_cycles;
  host_cycles += other.host_cycles;
  exchange_bytes += other.exchange_bytes;
  link_bytes += other.link_bytes;
  host_bytes += other.host_bytes;
  flops += other.flops;
  if (other.temporary_bytes > temporary_bytes || !vertex_memory.any())
    vertex_memory = other.vertex_memory;
  raiseTemporaries(other.temporary_bytes, other.rearranged_bytes, other.received_bytes);
  vertex_state_bytes += other.vertex_state_bytes;
  code_bytes = std::max(code_bytes, other.code_bytes);
  return *this;
}

}  // namespace ipujax::engine
