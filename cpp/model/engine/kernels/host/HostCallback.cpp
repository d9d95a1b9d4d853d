#include "engine/kernels/host/HostCallback.hpp"

#include <memory>
#include <sstream>

#include "engine/Errors.hpp"
#include "engine/HostCallbacks.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

/// Attributes: "id"; "dtypes" of all operands, separated by commas; "num_results": how many of the
/// last operands are results.
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
      throw runtime_error("[popx.host_callback] needs a host that takes callbacks; got none for '" +
                          id_ + "'. Run this program through JAX.");
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

void checkCallback(StepCheck& check) {
  check.text("id");
  const auto dtypes = split(check.text("dtypes"));
  const std::size_t n = check.numOperands();
  check.need(dtypes.size() == n, "one dtype per operand");
  check.need(check.image().signature.has_host_callbacks, "a program with callbacks");
  const auto results =
      static_cast<std::size_t>(check.integer("num_results", 0, static_cast<std::int64_t>(n)));
  for (std::size_t i = 0; i < n; ++i) {
    const auto operand = i < n - results ? check.read(i) : check.written(i);
    operand.isContiguous().isOf(elementTypeOf(dtypes[i]));
  }
}

const RegisterKernel kCallback{"popx.host_callback", makeKernel<CallbackKernel>, checkCallback,
                               KernelRole::kHostCallback};

}  // namespace

void forgetCallback(StepDesc& step) {
  if (roleOf(step) == KernelRole::kHostCallback) step.attributes.set("id", std::string());
}

ElementType elementTypeOf(const std::string& dtype) {
  static const std::pair<const char*, ElementType> kTypes[] = {
      {"bool", ElementType::kBool},       {"int8", ElementType::kInt8},
      {"uint8", ElementType::kUInt8},     {"int16", ElementType::kInt16},
      {"uint16", ElementType::kUInt16},   {"int32", ElementType::kInt32},
      {"uint32", ElementType::kUInt32},   {"int64", ElementType::kInt64},
      {"uint64", ElementType::kUInt64},   {"float16", ElementType::kHalf},
      {"bfloat16", ElementType::kUInt16}, {"float32", ElementType::kFloat},
      {"float64", ElementType::kDouble}};
  for (const auto& [name, type] : kTypes) {
    if (dtype == name) return type;
  }
  throw poplar_error("[popx.host_callback] needs a dtype the device holds; got '" + dtype +
                     "'. Convert in the callback.");
}

}  // namespace ipujax::engine
