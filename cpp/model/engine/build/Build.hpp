#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/graph/GraphImpl.hpp"
#include "engine/image/Image.hpp"

namespace ipujax::engine {

struct BuildOptions {
  Signature signature;  ///< inputs and outputs in the order of the graph's streams
  std::string stablehlo;
  /// The user's, by the names that `ipujax/config/` declares; an absent one is its default.
  Attributes options;
};

/// Compiles one program whose host streams are the signature's inputs and outputs, for callers that
/// bind memory instead of streaming. Whether it fits, outOfMemoryReport says.
std::shared_ptr<const Image> buildImage(const GraphScope& graph, const ProgramNode& program,
                                        BuildOptions options);

struct EntryOptions {
  /// A program that does not fit is thrown as graph_memory_allocation_error; else the report goes
  /// to stderr.
  bool refuse_too_large = false;
  FloatTraps traps;  ///< of all steps, beside those that the graph gives to each
};

/// Compiles programs that a poplar::Engine runs one by one, by number, beside the entry points
/// "load" (initial values), "write:<handle>" and "read:<handle>". Streams stay streams, and
/// variables keep their values between runs.
std::shared_ptr<const Image> buildEntryPoints(GraphImpl& graph,
                                              const std::vector<ProgramNodePtr>& programs,
                                              const std::string& name, const EntryOptions& options);

/// By how much an image does not fit, with the tile, the bytes and the largest tensors there, and
/// what to do; "" where it fits.
std::string outOfMemoryReport(const Image& image);

}  // namespace ipujax::engine
