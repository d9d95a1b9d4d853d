#include <array>
#include <cfenv>

#include "Check.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "popops/ElementWise.hpp"
#include "support/FloatEnvironment.hpp"
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

using namespace poplar;
using namespace poplar::program;

namespace {

/// The environment of the threads on which jaxlib compiles, with another rounding mode as well.
class ForeignEnvironment {
 public:
  ForeignEnvironment() {
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040);  // flush results to zero, take subnormal operands for zero
#endif
  }
  ~ForeignEnvironment() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

volatile float smallest = 0x1p-126f;  // the smallest normal number
volatile float one = 1;

}  // namespace

TEST(a_scope_computes_with_subnormal_numbers_and_leaves_the_callers_environment_alone) {
  const ForeignEnvironment foreign;
  {
    const ipujax::runtime::FloatEnvironment environment;
    CHECK_EQ(smallest / 4, 0x1p-128f);
    CHECK_EQ(one + smallest, 1.0f);
  }
#if defined(__SSE2__)
  CHECK_EQ(smallest / 4, 0.0f);
#endif
  CHECK_EQ(one + 2 * smallest > 1, true);
}

TEST(subnormal_halves_are_kept_on_a_thread_that_flushes_them) {
  const ForeignEnvironment foreign;
  Graph graph{IPUModel().createDevice()};
  const Tensor x = graph.addVariable(HALF, {9}, VariableMappingMethod::LINEAR, "x");
  const auto in = graph.addHostToDeviceFIFO("in", HALF, 9);
  const auto out = graph.addDeviceToHostFIFO("out", FLOAT, 9);
  Sequence prog;
  prog.add(Copy(in, x));
  namespace e = popops::expr;
  const Tensor product =
      popops::map(graph, e::Cast(e::Mul(e::_1, e::Const(HALF, 0x1p-15)), FLOAT), {x}, prog);
  prog.add(Copy(product, out));
  Engine engine(graph, prog);
  std::array<std::uint16_t, 9> values{};
  values.fill(0x6400);  // 1024
  std::array<float, 9> products{};
  engine.connectStream("in", values.data());
  engine.connectStream("out", products.data());
  engine.load(Device(graph.getTarget()));
  engine.run(0);
  for (const float value : products) CHECK_EQ(value, 0x1p-5f);
}
