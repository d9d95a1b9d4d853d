#pragma once
#include <string>
#include <vector>

#include "engine/image/Step.hpp"

namespace ipujax::engine::build {

/// The attribute of an elementwise step whose vertex is generated though it does one operation.
constexpr const char* kGenerated = "generated";

/// The vertices of one type in a step: one on each tile that has some of the operands.
struct VertexType {
  std::string name;
  std::vector<std::uint32_t> operands;
};

/// The vertices of a step that a function of a library made, by the names that PopLibs gives them
/// where the model has the same, else by the kernel's. None where tiles do not compute. `syncs` are
/// those of its compute sets and exchanges.
std::vector<VertexType> vertexTypes(const StepDesc& step, double syncs);

}  // namespace ipujax::engine::build
