#pragma once
#include "engine/Reducer.hpp"

namespace popops {

/// How a reduction combines two values; the engine's reducers by PopLibs' names.
enum class Operation {
  ADD = static_cast<int>(ipujax::engine::reduction::Reducer::kAdd),
  MUL = static_cast<int>(ipujax::engine::reduction::Reducer::kMultiply),
  MIN = static_cast<int>(ipujax::engine::reduction::Reducer::kMinimum),
  MAX = static_cast<int>(ipujax::engine::reduction::Reducer::kMaximum),
  LOGICAL_AND = static_cast<int>(ipujax::engine::reduction::Reducer::kAnd),  ///< BOOL only
  LOGICAL_OR = static_cast<int>(ipujax::engine::reduction::Reducer::kOr),    ///< BOOL only
  SQUARE_ADD = static_cast<int>(ipujax::engine::reduction::Reducer::kSquareAdd),
  LOG_ADD = static_cast<int>(ipujax::engine::reduction::Reducer::kLogAdd),  ///< without overflow
};

}  // namespace popops
