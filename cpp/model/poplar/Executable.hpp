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
  /// Throws poplar_error for another version of this library, whatever `checkPackageHash` is.
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

/// Compiles programs of a graph with one or more replicas. Accepts all options that the SDK
/// documents. "debug.outOfMemory" = "log" | "error" decides what happens if the program needs more
/// memory than a tile has; "error" throws graph_memory_allocation_error. With
/// "debug.floatPointOpException" = "true", a floating-point exception in any step ends a run.
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const OptionFlags& opt = {}, ProgressFunc progressCallBack = {},
                        const DebugContext& debugContext = {});
/// The same: on the model, `offline` and `preallocations` have no effect.
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
