#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// Values that codelets assign to edges reach the tensors: edges stay where the graph put them.
using namespace poplar;

namespace {

const char* const kCodelets = R"src(
#include <poplar/Vertex.hpp>
using namespace poplar;
using Rows = Vector<Input<Vector<float>>>;
struct Rotate : Vertex {
  Rows in;
  Vector<Output<Vector<float>>> out;
  Vector<InOut<Vector<float>>> both;
  void copy(Rows rows) {
    for (unsigned i = 0; i < rows.size(); ++i) out[i] = rows[(i + 1) % rows.size()];
  }
  bool compute() {
    copy(in);
    const auto first = both[0];
    both[0] = both[1];
    both[1] = in[0];
    out[2] = first;
    return true;
  }
};
struct Scalars : Vertex {
  Vector<Input<int>> in;
  Vector<Output<int>> out;
  InOut<int> last;
  bool compute() {
    for (unsigned i = 0; i < in.size(); ++i) out[i] = in[i];
    out[0] = out[1];
    out[1] = last;
    last = out[2];
    return true;
  }
};
struct Half : Vertex {
  Vector<Input<Vector<half>>> in;
  Output<Vector<float>> out;
  bool compute() {
    out = in[1];
    return true;
  }
};
)src";

struct Assigning : OneVertex {
  explicit Assigning(const char* type) : OneVertex(type, kCodelets) {}
};

}  // namespace

TEST(rows_are_assigned_element_by_element) {
  Assigning a("Rotate");
  const Tensor in = a.onTile<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor out = a.onTile<float>({3, 2}, {0, 0, 0, 0, 0, 0});
  const Tensor both = a.onTile<float>({2, 2}, {7, 8, 9, 10});
  a.graph.connect(a.v["in"], in);
  a.graph.connect(a.v["out"], out);
  a.graph.connect(a.v["both"], both);
  CHECK(a.result<float>(concat({out, both, in})) ==
        (std::vector<float>{3, 4, 5, 6, 9, 10, 9, 10, 1, 2, 1, 2, 3, 4, 5, 6}));
}

TEST(edges_of_scalars_stay_where_they_are) {
  Assigning a("Scalars");
  const Tensor in = a.onTile<int>({3}, {1, 2, 3});
  const Tensor out = a.onTile<int>({3}, {0, 0, 0});
  const Tensor last = a.onTile<int>({1}, {9});
  a.graph.connect(a.v["in"], in);
  a.graph.connect(a.v["out"], out);
  a.graph.connect(a.v["last"], last[0]);
  CHECK(a.result<int>(concat({out, last})) == (std::vector<int>{2, 9, 3, 3}));
}

TEST(rows_of_halves_become_floats_and_other_sizes_are_refused) {
  const auto halves = [](std::size_t n) {
    Assigning a("Half");
    const Tensor in = a.onTile<float>({2, 3}, {1, 2, 3, 4, 5, 6}, HALF);
    const Tensor out = a.onTile<float>({n}, std::vector<float>(n));
    a.graph.connect(a.v["in"], in);
    a.graph.connect(a.v["out"], out);
    return a.result<float>(out);
  };
  CHECK(halves(3) == (std::vector<float>{4, 5, 6}));
  CHECK_THROWS(halves(2), "needs rows of one size in an assignment; got 3 elements for 2");
}
