#include <popops/ExprOp.hpp>
#include <vector>

#include "Check.hpp"
#include "OneVertex.hpp"

/// Codelets of elementwise operations written with popops/elementwiseCodelets.hpp, which makes
/// their instances.
using namespace poplar;

namespace {

const char* const kCodelets = R"(
#include <cmath>
#include <poplar/VectorListTypes.hpp>
#include <poplar/Vertex.hpp>
#include <popops/ExprOp.hpp>
#include <popops/elementwiseCodelets.hpp>

namespace mine {
template <popops::expr::UnaryOpType op, typename T, typename Architecture>
struct Function {
  static T of(T x) { return static_cast<T>(std::cbrt(PromoteHalfsToFloats(x))); }
};
template <popops::expr::UnaryOpType op, typename T>
class Roots : public MultiVertex {
 public:
  Input<Vector<T, SPAN, 8>> in;
  Output<Vector<T, ONE_PTR, 8>> out;
  unsigned most;
  IS_EXTERNAL_CODELET((sizeof(T) == 2));
  bool compute(unsigned worker) {
    // On the IPU both are `unsigned`.
    const unsigned n = std::min(most, in.size());
    for (unsigned i = worker; i < n; i += NUM_WORKERS)
      out[i] = Function<op, T, architecture::active>::of(in[i]);
    return std::max(in.size(), most) >= n && !isExternalCodelet &&
           copy_cast<unsigned>(1.0f) == 0x3f800000;
  }
};
INSTANTIATE_OP(Roots, popops::expr::UnaryOpType::CBRT, float, half, int, unsigned, short,
               unsigned short, signed char, unsigned char, long long)
INSTANTIATE_OP(Roots, popops::expr::UnaryOpType::SQRT, int)

/// Doubles pairs, which workers share, and leaves what fills none to the last worker.
class Doubles : public MultiVertex {
 public:
  Input<Vector<float>> in;
  Output<Vector<unsigned>> pairs;
  Output<Vector<float, ONE_PTR>> out;
  void compute(unsigned worker) {
    pairs[worker] = divideWork(in.size(), 1, worker);
    for (unsigned i = 0; i < pairs[worker]; ++i) {
      const unsigned at = 2 * (worker + NUM_WORKERS * i);
      for (unsigned j = at; j < at + 2; ++j) out[j] = 2 * in[j];
    }
    if (worker + 1 == NUM_WORKERS && in.size() % 2 == 1)
      out[in.size() - 1] = 2 * in[in.size() - 1];
  }
};
}  // namespace mine
)";

/// Roots of the first `most` of 8, 27, 64.
template <class T>
std::vector<T> roots(const std::string& type, unsigned most) {
  OneVertex c("mine::Roots<popops::expr::UnaryOpType::" + type + ">", kCodelets);
  const Tensor out = c.onTile<T>({3}, {9, 9, 9});
  c.graph.connect(c.v["in"], c.onTile<T>({3}, {8, 27, 64}));
  c.graph.connect(c.v["out"], out);
  c.graph.setInitialValue(c.v["most"], most);
  return c.template result<T>(out);
}

}  // namespace

TEST(each_type_has_an_instance) {
  CHECK(roots<float>("CBRT,float", 7) == std::vector<float>({2, 3, 4}));
  CHECK(roots<short>("CBRT,short", 7) == std::vector<short>({2, 3, 4}));
  CHECK(roots<long long>("CBRT,long long", 7) == std::vector<long long>({2, 3, 4}));
}

TEST(numbers_of_elements_and_unsigned_ones_are_compared) {
  CHECK(roots<int>("CBRT,int", 2) == std::vector<int>({2, 3, 9}));
  CHECK(roots<int>("SQRT,int", 0) == std::vector<int>({9, 9, 9}));
}

TEST(workers_share_vectors_of_elements) {
  for (const unsigned n : {1u, 11u, 12u, 17u, 29u}) {
    OneVertex c("mine::Doubles", kCodelets);
    std::vector<float> in(n), twice(n);
    for (unsigned i = 0; i < n; ++i) twice[i] = 2 * (in[i] = i + 1);
    const Tensor out = c.onTile<float>({n}, std::vector<float>(n));
    const Tensor pairs = c.onTile<unsigned>({6}, std::vector<unsigned>(6));
    c.graph.connect(c.v["in"], c.onTile<float>({n}, in));
    c.graph.connect(c.v["out"], out);
    c.graph.connect(c.v["pairs"], pairs);
    CHECK(c.result<float>(out) == twice);
  }
  OneVertex c("mine::Doubles", kCodelets);
  const Tensor out = c.onTile<float>({17}, std::vector<float>(17));
  const Tensor pairs = c.onTile<unsigned>({6}, std::vector<unsigned>(6));
  c.graph.connect(c.v["in"], c.onTile<float>({17}, std::vector<float>(17)));
  c.graph.connect(c.v["out"], out);
  c.graph.connect(c.v["pairs"], pairs);
  CHECK(c.result<unsigned>(pairs) == std::vector<unsigned>({2, 2, 1, 1, 1, 1}));
}
