#include "engine/codelets/VertexState.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {
namespace {

bool writes(const CodeletClass& found, const IpujaxField& field) {
  if (field.kind == kIpujaxStateVector) return true;
  return field.kind == kIpujaxValue && std::find(found.assigned.begin(), found.assigned.end(),
                                                 field.name) != found.assigned.end();
}

/// Bytes that a vertex keeps: 0 if its codelet writes to none of its fields.
std::uint64_t keptBytes(VertexStore& store, const VertexRecord& vertex) {
  std::size_t file = 0;
  const CodeletClass* found = store.findClass(vertex.type, file);
  if (!found) return 0;
  const bool may_write = !found->assigned.empty() || !vertex.sizes.empty();
  if (!may_write) return 0;
  const IpujaxCodelet& codelet =
      store.rounding(vertex.file, vertex.half_mode)->codelet(vertex.type);
  const auto* end = codelet.fields + codelet.num_fields;
  if (std::none_of(codelet.fields, end, [&](const auto& f) { return writes(*found, f); })) return 0;
  std::uint64_t bytes = 1;
  for (const auto* f = codelet.fields; f != end; ++f) {
    if (f->kind == kIpujaxValue) bytes += f->element_bytes;
    if (f->kind == kIpujaxStateVector) bytes += stateElements(vertex, *f) * f->element_bytes;
  }
  return bytes;
}

}  // namespace

std::uint64_t stateElements(const VertexRecord& vertex, const IpujaxField& field) {
  std::uint64_t n = 0;
  if (const auto it = vertex.sizes.find(field.name); it != vertex.sizes.end()) n = it->second;
  const auto it = vertex.values.find(field.name);
  return it == vertex.values.end() ? n : std::max<std::uint64_t>(n, it->second.rbegin()->first + 1);
}

void keepVertexStates(GraphImpl& graph) {
  const auto has_parts = [](const Variable& v) { return v.parts.count > 1; };
  if (!graph.vertices || std::any_of(graph.variables.begin(), graph.variables.end(), has_parts))
    return;
  VertexStore& store = *graph.vertices;
  for (const ComputeSetRecord& set : store.compute_sets) {
    std::uint64_t bytes = 0;
    std::vector<TileMap::Region> regions;
    std::vector<VertexRecord*> keepers;
    for (const unsigned id : set.vertices) {
      VertexRecord& vertex = store.vertices[id];
      if (!vertex.tile || vertex.kept) continue;
      const std::uint64_t own = keptBytes(store, vertex);
      if (own == 0) continue;
      vertex.kept = KeptFields{0, bytes};
      keepers.push_back(&vertex);
      regions.push_back({bytes, *vertex.tile});
      bytes += own;
    }
    if (bytes == 0) continue;
    const std::uint32_t variable = graph.addVariable(
        ElementType::kUInt8, bytes, tileMapOf(bytes, std::move(regions)), set.debug);
    graph.variables[variable].values.resize(bytes);
    for (VertexRecord* vertex : keepers) vertex->kept->variable = variable;
  }
}

}  // namespace ipujax::engine
