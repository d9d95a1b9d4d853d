#include "engine/loop/LoopProgram.hpp"

#include <algorithm>

namespace ipujax::engine::loop {
namespace {

using expr::ExprBuilder;
using expr::ExprProgram;
using expr::Op;
using Values = std::vector<std::int32_t>;

/// Follows the value of every cell through the steps; lives for one composition.
class Composer {
 public:
  Composer(const LoopBody& loop, std::uint64_t iterations)
      : loop_(loop), builder_(inputTypes(loop, iterations)) {
    for (std::size_t c = 0; c < loop.cells.size(); ++c) values_.push_back(builder_.input(c));
  }

  void apply(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      switch (action.kind) {
        case Action::Kind::kMap:
          map(action);
          break;
        case Action::Kind::kCopy:
          values_[action.cells[1]] = values_[action.cells[0]];
          break;
        case Action::Kind::kLoadRow:
          result_.loads.push_back({&action, indexOf(action)});
          values_[action.row()] = nextLoaded();
          break;
        case Action::Kind::kStoreRow:
          store(action);
          break;
      }
    }
  }

  /// Requires the predicate to hold, in addition to all earlier ones.
  void ask() {
    std::int32_t go = values_[static_cast<std::size_t>(loop_.predicate)];
    if (!loop_.repeats_while) go = builder_.apply(Op::kLogicalNot, {go});
    go_ = go_ < 0 ? go : builder_.apply(Op::kLogicalAnd, {go_, go});
  }

  LoopProgram finish() {
    result_.asks = go_ >= 0;
    for (std::size_t c = 0; c < loop_.cells.size(); ++c)
      if (loop_.cells[c].written) builder_.output(values_[c]);
    if (go_ >= 0) builder_.output(go_);
    for (const auto v : stored_) builder_.output(v);
    result_.main = builder_.build();
    return std::move(result_);
  }

  /// The program of the indices, from a second composer that applied the same actions.
  ExprProgram indices() {
    for (const auto v : indices_) builder_.output(v);
    return builder_.build();
  }

 private:
  static std::vector<ElementType> inputTypes(const LoopBody& loop, std::uint64_t iterations) {
    std::vector<ElementType> types;
    for (const Cell& cell : loop.cells) types.push_back(cell.type);
    for (std::uint64_t i = 0; i < iterations; ++i)
      for (const Action& action : loop.body)
        if (action.loads()) types.push_back(loop.cells[action.row()].type);
    return types;
  }

  std::int32_t nextLoaded() { return builder_.input(loop_.cells.size() + num_loaded_++); }

  void map(const Action& action) {
    const ExprProgram& program = action.program;
    Values values(program.numInputs() + program.instructions().size());
    for (std::size_t i = 0; i < program.numInputs(); ++i) values[i] = values_[action.cells[i]];
    for (std::size_t k = 0; k < program.instructions().size(); ++k) {
      expr::Instruction instruction = program.instructions()[k];
      for (auto& a : instruction.args)
        if (a >= 0) a = values[static_cast<std::size_t>(a)];
      values[program.numInputs() + k] = builder_.again(instruction);
    }
    for (std::size_t j = 0; j < program.numOutputs(); ++j)
      values_[action.cells[program.numInputs() + j]] =
          values[static_cast<std::size_t>(program.outputs()[j])];
  }

  void store(const Action& action) {
    result_.stores.push_back({&action, indexOf(action)});
    std::int32_t v = values_[action.row()];
    if (action.combiner) {
      result_.loads.push_back(result_.stores.back());
      v = builder_.apply(*action.combiner, {nextLoaded(), v});
    }
    stored_.push_back(v);
  }

  std::uint32_t indexOf(const Action& action) {
    auto found = std::ranges::find(indices_, values_[action.index()]);
    if (found == indices_.end()) found = indices_.insert(found, values_[action.index()]);
    return static_cast<std::uint32_t>(found - indices_.begin());
  }

  const LoopBody& loop_;
  ExprBuilder builder_;
  Values values_;  ///< by cell
  Values indices_;
  Values stored_;
  std::int32_t go_ = -1;
  std::size_t num_loaded_ = 0;
  LoopProgram result_;
};

void applyIterations(Composer& composer, const LoopBody& loop, std::uint64_t iterations) {
  for (std::uint64_t i = 0; i < iterations; ++i) {
    composer.apply(loop.condition);
    if (loop.predicate >= 0) composer.ask();
    composer.apply(loop.body);
  }
}

}  // namespace

std::optional<LoopProgram> composeIterations(const LoopBody& loop, std::uint64_t iterations) {
  Composer composer(loop, iterations);
  applyIterations(composer, loop, iterations);
  LoopProgram program = composer.finish();
  if (program.loads.empty() && program.stores.empty()) return program;
  Composer again(loop, iterations);
  applyIterations(again, loop, iterations);
  program.indices = again.indices();
  for (std::size_t i = loop.cells.size(); i < program.indices.numInputs(); ++i)
    if (program.indices.usesInput(i)) return std::nullopt;
  return program;
}

LoopProgram composeCondition(const LoopBody& loop) {
  Composer composer(loop, 0);
  composer.apply(loop.condition);
  return composer.finish();
}

}  // namespace ipujax::engine::loop
