#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/Image.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

enum class OutOfMemory { kLog, kError };

struct BuildOptions {
  Signature signature;  ///< inputs and outputs in the order of the graph's streams
  std::string stablehlo;
  OutOfMemory out_of_memory = OutOfMemory::kLog;
  Mechanisms mechanisms;
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
/// variables keep their values between runs.
std::shared_ptr<const Image> buildEntryPoints(GraphImpl& graph,
                                              const std::vector<ProgramNodePtr>& programs,
                                              const std::string& name, OutOfMemory policy);

/// The sentence that says by how much an image does not fit a tile, or "" where it fits.
std::string outOfMemoryReport(const Image& image);

}  // namespace ipujax::engine
