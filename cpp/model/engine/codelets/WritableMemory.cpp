#include "engine/codelets/WritableMemory.hpp"

#include <cstring>

namespace ipujax::engine {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// Adds the memory of the edge at a place; a vector's number of elements is after its pointer.
void addEdge(std::vector<IpujaxRange>& memory, const IpujaxField& f, const std::byte* at,
             bool is_vector) {
  const auto* data = read<const std::byte*>(at);
  const std::size_t n = is_vector ? read<std::size_t>(at + sizeof(void*)) : 1;
  memory.push_back({data, data + n * f.element_bytes});
}

}  // namespace

std::vector<IpujaxRange> writableMemory(const IpujaxCodelet& codelet, const std::byte* object,
                                        std::size_t bytes) {
  std::vector<IpujaxRange> memory{{object, object + bytes}};
  for (unsigned i = 0; i < codelet.num_fields; ++i) {
    const IpujaxField& f = codelet.fields[i];
    if (f.direction != kIpujaxOut && f.direction != kIpujaxInOut) continue;
    const std::byte* at = object + f.offset;
    const bool vectors = f.kind == kIpujaxListOfVectors;
    if (!vectors && f.kind != kIpujaxListOfScalars) {
      addEdge(memory, f, at, f.kind == kIpujaxVectorEdge);
      continue;
    }
    const auto* rows = read<const std::byte*>(at);
    const auto n = read<std::size_t>(at + sizeof(void*));
    for (std::size_t row = 0; row < n; ++row)
      addEdge(memory, f, rows + row * (vectors ? ipujaxVectorBytes(&f) : sizeof(void*)), vectors);
  }
  return memory;
}

}  // namespace ipujax::engine
