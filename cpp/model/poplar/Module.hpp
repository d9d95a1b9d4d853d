#pragma once
#include <cstddef>
#include <functional>
#include <iosfwd>

#include "poplar/DebugContext.hpp"
#include "poplar/Executable.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Preallocations.hpp"
#include "poplar/Program.hpp"

namespace poplar {

/// A graph compiled with one program, which can be kept in a file. In the SDK it also holds the
/// memory contents of each tile; the model has none.
class Module {
 public:
  Module() = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Writes the same bytes as Executable::serialize.
  void serialize(std::ostream& out) const { executable_.serialize(out); }
  /// Reads what `serialize` wrote.
  static Module deserialize(std::istream& in);
  /// Segments of tile memory. Always throw poplar_error: the model has no tile code.
  using SegmentFunc =
      std::function<void(std::size_t tile, std::size_t address, std::size_t fileSize,
                         std::size_t memorySize, const char* data)>;
  void forEachSegment(SegmentFunc f) const;
  using LoadableSegmentFunc = std::function<void(std::size_t tile, std::size_t address,
                                                 std::size_t size, const char* data)>;
  void forEachLoadableSegment(LoadableSegmentFunc f) const;

  /// For the library, and for an Engine that runs the program as number 0.
  explicit Module(Executable executable) : executable_(std::move(executable)) {}
  const Executable& executable() const { return executable_; }

 private:
  Executable executable_;
};

/// Compiles a graph with one program; options as for compileGraph.
Module compileModule(const Graph& graph, program::Program prog, const OptionFlags& opt = {},
                     ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});
Module compileModule(const Graph& graph, program::Program prog,
                     const Preallocations& preallocations, const OptionFlags& opt = {},
                     ProgressFunc progressCallBack = {}, const DebugContext& debugContext = {});

}  // namespace poplar
