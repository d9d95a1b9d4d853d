#include "engine/codelets/VertexStep.hpp"

#include <algorithm>
#include <sstream>

#include "engine/Errors.hpp"

namespace ipujax::engine {

std::vector<PlacedVertex> placedVertices(const StepDesc& step) {
  std::vector<PlacedVertex> vertices;
  if (!step.attributes.has(kPlacedVertices)) return vertices;
  const auto& placed = step.attributes.integers(kPlacedVertices);
  std::vector<std::string> types;
  std::istringstream names(step.attributes.text("types"));
  for (std::string name; std::getline(names, name);) types.push_back(name);
  static const Attributes::Integers kNone;
  const auto& bytes =
      step.attributes.has(kStateBytes) ? step.attributes.integers(kStateBytes) : kNone;
  for (std::size_t i = 0; i + 2 < placed.size(); i += 3) {
    const auto type = static_cast<std::size_t>(placed[i + 1]);
    if (type >= types.size())
      throw poplar_error(
          "[vertices] needs the type of every vertex; got a step without it. "
          "Compile again.");
    const std::int64_t state = i / 3 < bytes.size() ? bytes[i / 3] : 0;
    vertices.push_back({placed[i], types[type], placed[i + 2],
                        static_cast<std::uint64_t>(std::max<std::int64_t>(state, 0))});
  }
  return vertices;
}

std::map<std::int64_t, PlacedVertex> distinctVertices(std::span<const StepDesc> steps) {
  std::map<std::int64_t, PlacedVertex> vertices;
  for (const auto& step : steps)
    for (auto& vertex : placedVertices(step)) vertices.emplace(vertex.id, vertex);
  return vertices;
}

std::map<std::string, std::uint64_t> countByType(
    const std::map<std::int64_t, PlacedVertex>& vertices) {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [id, vertex] : vertices) ++counts[vertex.type];
  return counts;
}

}  // namespace ipujax::engine
