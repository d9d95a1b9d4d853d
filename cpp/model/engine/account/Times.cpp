#include "engine/account/Times.hpp"

#include <utility>

#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {
namespace {

class Counter {
 public:
  explicit Counter(const Image& image) : image_(image), times_(image.nodes.size()) {}

  std::vector<double> run() {
    count(0, 1);
    return std::move(times_);
  }

 private:
  void count(std::uint32_t index, double times) {
    const Node& node = image_.nodes[index];
    times_[index] = times;
    switch (node.kind) {
      case NodeKind::kRepeat:
        return countAll(node, times * static_cast<double>(node.value));
      case NodeKind::kRepeatWhile: {  // the condition is computed once more than the body
        const auto trips = static_cast<double>(image_.assumed_trip_count);
        count(node.children[0], times * (trips + 1));
        return count(node.children[1], times * trips);
      }
      case NodeKind::kIf:
      case NodeKind::kSwitch:
        return countDearest(node, times);
      default:
        return countAll(node, times);
    }
  }

  void countAll(const Node& node, double times) {
    for (const auto child : node.children) count(child, times);
  }

  void countDearest(const Node& node, double times) {
    double most = 0;
    std::int64_t dearest = -1;
    for (const auto child : node.children) {
      const double cycles = image_.costOf(child).cycles();
      if (cycles <= most) continue;
      most = cycles;
      dearest = child;
    }
    if (dearest >= 0) count(static_cast<std::uint32_t>(dearest), times);
  }

  const Image& image_;
  std::vector<double> times_;
};

}  // namespace

std::vector<double> timesRun(const Image& image) { return Counter(image).run(); }

CollectiveAccount collectivesOf(const Image& image) {
  CollectiveAccount total;
  if (image.signature.num_replicas < 2) return total;
  const std::vector<double> times = timesRun(image);
  for (std::size_t i = 0; i < image.nodes.size(); ++i) {
    const Node& node = image.nodes[i];
    if (node.kind != NodeKind::kStep) continue;
    const StepDesc& step = image.steps[node.value];
    if (roleOf(step) != KernelRole::kCollective) continue;
    total.cycles += times[i] * step.cost.cycles();
    total.link_bytes += times[i] * step.cost.link_bytes;
  }
  return total;
}

}  // namespace ipujax::engine
