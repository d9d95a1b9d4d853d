#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/image/Image.hpp"

/// Counts the vertices of a program for reports: those of users' codelets, each once however often
/// its compute set runs, and those of library functions if the program has a profile.
namespace ipujax::engine {

/// The vertices of one type that a library function has in a step, one per tile.
struct LibraryVertices {
  std::string type;                 ///< "popops::map::..."
  std::uint64_t state_bytes = 0;    ///< of one
  std::uint64_t code_bytes = 0;     ///< on each tile that has some of the type
  std::vector<std::uint32_t> runs;  ///< of tiles, in order: the first and one past the last
};

/// Stores them in the step's attributes, for reports.
void setLibraryVertices(StepDesc& step, const std::vector<LibraryVertices>& vertices);
/// Copies the vertices of a step to the one that replaces it.
void copyLibraryVertices(const StepDesc& from, StepDesc& to);

struct VertexCount {
  std::uint64_t count = 0;
  std::uint64_t state_bytes = 0;  ///< on all tiles
  std::uint64_t code_bytes = 0;   ///< the same; a tile has the code of a type once
};
using VertexCounts = std::map<std::string, VertexCount>;  ///< by type

VertexCounts countVertices(const Image& image);
VertexCounts countVerticesOfStep(const Image& image, std::size_t step);
VertexCounts countVerticesOnTile(const Image& image, std::size_t tile);
std::uint64_t numVertices(const VertexCounts& counts);

}  // namespace ipujax::engine
