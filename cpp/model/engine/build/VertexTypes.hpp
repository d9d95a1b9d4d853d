#pragma once
#include <string>
#include <vector>

#include "engine/image/Step.hpp"

namespace ipujax::engine::build {

/// Attribute of an elementwise step whose vertex is generated though it does only one operation.
constexpr const char* kGenerated = "generated";

/// The vertices of one type in a step: one on each tile that has some of the operands.
struct VertexType {
  std::string name;
  std::vector<std::uint32_t> operands;
};

/// The vertices of a library function's step. They have PopLibs' names if the model has the same
/// vertices, else the kernel's. None if tiles do not compute. `syncs` are those of the step's
/// compute sets and exchanges.
std::vector<VertexType> vertexTypes(const StepDesc& step, double syncs);

}  // namespace ipujax::engine::build
