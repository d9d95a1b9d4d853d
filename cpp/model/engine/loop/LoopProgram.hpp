#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/loop/LoopBody.hpp"

namespace ipujax::engine::loop {

/// Some iterations of a loop as one expression. Inputs of both programs: the cells, then the
/// rows that are loaded. Iterations of a while loop hold only if all of them were to be
/// made.
struct LoopProgram {
  /// A row that is moved before (loaded) or after (stored) the iterations.
  struct Row {
    const Action* action = nullptr;
    std::uint32_t index = 0;  ///< an output of `indices`
  };

  /// Outputs: the cells that are written, in order; whether to go on (of a while loop); then the
  /// rows that are stored.
  expr::ExprProgram main;
  expr::ExprProgram indices;  ///< one element each
  bool asks = false;
  std::vector<Row> loads;
  std::vector<Row> stores;
};

/// `iterations` of the loop; none where rows are chosen by what other rows hold.
std::optional<LoopProgram> composeIterations(const LoopBody& loop, std::uint64_t iterations);
/// The condition alone, as a while loop's last act.
LoopProgram composeCondition(const LoopBody& loop);

}  // namespace ipujax::engine::loop
