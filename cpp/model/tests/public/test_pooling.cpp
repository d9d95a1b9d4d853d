#include <popnn/Pooling.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"
#include "Gradients.hpp"

using namespace poplar;
using namespace poplar::program;
namespace pooling = popnn::pooling;

TEST(pooling_gradients_take_the_forward_pass_for_all_types) {
  std::mt19937 random(1);
  for (const auto type : {popnn::PoolingType::AVG, popnn::PoolingType::SUM}) {
    const pooling::PoolParams params(type, {5, 4}, {3, 2}, {2, 1}, {1, 0}, {0, 1}, 3, 2, FLOAT);
    Fixture f;
    const Tensor in = f.constant<float>({2, 3, 5, 4}, randomFloats(random, 120));
    const Tensor out = pooling::pool(f.graph, params, in, f.prog);
    const Tensor grad = f.constant<float>(out.shape(), randomFloats(random, out.numElements()));
    const Tensor a = pooling::poolInputGradient(f.graph, params, in, out, grad, false, f.prog);
    const Tensor b = pooling::poolInputGradient(f.graph, params, 1, grad, f.prog);
    const auto found = f.run(flat({a, b}));
    for (std::size_t i = 0; i < 120; ++i) CHECK_EQ(found[i], found[120 + i]);
  }
}

TEST(pooling_work_is_counted) {
  Fixture f;
  std::uint64_t elements = 0;  // under the kernel: rows -1..1, 1..3, 3..5 of 5; columns 0..4 of 4
  for (const int row : {-1, 1, 3})
    for (const int column : {0, 1, 2, 3})
      for (int y = row; y < row + 3; ++y)
        for (int x = column; x < column + 2; ++x) elements += y >= 0 && y < 5 && x >= 0 && x < 4;
  for (const auto type :
       {popnn::PoolingType::MAX, popnn::PoolingType::AVG, popnn::PoolingType::SUM}) {
    const pooling::PoolParams params(type, {5, 4}, {3, 2}, {2, 1}, {1, 0}, {1, 1}, 3, 2, HALF);
    CHECK(pooling::getOutputFieldShape(params) == (std::vector<std::size_t>{3, 4}));
    const std::uint64_t averages = type == popnn::PoolingType::AVG ? 12 : 0;
    CHECK_EQ(pooling::getFwdFlops(params), 6 * (elements + averages));
    CHECK_NEAR(pooling::getFwdPerfectCycleCount(f.graph, params),
               static_cast<double>(pooling::getBwdFlops(params)) / (4 * 8), 1e-9);
    std::ostringstream text;
    text << params;
    CHECK(text.str().find(pooling::asString(type)) == 0);
    CHECK(text.str().find("kernel 3 2") != std::string::npos);
  }
}

TEST(options_are_those_of_poplibs) {
  Fixture f;
  const pooling::PoolParams params(popnn::PoolingType::SUM, {4}, {2}, {2}, {0}, {0}, 1, 1, FLOAT);
  const Tensor in = f.constant<float>({1, 1, 4}, {1, 2, 3, 4});
  const OptionFlags known{{"poolUseIntrospectiveMapping", "false"},
                          {"optimizeForSpeed", "true"},
                          {"useFloatPartialsWhereBeneficial", "true"}};
  const Tensor out = pooling::pool(f.graph, params, in, f.prog, {}, known);
  const auto found = f.run(flat({out}));
  CHECK_EQ(found[0], 3);
  CHECK_EQ(found[1], 7);
  CHECK_THROWS(pooling::pool(f.graph, params, in, f.prog, {}, {{"speed", "true"}}), "speed");
  CHECK_THROWS(pooling::poolInputGradient(f.graph, params, 1, out, f.prog, {},
                                          {{"optimizeForSpeed", "often"}}),
               "optimizeForSpeed");
}
