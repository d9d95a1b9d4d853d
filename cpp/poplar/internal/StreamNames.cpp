#include "poplar/internal/StreamNames.hpp"

#include <algorithm>
#include <cmath>

namespace poplar::internal {

using ipujax::engine::Image;
using ipujax::engine::Node;
using ipujax::engine::NodeKind;

namespace {

constexpr std::string_view kCounter = "cycles:";
constexpr std::string_view kEnd = ":end";

/// Whether a node is the copy from stream `number`.
bool readsStream(const Image& image, std::uint32_t node, std::uint32_t number) {
  const Node& n = image.nodes[node];
  if (n.kind != NodeKind::kStep) return false;
  const auto& step = image.steps[n.value];
  return step.kernel == "engine.stream_in" &&
         step.attributes.integer("stream") == static_cast<std::int64_t>(number);
}

}  // namespace

std::string hostFunctionStream(const std::string& handle, bool is_input,
                               std::optional<std::size_t> index) {
  return "call:" + handle + (is_input ? ":in:" : ":out:") + (index ? std::to_string(*index) : "");
}

std::string cycleCounterStream(std::size_t number, bool is_end) {
  return std::string(kCounter) + std::to_string(number) + (is_end ? ":end" : ":begin");
}

bool isCycleCounterEnd(const std::string& handle) {
  return handle.starts_with(kCounter) && handle.ends_with(kEnd);
}

std::string cycleCounterBegin(const std::string& end_handle) {
  return end_handle.substr(0, end_handle.size() - kEnd.size()) + ":begin";
}

std::uint64_t cyclesBetween(const Image& image, std::uint32_t begin_stream,
                            std::uint32_t end_stream, const ipujax::engine::TripMeans& trips) {
  for (const Node& parent : image.nodes) {
    const auto reads = [&](std::uint32_t stream) {
      return std::ranges::find_if(
          parent.children, [&](std::uint32_t child) { return readsStream(image, child, stream); });
    };
    const auto begin = reads(begin_stream);
    const auto end = reads(end_stream);
    if (begin == parent.children.end() || end < begin || end == parent.children.end()) continue;
    double cycles = 0;
    for (auto child = begin; child != end; ++child) cycles += costOf(image, *child, trips).cycles();
    return static_cast<std::uint64_t>(std::llround(cycles));
  }
  return 0;  // the counter was compiled away
}

}  // namespace poplar::internal
