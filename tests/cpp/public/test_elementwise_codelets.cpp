#include <popops/ExprOp.hpp>
#include <vector>

#include "Check.hpp"
#include "OneVertex.hpp"

/// Codelets of elementwise operations written with popops/elementwiseCodelets.hpp, which instances
/// are made by.
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
}  // namespace mine
)";

/// Of the first `most` of 8, 27, 64.
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
