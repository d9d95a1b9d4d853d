#pragma once
#include <functional>
#include <iosfwd>
#include <memory>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
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
  static Executable deserialize(std::istream& in);

  /// For the library.
  explicit Executable(std::shared_ptr<const ipujax::engine::Image> image)
      : image_(std::move(image)) {}
  const std::shared_ptr<const ipujax::engine::Image>& image() const { return image_; }

 private:
  std::shared_ptr<const ipujax::engine::Image> image_;
};

/// Compiles programs over a graph. Options: those that the SDK documents are accepted; of them
/// "debug.outOfMemory" = "log" | "error" decides what an account larger than a tile does; on
/// "error" graph_memory_allocation_error is thrown.
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const OptionFlags& opt = {}, ProgressFunc progressCallBack = {},
                        const DebugContext& debugContext = {});

}  // namespace poplar
