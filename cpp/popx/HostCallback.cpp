#include "popx/HostCallback.hpp"

#include <memory>
#include <sstream>

#include "engine/Emit.hpp"
#include "engine/HostCallbacks.hpp"
#include "engine/Image.hpp"
#include "engine/Kernel.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/Type.hpp"

namespace popx {
namespace {

using ipujax::engine::Access;
using ipujax::engine::Cost;
using ipujax::engine::HostArray;
using ipujax::engine::Kernel;
using ipujax::engine::RunContext;
using ipujax::engine::StepDesc;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

/// Attributes: "id"; "dtypes": of all operands, by commas; "num_results": the last so many
/// operands.
class CallbackKernel final : public Kernel {
 public:
  explicit CallbackKernel(const StepDesc& step)
      : id_(step.attributes.text("id")),
        dtypes_(split(step.attributes.text("dtypes"))),
        num_results_(static_cast<std::size_t>(step.attributes.integer("num_results"))) {
    for (const auto& operand : step.operands) shapes_.push_back(operand.shape);
  }

  bool callsHost() const override { return true; }
  void run(RunContext& context, std::span<std::byte* const> p) const override {
    if (!context.callbacks) {
      throw poplar::runtime_error(
          "[popx.host_callback] needs a host that takes callbacks; got none for '" + id_ +
          "'. Run this program through JAX.");
    }
    std::vector<HostArray> arrays;
    for (std::size_t i = 0; i < p.size(); ++i) arrays.push_back({dtypes_[i], shapes_[i], p[i]});
    const std::span<const HostArray> all(arrays);
    context.callbacks->call(id_, all.first(arrays.size() - num_results_), all.last(num_results_));
  }

 private:
  std::string id_;
  std::vector<std::string> dtypes_;
  std::size_t num_results_;
  std::vector<std::vector<std::int64_t>> shapes_;
};

std::unique_ptr<Kernel> makeCallback(const StepDesc& step) {
  return std::make_unique<CallbackKernel>(step);
}

void checkCallback(ipujax::engine::StepCheck& check) {
  check.text("id");
  const auto dtypes = split(check.text("dtypes"));
  const std::size_t n = check.numOperands();
  check.need(dtypes.size() == n, "one dtype per operand");
  check.need(check.image().signature.has_host_callbacks, "a program with callbacks");
  const auto results =
      static_cast<std::size_t>(check.integer("num_results", 0, static_cast<std::int64_t>(n)));
  for (std::size_t i = 0; i < n; ++i) {
    const auto operand = i < n - results ? check.read(i) : check.written(i);
    operand.isContiguous().isOf(typeOfDtype(dtypes[i]).element());
  }
}

const ipujax::engine::RegisterKernel kCallback{"popx.host_callback", makeCallback, checkCallback};

std::uint64_t bytesOf(const poplar::Graph& graph, const poplar::Tensor& t) {
  return t.numElements() * graph.getTarget().getTypeSize(t.elementType());
}

}  // namespace

poplar::Type typeOfDtype(const std::string& dtype) {
  static const std::pair<const char*, poplar::Type> kTypes[] = {
      {"bool", poplar::BOOL},
      {"int8", poplar::SIGNED_CHAR},
      {"uint8", poplar::UNSIGNED_CHAR},
      {"int16", poplar::SHORT},
      {"uint16", poplar::UNSIGNED_SHORT},
      {"int32", poplar::INT},
      {"uint32", poplar::UNSIGNED_INT},
      {"int64", poplar::LONGLONG},
      {"uint64", poplar::UNSIGNED_LONGLONG},
      {"float16", poplar::HALF},
      {"bfloat16", poplar::UNSIGNED_SHORT},
      {"float32", poplar::FLOAT},
      {"float64", popx::DOUBLE}};
  for (const auto& [name, type] : kTypes) {
    if (dtype == name) return type;
  }
  throw poplar::poplar_error("[popx.host_callback] needs a dtype the device holds; got '" + dtype +
                             "'. Convert in the callback.");
}

std::vector<poplar::Tensor> hostCallback(poplar::Graph& graph, const std::string& id,
                                         const std::vector<poplar::Tensor>& operands,
                                         const std::vector<std::string>& dtypes,
                                         const std::vector<CallbackResult>& results,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext) {
  if (dtypes.size() != operands.size()) {
    throw poplar::poplar_error("[popx.host_callback] needs one dtype per operand; got " +
                               std::to_string(operands.size()) + " operands and " +
                               std::to_string(dtypes.size()) + " dtypes.");
  }
  ipujax::engine::StepSpec step;
  step.kernel = "popx.host_callback";
  std::string names;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (typeOfDtype(dtypes[i]) != operands[i].elementType()) {
      throw poplar::poplar_error("[popx.host_callback] needs operands of their dtype; got " +
                                 operands[i].elementType().toString() + " for " + dtypes[i] + ".");
    }
    step.operands.push_back({operands[i], Access::kRead, true});
    names += dtypes[i] + ",";
    bytes += bytesOf(graph, operands[i]);
  }
  std::vector<poplar::Tensor> outputs;
  for (const auto& result : results) {
    outputs.push_back(graph.addVariable(typeOfDtype(result.dtype), result.shape, debugContext));
    poputil::mapTensorLinearly(graph, outputs.back());
    step.operands.push_back({outputs.back(), Access::kWrite, true});
    names += result.dtype + ",";
    bytes += bytesOf(graph, outputs.back());
  }
  step.attributes.set("id", id).set("dtypes", names);
  step.attributes.set("num_results", static_cast<std::int64_t>(results.size()));
  // Two host syncs, and the bytes each way.
  const auto& target = graph.getTarget();
  step.cost.sync_cycles = 2.0 * target.getGlobalSyncCycles();
  step.cost.exchange_cycles = static_cast<double>(bytes) * target.getTileClockFrequency() /
                              target.machine().host_bytes_per_second;
  step.cost.exchange_bytes = static_cast<double>(bytes);
  ipujax::engine::emit(graph, prog, std::move(step), debugContext);
  return outputs;
}

}  // namespace popx
