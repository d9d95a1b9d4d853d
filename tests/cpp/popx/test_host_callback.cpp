#include "Check.hpp"
#include "engine/HostCallbacks.hpp"
#include "engine/kernels/Kernel.hpp"
#include "popops/OnDevice.hpp"
#include "popx/HostCallback.hpp"

using namespace ipujax::engine;

namespace {

/// result 0 = argument 0 + 1; records how it was called.
struct AddOne final : HostCallbacks {
  std::string id, dtypes;
  void call(const std::string& name, std::span<const HostArray> arguments,
            std::span<const HostArray> results) override {
    id = name;
    dtypes = arguments[0].dtype + ">" + results[0].dtype;
    const auto* in = static_cast<const float*>(arguments[0].data);
    auto* out = static_cast<std::int32_t*>(results[0].data);
    for (std::int64_t i = 0; i < arguments[0].shape[0]; ++i)
      out[i] = static_cast<std::int32_t>(in[i]) + 1;
  }
};

StepDesc callbackStep() {
  StepDesc step;
  step.kernel = "popx.host_callback";
  step.operands.resize(2);
  for (auto& o : step.operands) {
    o.shape = {3};
    o.strides = {1};
  }
  step.operands[1].type = ElementType::kInt32;
  step.attributes.set("id", std::string("f7")).set("dtypes", std::string("float32,int32,"));
  step.attributes.set("num_results", std::int64_t{1});
  return step;
}

}  // namespace

TEST(host_callback_gets_arrays_and_writes_results) {
  const auto kernel = KernelRegistry::instance().make(callbackStep());
  float in[3] = {1, 2, 3};
  std::int32_t out[3] = {};
  std::byte* const pointers[] = {reinterpret_cast<std::byte*>(in),
                                 reinterpret_cast<std::byte*>(out)};
  AddOne host;
  RunContext context{ThreadPool::shared()};
  context.callbacks = &host;
  kernel->run(context, pointers);
  CHECK_EQ(out[2], 4);
  CHECK_EQ(host.id, "f7");
  CHECK_EQ(host.dtypes, "float32>int32");
}

TEST(host_callback_without_a_host_is_an_error) {
  const auto kernel = KernelRegistry::instance().make(callbackStep());
  std::byte* const pointers[] = {nullptr, nullptr};
  RunContext context{ThreadPool::shared()};
  CHECK_THROWS(kernel->run(context, pointers), "f7");
}

TEST(host_callback_checks_dtypes) {
  OnDevice d;
  const poplar::Tensor t = d.iota({3});
  CHECK_THROWS(popx::hostCallback(d.graph, "f", {t}, {"int32"}, {}, d.prog), "int32");
  CHECK_THROWS(popx::hostCallback(d.graph, "f", {t}, {}, {}, d.prog), "one dtype");
  CHECK_THROWS(popx::hostCallback(d.graph, "f", {}, {}, {{"complex64", {1}}}, d.prog), "complex64");
}
