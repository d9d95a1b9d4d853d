#include "popx/CustomOpGraph.hpp"

#include <mutex>

#include "popx/SdkFolder.hpp"

namespace popx::custom_op {

/// This process has loaded only those libraries of the SDK that the extension needs, and their
/// symbols are visible only to it.
void showPoplar() {
  static std::once_flag once;
  std::call_once(once, &showSdkLibraries);
}

void guarded(const std::string& /*function*/, const std::function<void()>& call) { call(); }

void construct(void* /*library*/) {}

/// Poplar throws if asked about a tensor of another graph.
bool isOf(const poplar::Graph& graph, const poplar::Tensor& t) {
  try {
    graph.getTileMapping(t, nullptr);
    return true;
  } catch (const poplar::poplar_error&) {
    return false;
  }
}

/// Poplar does not report what a program writes, so the metadata is trusted, as in TensorFlow.
void checkWritten(const std::string& /*function*/, const poplar::program::Program& /*program*/,
                  const std::vector<poplar::Tensor>& /*kept*/) {}

/// Programs cannot be changed once they are made. Functions get the op's name as their prefix.
void addPlace(const poplar::program::Program& /*program*/, const poplar::DebugContext& /*debug*/) {}

}  // namespace popx::custom_op
