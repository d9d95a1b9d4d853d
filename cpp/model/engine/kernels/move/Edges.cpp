#include "engine/kernels/move/Edges.hpp"

#include <cstring>

#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {
namespace {

constexpr std::size_t kFields = 4;  ///< integers of a run

std::unique_ptr<Kernel> makeEdges(const StepDesc& step) {
  const auto bytes = static_cast<std::int64_t>(sizeOf(step.operands[0].type));
  return kernelOf([runs = step.attributes.integers(kEdgeRuns), bytes,
                   scatters = step.attributes.integer(kScatters) != 0](
                      RunContext&, std::span<std::byte* const> p) {
    for (std::size_t i = 0; i < runs.size(); i += kFields) {
      std::byte* const element = p[static_cast<std::size_t>(runs[i])] + runs[i + 1] * bytes;
      std::byte* const gathered = p[0] + runs[i + 2] * bytes;
      const auto length = static_cast<std::size_t>(runs[i + 3] * bytes);
      std::memcpy(scatters ? element : gathered, scatters ? gathered : element, length);
    }
  });
}

void checkEdges(StepCheck& check) {
  const bool scatters = check.integer(kScatters, 0, 1) != 0;
  const auto gathered = (scatters ? check.read(0) : check.written(0)).isContiguous();
  std::vector<std::int64_t> elements{gathered->numElements()};
  for (std::size_t i = 1; i < check.numOperands(); ++i) {
    const auto operand = (scatters ? check.updated(i) : check.read(i)).hasTypeOf(gathered);
    elements.push_back(operand.isContiguous()->numElements());
  }
  const auto& runs = check.integers(kEdgeRuns);
  const auto fits = [](std::int64_t begin, std::int64_t length, std::int64_t all) {
    return begin >= 0 && length >= 0 && length <= all && begin <= all - length;
  };
  bool good = runs.size() % kFields == 0;
  for (std::size_t i = 0; good && i < runs.size(); i += kFields) {
    good = runs[i] > 0 && runs[i] < static_cast<std::int64_t>(elements.size()) &&
           fits(runs[i + 1], runs[i + 3], elements[static_cast<std::size_t>(runs[i])]) &&
           fits(runs[i + 2], runs[i + 3], elements[0]);
  }
  check.need(good, "runs within its operands");
}

const RegisterKernel kKernel{kEdges, makeEdges, checkEdges};

}  // namespace
}  // namespace ipujax::engine
