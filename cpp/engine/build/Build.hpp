#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/Image.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace ipujax::engine {

struct BuildOptions {
  Signature signature;  ///< inputs and outputs in the order of the graph's streams
  std::string stablehlo;
  /// The user's, by the names that `ipujax/config.py` declares; an absent one is its default.
  Attributes options;
  /// Told, once for a build, by how much a program does not fit; stderr where empty.
  std::function<void(const std::string&)> log;
};

/// Compiles one program whose host streams are the signature's inputs and outputs, for callers that
/// bind memory instead of streaming. Throws poplar::graph_memory_allocation_error, naming the tile,
/// the bytes and the largest tensors, where the program does not fit and options ask for that.
std::shared_ptr<const Image> buildImage(poplar::Graph& graph, const poplar::program::Program& prog,
                                        BuildOptions options);

/// The sentence that says by how much an image does not fit a tile, or "" where it fits.
std::string outOfMemoryReport(const Image& image);

}  // namespace ipujax::engine
