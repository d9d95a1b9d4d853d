#include "poplin/internal/Candidate.hpp"

/// The memory elements that a candidate's vertices need, by the constraints of poplin's codelets
/// (poplibs lib/poplin/codelets): ConvPartialnx1, ConvPartial1xNSLIC, ConvPartialHorizontalMac,
/// ConvPartialVerticalMac, OuterProduct.
namespace poplin::plan {
namespace {

using ipujax::engine::VertexMemory;

constexpr std::uint16_t both(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::uint16_t>(a | b);
}

}  // namespace

VertexMemory Model::vertexMemoryOf(const Candidate& c, const Temporary& t) const {
  const bool input_moves = p_.in_moved || transform_.swapped;
  const bool weights_move = p_.weights_moved || transform_.swapped;
  const std::uint16_t input_before =
      input_moves ? VertexMemory::kInputRearranged : VertexMemory::operand(0);
  const std::uint16_t input = transform_.expanded && !input_moves
                                  ? VertexMemory::kInputReceived
                                  : both(input_before, VertexMemory::kInputReceived);
  const std::uint16_t weights =
      both(weights_move ? VertexMemory::kWeightsRearranged : VertexMemory::operand(1),
           VertexMemory::kWeightsReceived);
  const std::uint16_t sums = writesResult(c) ? VertexMemory::operand(2) : VertexMemory::kSums;
  VertexMemory memory;
  memory.weights_rearranged_bytes = static_cast<std::uint64_t>(t.weights_rearranged);
  memory.weights_received_bytes = static_cast<std::uint64_t>(t.weights_received);
  switch (c.grains.vertex) {
    case Vertex::kAmp:
      memory.interleaved = p_.wide_weight_load ? both(sums, weights) : sums;
      memory.first = input;
      memory.second = sums;
      break;
    case Vertex::kSlic:
      memory.interleaved = sums;
      memory.first = input;
      memory.second = sums;
      break;
    case Vertex::kHorizontalMac:
    case Vertex::kVerticalMac:
      memory.first = input;
      memory.second = weights;
      break;
    case Vertex::kOuterProduct:
      memory.first = weights;
      memory.second = sums;
      break;
    case Vertex::kInteger:
      break;
  }
  return memory;
}

}  // namespace poplin::plan
