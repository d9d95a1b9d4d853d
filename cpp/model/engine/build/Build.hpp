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
  /// The user's options, by their names in `ipujax/config/`; absent options have their defaults.
  Attributes options;
};

/// Compiles one program whose host streams are the signature's inputs and outputs, for callers that
/// bind memory instead of streaming. outOfMemoryReport tells whether it fits.
std::shared_ptr<const Image> buildImage(const GraphScope& graph, const ProgramNode& program,
                                        BuildOptions options);

struct EntryOptions {
  /// Throws graph_memory_allocation_error for a program that does not fit; else the report goes to
  /// stderr.
  bool refuse_too_large = false;
  FloatTraps traps;  ///< for all steps, in addition to those that the graph sets
};

/// Compiles programs that a poplar::Engine runs one by one, by number, and the entry points "load"
/// (initial values), "write:<handle>" and "read:<handle>". Streams stay streams, and variables keep
/// their values between runs.
std::shared_ptr<const Image> buildEntryPoints(GraphImpl& graph,
                                              const std::vector<ProgramNodePtr>& programs,
                                              const std::string& name, const EntryOptions& options);

/// Reports why an image does not fit: the tile, the bytes, the largest tensors there, and what to
/// do. "" if it fits.
std::string outOfMemoryReport(const Image& image);

}  // namespace ipujax::engine
