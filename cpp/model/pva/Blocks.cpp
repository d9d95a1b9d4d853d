#include <algorithm>
#include <regex>
#include <string>

#include "pva/internal/Data.hpp"
#include "pva/pva.hpp"

namespace pva {
namespace {

using ipujax::engine::Node;
using ipujax::engine::NodeKind;

constexpr std::size_t kMostBlocks = std::size_t{1} << 20;
constexpr std::size_t kLongestName = 1000;

const std::string& optionOf(const Data& data, const char* name) {
  static const std::string none;
  const auto found = data.options.find(name);
  return found == data.options.end() ? none : found->second;
}

/// Walks the programs that ran, each as often as it ran.
class BlockCollector {
 public:
  BlockCollector(DataPtr data, std::size_t tile)
      : data_(std::move(data)),
        tile_(tile),
        blocks_filter_(optionOf(*data_, "profiler.blocks.filter")),
        programs_filter_(optionOf(*data_, "profiler.programs.filter")),
        instruments_streams_(optionOf(*data_, "debug.instrumentExternalExchange") == "true") {
    const std::size_t ipus = std::max<std::size_t>(1, data_->image->ipus.size());
    const std::string& profiled = optionOf(*data_, "profiler.blocks.tile");
    is_profiled_ = std::to_string(tile % (data_->image->num_tiles / ipus)) ==
                   (profiled.empty() ? "0" : profiled);
    told_.resize(data_->image->nodes.size());
  }

  std::vector<Block> collect() {
    for (const auto& run : data_->runs) {
      run_ = &run;
      if (const auto root = data_->programOf(run.entry)) walk(*root);
    }
    if (overflows_) add(programOf(data_, 0), overflow_from_, now_, Block::Kind::Overflow);
    return std::move(blocks_);
  }

 private:
  enum class Told : std::uint8_t { kUnknown, kNo, kYes };

  /// Ignores longer names: the library's matcher recurses at each letter.
  static bool matches(const std::regex& filter, const std::string& name) {
    return !name.empty() && name.size() <= kLongestName && std::regex_match(name, filter);
  }

  /// Whether the node itself is a block.
  bool isBlock(std::uint32_t id) const {
    const Node& node = data_->image->nodes[id];
    if (!is_profiled_ || node.kind > NodeKind::kStep || !data_->takesPart(id, tile_)) return false;
    return matches(node.kind == NodeKind::kStep ? programs_filter_ : blocks_filter_,
                   programOf(data_, id)->name());
  }

  bool isStreamCopy(std::uint32_t id) const {
    return instruments_streams_ && data_->image->nodes[id].kind == NodeKind::kStep &&
           programOf(data_, id)->type() == Program::Type::StreamCopyMid &&
           data_->takesPart(id, tile_);
  }

  /// Whether there is a block at or below the node.
  bool hasBlocks(std::uint32_t id) {
    if (told_[id] == Told::kUnknown) {
      const bool told = isBlock(id) || isStreamCopy(id) ||
                        std::ranges::any_of(data_->image->nodes[id].children,
                                            [&](std::uint32_t child) { return hasBlocks(child); });
      told_[id] = told ? Told::kYes : Told::kNo;
    }
    return told_[id] == Told::kYes;
  }

  void add(ProgramPtr program, std::uint64_t from, std::uint64_t to, Block::Kind kind) {
    blocks_.emplace_back(std::move(program), tile_, from, to, kind);
  }

  double cyclesOf(std::uint32_t id) const {
    return costOf(*data_->image, id, run_->trips).cycles();
  }
  void skip(std::uint32_t id) { now_ += rounded(cyclesOf(id)); }

  void walk(std::uint32_t id) {
    if (!hasBlocks(id)) return skip(id);
    if (blocks_.size() >= kMostBlocks) {
      if (!overflows_) overflow_from_ = now_;
      overflows_ = true;
      return skip(id);
    }
    if (isStreamCopy(id)) return addStreamCopy(id);
    const bool is_block = isBlock(id);
    const std::size_t at = blocks_.size();
    const std::uint64_t from = now_;
    if (is_block) add(programOf(data_, id), from, from, Block::Kind::Common);
    walkChildren(id);
    if (is_block) blocks_[at] = {programOf(data_, id), tile_, from, now_, Block::Kind::Common};
  }

  void walkChildren(std::uint32_t id) {
    const Node& node = data_->image->nodes[id];
    if (node.kind == NodeKind::kStep) return skip(id);
    if (node.kind == NodeKind::kIf || node.kind == NodeKind::kSwitch) {
      return walk(*std::ranges::max_element(node.children, {},
                                            [&](auto child) { return cyclesOf(child); }));
    }
    if (node.kind == NodeKind::kRepeatWhile) {  // the condition is computed once more
      const std::uint64_t trips = rounded(data_->tripsOf(*run_, id));
      walk(node.children[0]);
      return repeat(trips, {node.children[1], node.children[0]});
    }
    repeat(node.kind == NodeKind::kRepeat ? node.value : 1, node.children);
  }

  void repeat(std::uint64_t times, const std::vector<std::uint32_t>& children) {
    for (std::uint64_t i = 0; i < times; ++i) {
      for (const auto child : children) walk(child);
      if (!overflows_) continue;  // otherwise later iterations add no blocks
      for (const auto child : children)
        now_ += rounded(static_cast<double>(times - i - 1) * cyclesOf(child));
      return;
    }
  }

  /// Adds the wait for the host, the transfer, and the end, which takes no time of its own.
  void addStreamCopy(std::uint32_t id) {
    const auto& cost = data_->image->steps[data_->image->nodes[id].value].cost;
    const std::uint64_t begin = now_;
    const std::uint64_t middle = begin + rounded(cost.sync_cycles);
    skip(id);
    add(std::make_shared<StreamCopyBeginProgram>(data_, id), begin, middle,
        Block::Kind::StreamCopy);
    add(programOf(data_, id), middle, now_, Block::Kind::StreamCopy);
    add(std::make_shared<StreamCopyEndProgram>(data_, id), now_, now_, Block::Kind::StreamCopy);
  }

  DataPtr data_;
  const Data::Run* run_ = nullptr;  ///< the run being walked
  std::size_t tile_;
  std::regex blocks_filter_, programs_filter_;
  bool instruments_streams_, is_profiled_;
  std::vector<Told> told_;  ///< by node
  std::vector<Block> blocks_;
  std::uint64_t now_ = 0;
  std::uint64_t overflow_from_ = 0;
  bool overflows_ = false;
};

}  // namespace

std::vector<Block> Execution::blocks(std::size_t tile) const {
  if (data_->options.contains("profiler.blocks.filter") ||
      data_->options.contains("profiler.programs.filter"))
    return BlockCollector(data_, tile).collect();
  std::vector<Block> blocks;
  for (const auto& step : steps()) {
    if (!data_->takesPart(static_cast<std::uint32_t>(step.program()->_id()), tile)) continue;
    const auto active = step.ipus()[0].activeCycles();
    const bool streams = step.program()->type() == Program::Type::StreamCopyMid;
    blocks.emplace_back(step.program(), tile, active.cyclesFrom().max(), active.cyclesTo().max(),
                        streams ? Block::Kind::StreamCopy : Block::Kind::Common);
  }
  return blocks;
}

}  // namespace pva
