#pragma once
#include <string>

#include "engine/Machine.hpp"

namespace poplar {

using ipujax::engine::TargetType;

/// "IPU", "IPU_MODEL" or "CPU".
inline std::string toString(TargetType type) {
  return type == TargetType::IPU ? "IPU" : type == TargetType::CPU ? "CPU" : "IPU_MODEL";
}

}  // namespace poplar
