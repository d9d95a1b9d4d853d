#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/Image.hpp"
#include "engine/graph/GraphImpl.hpp"

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
/// bind memory instead of streaming. Throws graph_memory_allocation_error, naming the tile,
/// the bytes and the largest tensors, where the program does not fit and options ask for that.
std::shared_ptr<const Image> buildImage(const GraphScope& graph, const ProgramNode& program,
                                        BuildOptions options);

/// Compiles programs that a poplar::Engine runs one by one, by number, beside the entry points
/// "load" (initial values), "write:<handle>" and "read:<handle>". Streams stay streams, and
/// variables keep their values between runs. `refuse`: as buildImage where a program does not fit.
std::shared_ptr<const Image> buildEntryPoints(GraphImpl& graph,
                                              const std::vector<ProgramNodePtr>& programs,
                                              const std::string& name, bool refuse);

/// The sentence that says by how much an image does not fit a tile, or "" where it fits.
std::string outOfMemoryReport(const Image& image);

}  // namespace ipujax::engine
