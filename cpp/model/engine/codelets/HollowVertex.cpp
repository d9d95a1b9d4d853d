#include "engine/codelets/HollowVertex.hpp"

#include <algorithm>
#include <cstring>

#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/VertexEstimate.hpp"

namespace ipujax::engine {
namespace {

constexpr std::size_t kAlign = 64;

std::byte* aligned(std::byte* at) {
  return at + (kAlign - reinterpret_cast<std::uintptr_t>(at) % kAlign) % kAlign;
}

template <class T>
void put(std::byte* at, T what) {
  std::memcpy(at, &what, sizeof(what));
}
void span(std::byte* at, std::byte* data, std::size_t size) {
  put(at, data);
  put(at + sizeof(data), size);
}

}  // namespace

HollowVertex::HollowVertex(const VertexRecord& vertex, const IpujaxCodelet& codelet,
                           bool with_memory)
    : vertex_(vertex), with_memory_(with_memory), object_(codelet.bytes + kAlign) {
  place_ = aligned(object_.data());
  guarded([&] { codelet.construct(place_); });
  ranges_.push_back({place_, place_ + codelet.bytes});
  for (unsigned i = 0; i < codelet.num_fields; ++i) field(codelet.fields[i]);
}

std::byte* HollowVertex::memory(std::size_t bytes) {
  std::byte* begin = aligned(rows_.emplace_back(bytes + 2 * kAlign).data());
  ranges_.push_back({begin, begin + bytes});
  return begin;
}

std::byte* HollowVertex::zeros(const IpujaxField& f, std::size_t elements) {
  return with_memory_ ? memory(elements * f.element_bytes) : nullptr;
}

void HollowVertex::field(const IpujaxField& f) {
  if (f.kind == kIpujaxValue) return value(f);
  if (f.kind == kIpujaxScalarEdge) return put(place_ + f.offset, zeros(f, 1));
  if (f.kind == kIpujaxStateVector) return state(f);
  const auto edge = vertex_.edges.find(f.name);
  const Connection none;
  const Connection& connected = edge == vertex_.edges.end() ? none : edge->second;
  if (f.kind == kIpujaxVectorEdge) {
    const bool known = !connected.views.empty() && connected.views[0];
    const std::size_t n = known ? connected.views[0]->numElements() : 0;
    return span(place_ + f.offset, zeros(f, n), n);
  }
  list(f, connected);
}

void HollowVertex::value(const IpujaxField& f) {
  const auto given = vertex_.values.find(f.name);
  if (given == vertex_.values.end()) return;
  const auto type = static_cast<ElementType>(f.element);
  const std::int64_t bits = bitsOf(given->second.begin()->second, type);
  std::memcpy(place_ + f.offset, &bits, f.element_bytes);
}

void HollowVertex::state(const IpujaxField& f) {
  std::size_t size = 0;
  if (const auto it = vertex_.sizes.find(f.name); it != vertex_.sizes.end()) size = it->second;
  const auto given = vertex_.values.find(f.name);
  if (given != vertex_.values.end()) size = std::max(size, given->second.rbegin()->first + 1);
  std::byte* elements = memory(size * f.element_bytes);
  if (given != vertex_.values.end()) {
    for (const auto& [index, number] : given->second) {
      const std::int64_t bits = bitsOf(number, static_cast<ElementType>(f.element));
      std::memcpy(elements + index * f.element_bytes, &bits, f.element_bytes);
    }
  }
  span(place_ + f.offset, elements, size);
}

void HollowVertex::list(const IpujaxField& f, const Connection& connected) {
  std::vector<std::size_t> sizes;
  for (const ViewPtr& view : connected.views) sizes.push_back(view ? view->numElements() : 0);
  if (!connected.is_list && connected.views.size() == 1 && !connected.views[0]->shape.empty()) {
    const std::size_t n = connected.views[0]->shape[0];
    sizes.assign(n, n == 0 ? 0 : sizes[0] / n);
  }
  const bool vectors = f.kind == kIpujaxListOfVectors;
  const std::size_t each = vectors ? ipujaxVectorBytes(&f) : sizeof(void*);
  std::byte* rows = memory(sizes.size() * each);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    vectors ? span(rows + i * each, zeros(f, sizes[i]), sizes[i])
            : put(rows + i * each, zeros(f, 1));
  span(place_ + f.offset, rows, sizes.size());
}

}  // namespace ipujax::engine
