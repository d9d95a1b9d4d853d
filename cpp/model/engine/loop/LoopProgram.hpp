#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/loop/LoopBody.hpp"

namespace ipujax::engine::loop {

/// Some iterations of a loop as one expression. Inputs of both programs: the cells, then the
/// rows that are loaded. Iterations of a while loop are valid only if all of them should
/// run.
struct LoopProgram {
  /// A row that is loaded before the iterations or stored after them.
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

/// `iterations` of the loop; none if the contents of rows choose other rows.
std::optional<LoopProgram> composeIterations(const LoopBody& loop, std::uint64_t iterations);
/// The condition alone, for the end of a while loop.
LoopProgram composeCondition(const LoopBody& loop);

}  // namespace ipujax::engine::loop
