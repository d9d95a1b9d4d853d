#include "engine/code/StripPlacement.hpp"

#include <algorithm>
#include <functional>

namespace ipujax::engine::code {

bool isComparison(StripOp o) {
  return (o >= StripOp::kEqual && o <= StripOp::kUnordered) ||
         (o >= StripOp::kEqualInt && o <= StripOp::kLessUInt);
}

StripPlacement::StripPlacement(const StripProgram& program, bool wide, unsigned most_copies)
    : program_(program), wide_(wide), home_(program.size()), copies_(most_copies) {
  findOperands();
  chooseCopies();
  placeUniforms();
  placeOthers();
}

bool StripPlacement::isInFrame(std::size_t v, std::size_t i) const {
  if (home_[v].frame == kNowhere) return false;
  if (home_[v].reg == kNowhere) return true;
  for (std::size_t j = v; j <= i; ++j)
    if (std::ranges::find(spills_[j], v) != spills_[j].end()) return true;
  return false;
}

/// The values that each step reads: a select that does a comparison reads its operands.
void StripPlacement::findOperands() {
  uses_.assign(program_.size(), 0);
  for (const StripStep& step : program_)
    for (const auto a : step.args)
      if (a >= 0) ++uses_[static_cast<std::size_t>(a)];
  operands_.resize(program_.size());
  is_fused_.assign(program_.size(), false);
  last_use_.assign(program_.size(), 0);
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const StripStep& step = program_[i];
    const auto first = static_cast<std::size_t>(std::max<std::int16_t>(step.args[0], 0));
    const bool fuses = wide_ && step.op == StripOp::kSelect && uses_[first] == 1 &&
                       isComparison(program_[first].op);
    if (fuses) is_fused_[first] = true;
    for (const auto a : fuses ? program_[first].args : StripStep{}.args)
      if (a >= 0) operands_[i].push_back(static_cast<std::size_t>(a));
    for (std::size_t arg = fuses ? 1 : 0; arg < 3; ++arg)
      if (step.args[arg] >= 0) operands_[i].push_back(static_cast<std::size_t>(step.args[arg]));
  }
  for (std::size_t i = 0; i < program_.size(); ++i) {
    if (is_fused_[i]) operands_[i].clear();
    for (const std::size_t v : operands_[i]) last_use_[v] = i;
  }
}

/// As many as the registers hold.
void StripPlacement::chooseCopies() {
  unsigned live = 0, most = 0;
  for (std::size_t i = 0; i < program_.size(); ++i) {
    if (!isVarying(i)) {
      ++num_uniforms_;
      continue;
    }
    if (is_fused_[i]) continue;
    for (const std::size_t a : dying(i)) live -= isVarying(a) ? 1 : 0;
    live += givesValue(i) && last_use_[i] > i ? 1 : 0;
    most = std::max(most, live + (givesValue(i) && last_use_[i] <= i ? 1 : 0));
  }
  const unsigned room = numRegisters() - kTemporaries, third = std::min(num_uniforms_, room / 3);
  while (copies_ > 1 && most * copies_ + third > room) copies_ /= 2;
  const unsigned left = room - std::min(room, most * copies_);
  kept_uniforms_ = std::min(num_uniforms_, std::max(left, third));
}

/// The distinct operands that are not used after step i.
std::vector<std::size_t> StripPlacement::dying(std::size_t i) const {
  std::vector<std::size_t> found;
  for (const std::size_t v : operands_[i])
    if (last_use_[v] == i && std::ranges::find(found, v) == found.end()) found.push_back(v);
  return found;
}

/// The most used ones get registers; others lie in the frame as vectors.
void StripPlacement::placeUniforms() {
  std::vector<std::size_t> uniforms;
  for (std::size_t v = 0; v < program_.size(); ++v)
    if (!isVarying(v)) uniforms.push_back(v);
  std::ranges::stable_sort(uniforms, std::greater<>{}, [&](std::size_t v) { return uses_[v]; });
  for (const std::size_t v : uniforms) {
    if (first_ < kTemporaries + kept_uniforms_)
      home_[v].reg = first_++;
    else
      home_[v].frame = num_frame_++;
  }
}

/// A linear scan in which the value that is needed last goes to the frame.
void StripPlacement::placeOthers() {
  spills_.resize(program_.size());
  for (unsigned r = first_; r + copies_ <= numRegisters(); r += copies_) free_.push_back(r);
  std::ranges::reverse(free_);
  for (std::size_t i = 0; i < program_.size(); ++i) {
    if (!isInLoop(i)) continue;
    for (const std::size_t a : dying(i)) {
      if (!isVarying(a) || home_[a].frame != kNowhere) continue;
      free_.push_back(home_[a].reg);
      std::erase(held_, a);
    }
    if (!givesValue(i)) continue;
    if (free_.empty()) spill(i);
    preferOperand(i);
    home_[i].reg = free_.back();
    free_.pop_back();
    if (last_use_[i] > i)
      held_.push_back(i);
    else
      free_.push_back(home_[i].reg);
  }
}

void StripPlacement::spill(std::size_t i) {
  const auto next = [&](std::size_t v) {
    for (std::size_t j = i; j < program_.size(); ++j)
      if (std::ranges::find(operands_[j], v) != operands_[j].end()) return j;
    return program_.size();
  };
  const auto found = std::ranges::max_element(held_, {}, next);
  home_[*found].frame = num_frame_++;
  spills_[i].push_back(*found);
  free_.push_back(home_[*found].reg);
  held_.erase(found);
}

/// Gives step i the register of an operand that ends there and that the instruction overwrites.
void StripPlacement::preferOperand(std::size_t i) {
  const StripStep& step = program_[i];
  const bool may_be_third = step.op == StripOp::kMultiplyAdd && endsAt(step.args[2], i);
  const auto a = step.args[may_be_third && !endsAt(step.args[0], i) ? 2 : 0];
  if (!endsAt(a, i)) return;
  const auto found = std::ranges::find(free_, home_[static_cast<std::size_t>(a)].reg);
  if (found != free_.end()) std::iter_swap(found, free_.end() - 1);
}

}  // namespace ipujax::engine::code
