#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "poplar/Executable.hpp"
#include "poplar/Graph.hpp"

namespace poplar {

/// Loads a compiled graph on a device and runs its programs.
class Engine {
 public:
  explicit Engine(const Graph& graph, const program::Program& prog, const OptionFlags& opt = {});
  Engine(const Graph& graph, ArrayRef<program::Program> progs, const OptionFlags& opt = {});
  explicit Engine(Executable exe, const OptionFlags& opt = {});
  Engine(Engine&&) noexcept;
  ~Engine();

  void load(const Device& device);
  void run(unsigned prog = 0, const std::string& debugName = "");
  void loadAndRun(const Device& device, unsigned prog = 0) {
    load(device);
    run(prog);
  }

  void connectStream(StringRef handle, void* begin);
  void connectStream(StringRef handle, void* begin, void* end);
  void connectStreamToCallback(StringRef handle, std::function<void(void*)> callback);
  void writeTensor(StringRef handle, const void* buf, const void* bufEnd);
  void readTensor(StringRef handle, void* buf, void* bufEnd);
  /// One entry of a remote buffer from and to memory of the host.
  void copyToRemoteBuffer(const void* src, StringRef handle, std::uint64_t repeatIndex,
                          unsigned replicationIndex = 0);
  void copyFromRemoteBuffer(StringRef handle, void* dst, std::uint64_t repeatIndex,
                            unsigned replicationIndex = 0);
  void printProfileSummary(std::ostream& os, const OptionFlags& opt = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace poplar
