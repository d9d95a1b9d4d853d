#pragma once
#include <functional>
#include <iosfwd>
#include <memory>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Preallocations.hpp"
#include "poplar/Program.hpp"

namespace ipujax::engine {
struct Image;
}

namespace poplar {

using ProgressFunc = std::function<void(int, int)>;

/// A compiled graph. Cheap to copy.
class Executable {
 public:
  Executable() = default;
  void serialize(std::ostream& out) const;
  /// Executables of another version of this library are refused, whatever `checkPackageHash` says.
  static Executable deserialize(std::istream& in, bool checkPackageHash = true);
  static Executable deserialize(std::unique_ptr<std::istream> in, bool checkPackageHash = true) {
    return deserialize(*in, checkPackageHash);
  }

  /// For the library.
  explicit Executable(std::shared_ptr<const ipujax::engine::Image> image)
      : image_(std::move(image)) {}
  const std::shared_ptr<const ipujax::engine::Image>& image() const { return image_; }

 private:
  std::shared_ptr<const ipujax::engine::Image> image_;
};

/// Compiles programs over a graph, of one replica or of several. Options: those that the SDK
/// documents are accepted. "debug.outOfMemory" = "log" | "error" decides what an account larger
/// than a tile does; on "error" graph_memory_allocation_error is thrown. With
/// "debug.floatPointOpException" = "true" floating-point exceptions of all steps end a run.
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const OptionFlags& opt = {}, ProgressFunc progressCallBack = {},
                        const DebugContext& debugContext = {});
/// The same. Without a target to be loaded on the model compiles alike, and it has no memory that
/// was given out before.
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs, bool offline,
                        const OptionFlags& opt = {}, ProgressFunc progressCallBack = {},
                        const DebugContext& debugContext = {});
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const Preallocations& preallocations, const OptionFlags& opt = {},
                        ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const Preallocations& preallocations, bool offline,
                        const OptionFlags& opt = {}, ProgressFunc progressCallBack = {},
                        const DebugContext& debugContext = {});

}  // namespace poplar
