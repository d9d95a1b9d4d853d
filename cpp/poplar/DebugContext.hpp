#pragma once
#include "engine/graph/DebugContext.hpp"
#include "poplar/StringRef.hpp"

namespace poplar {

using ipujax::engine::DebugContext;

}  // namespace poplar
