#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/image/Step.hpp"

namespace ipujax::engine {

/// The attribute of a step of vertices that read their tile's clock: RunContext::cycles is set.
constexpr const char* kReadsCycles = "reads_cycles";
/// The attribute for reports: for each vertex its number in the graph, type (index into "types")
/// and tile.
constexpr const char* kPlacedVertices = "placed";
/// The attribute for reports: for each of these vertices the bytes of its state on the IPU.
constexpr const char* kStateBytes = "state_bytes";
/// Bytes of a codelet's code on each tile that has it: an assumption, a hundred instructions.
constexpr std::uint64_t kCodeletCodeBytes = 400;

/// The attribute that says whether the last operand is a BOOL that tells whether all vertices
/// return true: 0 if it is not, 1 to write it, 2 to change it only if they do not.
constexpr const char* kGathers = "gathers";

/// The attribute that says where vertices keep their fields: for each vertex an operand, or -1, and
/// the number of its first byte there. Absent if none does.
constexpr const char* kKept = "kept";

/// The attribute that names the operand of all workers' generators
/// (engine/kernels/random/WorkerSeeds.hpp), which the vertices draw from. Absent if they draw
/// nothing, or the program sets no seed.
constexpr const char* kSeeds = "seeds";
/// The attribute for the tile of the first of these generators. Absent if it is 0.
constexpr const char* kSeededFrom = "seeded_from";

struct PlacedVertex {
  std::int64_t id;  ///< in the graph
  std::string type;
  std::int64_t tile;
  std::uint64_t state_bytes = 0;
};

/// The vertices that a step runs, in its order; none for a step without codelets.
std::vector<PlacedVertex> placedVertices(const StepDesc& step);

/// The vertices of all steps by their number in the graph: a compute set may run more than once.
std::map<std::int64_t, PlacedVertex> distinctVertices(std::span<const StepDesc> steps);
/// The number of vertices of each type, in the order of the types' names.
std::map<std::string, std::uint64_t> countByType(
    const std::map<std::int64_t, PlacedVertex>& vertices);

}  // namespace ipujax::engine
