#include "engine/account/VertexCounts.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <sstream>

#include "engine/Errors.hpp"
#include "engine/codelets/VertexStep.hpp"

namespace ipujax::engine {
namespace {

/// kTypes has one name per line; kTiles has for each name the bytes of a vertex, the bytes of its
/// code, the length of `runs`, and `runs` itself.
constexpr const char* kTypes = "vertex_types";
constexpr const char* kTiles = "vertex_tiles";

std::vector<LibraryVertices> libraryVertices(const StepDesc& step) {
  std::vector<LibraryVertices> found;
  if (!step.attributes.has(kTypes)) return found;
  const auto& numbers = step.attributes.integers(kTiles);
  std::size_t at = 0;
  const auto next = [&] {
    if (at >= numbers.size() || numbers[at] < 0 ||
        numbers[at] > std::numeric_limits<std::uint32_t>::max())
      throw poplar_error(
          "[vertices] needs the tiles of every type; got a step without them. Compile again.");
    return static_cast<std::uint32_t>(numbers[at++]);
  };
  std::istringstream names(step.attributes.text(kTypes));
  for (std::string name; std::getline(names, name);) {
    LibraryVertices vertices{name, next(), next(), {}};
    for (auto left = next(); left > 0; --left) vertices.runs.push_back(next());
    found.push_back(std::move(vertices));
  }
  return found;
}

/// Sums up vertices on tiles [first, behind).
class TileCounter {
 public:
  TileCounter(const Image& image, std::size_t first, std::size_t behind)
      : first_(first), behind_(std::min<std::size_t>(behind, image.num_tiles)) {}

  VertexCounts countIn(std::span<const StepDesc> steps) {
    for (const auto& [id, vertex] : distinctVertices(steps)) {
      const auto tile = static_cast<std::size_t>(vertex.tile);
      if (tile < first_ || tile >= behind_) continue;
      VertexCount& sum = counts_[vertex.type];
      ++sum.count;
      sum.state_bytes += vertex.state_bytes;
      auto& code = code_[vertex.type];
      code.resize(behind_ - first_);
      code[tile - first_] = kCodeletCodeBytes;
    }
    for (const auto& step : steps)
      for (const auto& vertices : libraryVertices(step)) add(vertices);
    for (const auto& [type, tiles] : code_)
      for (const std::uint64_t bytes : tiles) counts_[type].code_bytes += bytes;
    return std::move(counts_);
  }

 private:
  void add(const LibraryVertices& vertices) {
    for (std::size_t i = 0; i + 1 < vertices.runs.size(); i += 2) {
      const std::size_t from = std::max<std::size_t>(vertices.runs[i], first_);
      const std::size_t to = std::min<std::size_t>(vertices.runs[i + 1], behind_);
      if (from >= to) continue;
      VertexCount& sum = counts_[vertices.type];
      sum.count += to - from;
      sum.state_bytes += (to - from) * vertices.state_bytes;
      auto& code = code_[vertices.type];
      code.resize(behind_ - first_);
      for (std::size_t t = from; t < to; ++t)
        code[t - first_] = std::max(code[t - first_], vertices.code_bytes);
    }
  }

  std::size_t first_, behind_;
  VertexCounts counts_;
  std::map<std::string, std::vector<std::uint64_t>> code_;  ///< of the type, by tile
};

}  // namespace

void setLibraryVertices(StepDesc& step, const std::vector<LibraryVertices>& vertices) {
  if (vertices.empty()) return;
  std::string names;
  Attributes::Integers numbers;
  for (const auto& each : vertices) {
    names += each.type + "\n";
    for (const std::uint64_t number : {each.state_bytes, each.code_bytes, each.runs.size()})
      numbers.push_back(static_cast<std::int64_t>(number));
    numbers.insert(numbers.end(), each.runs.begin(), each.runs.end());
  }
  step.attributes.set(kTypes, std::move(names)).set(kTiles, std::move(numbers));
}

void copyLibraryVertices(const StepDesc& from, StepDesc& to) {
  if (!from.attributes.has(kTypes)) return;
  to.attributes.set(kTypes, from.attributes.text(kTypes))
      .set(kTiles, from.attributes.integers(kTiles));
}

VertexCounts countVertices(const Image& image) {
  return TileCounter(image, 0, image.num_tiles).countIn(image.steps);
}

VertexCounts countVerticesOfStep(const Image& image, std::size_t step) {
  return TileCounter(image, 0, image.num_tiles).countIn({&image.steps[step], 1});
}

VertexCounts countVerticesOnTile(const Image& image, std::size_t tile) {
  return TileCounter(image, tile, tile + 1).countIn(image.steps);
}

std::uint64_t numVertices(const VertexCounts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [type, each] : counts) sum += each.count;
  return sum;
}

}  // namespace ipujax::engine
