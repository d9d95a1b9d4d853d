#pragma once
#include <span>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "support/Signature.hpp"

namespace ipujax::poplar_backend {

/// One array of a host function, as JAX sees it.
struct HostArraySpec {
  std::string dtype;
  std::vector<std::int64_t> shape;
  bool isEmpty() const;  ///< has no elements, so Poplar does not see it
};

/// A host function of a program. A callback that is called at several places has a handle for each.
struct HostCall {
  std::string handle;  ///< Poplar's
  std::string id;      ///< the user's callback
  std::vector<HostArraySpec> arguments;
  std::vector<HostArraySpec> results;
};

/// An argument or result in a remote buffer, which the host fills before a run or reads after it.
struct RemoteArray {
  std::uint32_t index = 0;  ///< among the arguments, or the results
  std::string handle;       ///< Poplar's
  std::uint64_t entries = 0;
};

/// What the plugin saves: everything needed to run a program without Python or a compiler.
struct Container {
  runtime::Signature signature;
  std::vector<HostCall> host_calls;
  std::vector<RemoteArray> remote_inputs;
  std::vector<RemoteArray> remote_outputs;
  /// Arguments that the device may keep from run to run. The stream "fresh" tells, in this order,
  /// which of their streams the program reads.
  std::vector<std::uint32_t> kept_inputs;
  std::int64_t tiles_per_ipu = 0;
  std::int64_t ipus_per_replica = 1;
  std::string text;        ///< the module as MLIR bytecode
  std::string executable;  ///< what poplar::Executable::serialize wrote

  std::string seal() const;
  /// Throws ExecutableError for bytes that this build did not seal or whose contents are
  /// inconsistent.
  static Container open(std::span<const std::byte> sealed);
};

/// Compiles a program with Poplar. Its streams are called in0, in1, ..., out0, out1, ...
std::string compile(const poplar::Graph& graph, const poplar::program::Program& program,
                    Container container, const poplar::OptionFlags& options = {});

}  // namespace ipujax::poplar_backend
