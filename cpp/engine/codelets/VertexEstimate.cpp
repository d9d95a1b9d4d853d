#include "engine/codelets/VertexEstimate.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>

#include "engine/Errors.hpp"
#include "engine/Half.hpp"

namespace ipujax::engine {
namespace {

/// The object of a vertex with its values and sizes; its edges point nowhere.
class Hollow {
 public:
  Hollow(const VertexRecord& vertex, const IpujaxCodelet& codelet)
      : vertex_(vertex), object_(codelet.bytes + 64) {
    const auto address = reinterpret_cast<std::uintptr_t>(object_.data());
    place_ = object_.data() + (64 - address % 64) % 64;
    codelet.construct(place_);
    for (unsigned i = 0; i < codelet.num_fields; ++i) field(codelet.fields[i]);
  }
  const void* place() const { return place_; }

 private:
  void field(const IpujaxField& f) {
    if (f.kind == kIpujaxValue) return value(f);
    if (f.kind == kIpujaxScalarEdge) return put(place_ + f.offset, std::uintptr_t{0});
    if (f.kind == kIpujaxStateVector) return state(f);
    const auto edge = vertex_.edges.find(f.name);
    const Connection none;
    const Connection& connected = edge == vertex_.edges.end() ? none : edge->second;
    if (f.kind == kIpujaxVectorEdge) {
      const bool known = !connected.views.empty() && connected.views[0];
      return span(place_ + f.offset, nullptr, known ? connected.views[0]->numElements() : 0);
    }
    list(f, connected);
  }

  void value(const IpujaxField& f) {
    const auto given = vertex_.values.find(f.name);
    if (given == vertex_.values.end()) return;
    const auto type = static_cast<ElementType>(f.element);
    const std::int64_t bits = bitsOf(given->second.begin()->second, type);
    std::memcpy(place_ + f.offset, &bits, f.element_bytes);
  }

  void state(const IpujaxField& f) {
    std::size_t size = 0;
    if (const auto it = vertex_.sizes.find(f.name); it != vertex_.sizes.end()) size = it->second;
    const auto given = vertex_.values.find(f.name);
    if (given != vertex_.values.end()) size = std::max(size, given->second.rbegin()->first + 1);
    std::byte* memory = rows_.emplace_back(size * f.element_bytes + 1).data();
    if (given != vertex_.values.end()) {
      for (const auto& [index, number] : given->second) {
        const std::int64_t bits = bitsOf(number, static_cast<ElementType>(f.element));
        std::memcpy(memory + index * f.element_bytes, &bits, f.element_bytes);
      }
    }
    span(place_ + f.offset, memory, size);
  }

  void list(const IpujaxField& f, const Connection& connected) {
    std::vector<std::size_t> sizes;
    for (const ViewPtr& view : connected.views) sizes.push_back(view ? view->numElements() : 0);
    if (!connected.is_list && connected.views.size() == 1 && !connected.views[0]->shape.empty()) {
      const std::size_t n = connected.views[0]->shape[0];
      sizes.assign(n, n == 0 ? 0 : sizes[0] / n);
    }
    const bool vectors = f.kind == kIpujaxListOfVectors;
    const std::size_t each = (vectors ? 2 : 1) * sizeof(void*);
    std::byte* memory = rows_.emplace_back(sizes.size() * each + 1).data();
    for (std::size_t i = 0; i < sizes.size() && vectors; ++i)
      span(memory + i * each, nullptr, sizes[i]);
    span(place_ + f.offset, memory, sizes.size());
  }

  template <class T>
  static void put(std::byte* at, T what) {
    std::memcpy(at, &what, sizeof(what));
  }
  static void span(std::byte* at, std::byte* data, std::size_t size) {
    put(at, data);
    put(at + sizeof(data), size);
  }

  const VertexRecord& vertex_;
  std::vector<std::byte> object_;
  std::byte* place_ = nullptr;
  std::deque<std::vector<std::byte>> rows_;
};

}  // namespace

std::optional<std::uint64_t> ownEstimate(const VertexRecord& vertex, const IpujaxCodelet& codelet) {
  if (codelet.estimate == nullptr) return std::nullopt;
  try {
    return codelet.estimate(Hollow(vertex, codelet).place());
  } catch (const std::exception& e) {
    throw poplar_error("[Execute] needs getCycleEstimate() of " + vertex.type +
                       " to give cycles; it said: " + e.what() + ". Correct it.");
  }
}

std::int64_t bitsOf(double value, ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return floatToHalf(static_cast<float>(value));
    case ElementType::kFloat:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case ElementType::kDouble:
      return std::bit_cast<std::int64_t>(value);
    case ElementType::kBool:
      return value != 0;
    case ElementType::kUInt64:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
    default:
      return static_cast<std::int64_t>(value);
  }
}

}  // namespace ipujax::engine
