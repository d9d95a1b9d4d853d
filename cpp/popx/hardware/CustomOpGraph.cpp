#include "popx/CustomOpGraph.hpp"

#include <mutex>

#include "popx/SdkFolder.hpp"

namespace popx::custom_op {

/// The SDK's libraries are this process's own, but only what the extension needs was loaded, for
/// itself alone.
void showPoplar() {
  static std::once_flag once;
  std::call_once(once, &showSdkLibraries);
}

void guarded(const std::string& /*function*/, const std::function<void()>& call) { call(); }

void construct(void* /*library*/) {}

/// Poplar knows it where it is asked about the tensor.
bool isOf(const poplar::Graph& graph, const poplar::Tensor& t) {
  try {
    graph.getTileMapping(t, nullptr);
    return true;
  } catch (const poplar::poplar_error&) {
    return false;
  }
}

/// Poplar does not say what a program writes: the metadata is believed, as TensorFlow does.
void checkWritten(const std::string& /*function*/, const poplar::program::Program& /*program*/,
                  const std::vector<poplar::Tensor>& /*kept*/) {}

/// Programs are Poplar's once they are made. Functions get the op's name as their prefix.
void addPlace(const poplar::program::Program& /*program*/, const poplar::DebugContext& /*debug*/) {}

}  // namespace popx::custom_op
