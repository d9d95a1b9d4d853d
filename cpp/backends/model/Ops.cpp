#include <utility>

#include "backends/model/Program.hpp"

namespace ipujax::model {
namespace {

/// The steps of a program in order on the model's clock. A loop is one event that contains the
/// steps of its first iteration; of several branches, only the longest is listed. Steps of several
/// IPUs follow each other, although the IPUs run in parallel.
class OpTimes {
 public:
  explicit OpTimes(const engine::Image& image) : image_(image) {
    if (!image.nodes.empty()) walk(0);
  }
  std::vector<runtime::OpTime> take() { return std::move(ops_); }

 private:
  std::int64_t picoseconds(double cycles) const {
    return static_cast<std::int64_t>(cycles / image_.clock_hz * 1e12);
  }

  void walk(std::uint32_t index) {
    const engine::Node& node = image_.nodes[index];
    switch (node.kind) {
      case engine::NodeKind::kStep:
        return add(image_.steps[node.value]);
      case engine::NodeKind::kRepeat:
        return loop(node, static_cast<double>(node.value));
      case engine::NodeKind::kRepeatWhile:
        return loop(node, static_cast<double>(image_.assumed_trip_count));
      case engine::NodeKind::kIf:
      case engine::NodeKind::kSwitch:
        return longestOf(node);
      default:
        for (const auto child : node.children) walk(child);
    }
  }

  void add(const engine::StepDesc& step) {
    const double cycles = step.cost.cycles();
    if (cycles == 0) return;
    const engine::DebugEntry& debug = image_.debug[step.debug];
    const std::string_view name = debug.name.empty() ? step.kernel : debug.name;
    const std::string_view source = debug.source;
    const std::string_view line = source.substr(0, source.find('\n'));
    ops_.push_back({name, line, picoseconds(now_), picoseconds(cycles), cycles});
    now_ += cycles;
  }

  void loop(const engine::Node& node, double count) {
    const double begin = now_;
    const std::size_t at = ops_.size();
    ops_.push_back({"loop", {}, picoseconds(begin), 0, 0});
    for (const auto child : node.children) walk(child);
    now_ = begin + count * (now_ - begin);
    ops_[at].cycles = now_ - begin;
    ops_[at].picoseconds = picoseconds(now_ - begin);
    if (now_ == begin) ops_.resize(at);
  }

  void longestOf(const engine::Node& node) {
    const double begin = now_;
    const std::size_t at = ops_.size();
    std::vector<runtime::OpTime> longest;
    double end = begin;
    for (const auto child : node.children) {
      walk(child);
      if (now_ > end) {
        longest.assign(ops_.begin() + static_cast<std::ptrdiff_t>(at), ops_.end());
        end = now_;
      }
      ops_.resize(at);
      now_ = begin;
    }
    ops_.insert(ops_.end(), longest.begin(), longest.end());
    now_ = end;
  }

  const engine::Image& image_;
  double now_ = 0;
  std::vector<runtime::OpTime> ops_;
};

}  // namespace

std::vector<runtime::OpTime> opsOf(const engine::Image& image) { return OpTimes(image).take(); }

}  // namespace ipujax::model
