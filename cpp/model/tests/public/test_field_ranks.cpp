#include <numeric>
#include <poplar/exceptions.hpp>
#include <popops/codelets.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "OneVertex.hpp"

/// What connect() accepts for each kind of field: one dimension for a vector, two or tensors of one
/// for a list of vectors, one element for a scalar.
using namespace poplar;

namespace {

const char* const kCodelets = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Sums : Vertex {
  Input<Vector<float>> in;
  InOut<Vector<float, VectorLayout::ONE_PTR>> kept;
  Output<Vector<float>> out;
  Vector<Input<Vector<float>>> rows;
  Input<VectorList<float, VectorListLayout::DELTAN>> list;
  Vector<Output<float>> each;
  Input<float> one;
  bool compute() {
    float sum = *one;
    for (float x : in) sum += x;
    for (auto& row : rows) for (float x : row) sum += x;
    for (unsigned i = 0; i < list.size(); ++i) for (float x : list[i]) sum += x;
    out[0] = sum;
    kept[0] = -sum;
    *each[0] = 2 * sum;
    return true;
  }
};
)";

struct Field {
  const char* name;
  bool is_list, is_vector;
};
const Field kFields[] = {{"in", false, true},  {"kept", false, true}, {"out", false, true},
                         {"rows", true, true}, {"list", true, true},  {"each", true, false},
                         {"one", false, false}};

/// Whether connect() takes a tensor of this rank.
bool takes(const Field& field, std::size_t rank) {
  if (!field.is_vector) return true;  // elements are counted once an engine is made
  return rank == (field.is_list ? 2 : 1);
}

template <class F>
bool refuses(const F& connect, const std::string& part) {
  try {
    connect();
  } catch (const graph_connection_error& e) {
    CHECK_THROWS(throw e, part);
    return true;
  }
  return false;
}

Tensor variable(OneVertex& c, const std::vector<std::size_t>& shape) {
  std::size_t elements = 1;
  for (const std::size_t size : shape) elements *= size;
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), 1.0f);
  return c.onTile<float>(shape, values);
}

}  // namespace

TEST(a_tensor_of_each_rank_for_each_kind_of_field) {
  OneVertex c("Sums", kCodelets);
  for (const Field& field : kFields) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const Tensor t = variable(c, std::vector<std::size_t>(rank, 2));
      const bool refused = refuses([&] { c.graph.connect(c.v[field.name], t); },
                                   std::string("field '") + field.name + "' of a Sums; got " +
                                       (rank == 0   ? "{}"
                                        : rank == 1 ? "{2}"
                                                    : "{2,2"));
      CHECK(refused == !takes(field, rank));
    }
  }
}

TEST(tensors_of_each_rank_for_the_elements_of_a_list) {
  OneVertex c("Sums", kCodelets);
  for (const char* name : {"rows", "list"}) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const Tensor t = variable(c, std::vector<std::size_t>(rank, 2));
      const Tensor line = variable(c, {3});
      CHECK(refuses([&] { c.graph.connect(c.v[name], {line, t}); }, name) == (rank != 1));
      CHECK(refuses([&] { c.graph.connect(c.v[name][0], t); }, name) == (rank != 1));
    }
  }
  CHECK_THROWS(c.graph.addVertex(c.cs, "Sums", {{"in", variable(c, {2, 2})}}),
               "needs a tensor of one dimension");
}

TEST(what_is_taken_runs) {
  OneVertex c("Sums", kCodelets);
  c.graph.connect(c.v["in"], 100.0f);  // a tensor of one element
  const Tensor out = variable(c, {1});
  const Tensor kept = variable(c, {1});
  const Tensor each = variable(c, {1});
  c.graph.connect(c.v["out"], out);
  c.graph.connect(c.v["kept"], kept);
  c.graph.connect(c.v["rows"], variable(c, {2, 2}));
  c.graph.connect(c.v["list"], {variable(c, {3}), variable(c, {1})});
  c.graph.connect(c.v["each"], each);
  c.graph.connect(c.v["one"], variable(c, {1})[0]);
  CHECK(c.result<float>(concat({out, kept, each})) == std::vector<float>({118, -118, 236}));
}

TEST(a_vertex_of_a_library) {
  OneVertex c(poputil::templateVertex("popops::Fill", FLOAT));
  const Tensor rows = c.onTile<float>({2, 2}, {1, 2, 3, 4});
  CHECK_THROWS(c.graph.connect(c.v["out"], rows), "'out' of a popops::Fill<float>; got {2,2}");
  c.graph.connect(c.v["out"], rows[1]);
  c.graph.setInitialValue(c.v["in"], 9);
  CHECK(c.result<float>(rows) == std::vector<float>({1, 2, 9, 9}));
}

TEST(scalars_of_a_type_compiled_with_the_engine) {
  OneVertex c(poputil::templateVertex("popops::Fill", FLOAT));
  c.graph.connect(c.v["out"], variable(c, {}));
  c.graph.setInitialValue(c.v["in"], 9);
  CHECK_THROWS(c.result<float>(variable(c, {1})), "needs a tensor of one dimension for field");
}

/// Checks a codelet that reads and writes the bits of one type as another of the same size.
template <class From>
void checkReinterpreted(const std::string& field, Type from, Type to, const std::vector<From>& in,
                        const std::vector<From>& out) {
  OneVertex c("Reversed",
              ("#include <poplar/Vertex.hpp>\nusing namespace poplar;\nusing T = " + field + R"(;
    struct Reversed : Vertex {
      Input<Vector<T>> in;
      Vector<Input<Vector<T, VectorLayout::ONE_PTR>>> rows;
      Input<T> one;
      Output<Vector<T>> out;
      bool compute() {
        out[0] = in[1];
        out[1] = rows[1][0];
        out[2] = *one;
        return true;
      }
    };)")
                  .c_str());
  const Tensor given = c.onTile<From>({4}, in, from);
  const Tensor taken = c.onTile<From>({4}, in, from);
  const Tensor bits = given.reinterpret(to);
  c.graph.connect(c.v["in"], bits.slice(2, 4));
  c.graph.connect(c.v["rows"], bits.reshape({2, 2}).transpose());  // goes through copies
  c.graph.connect(c.v["one"], bits[0]);
  c.graph.connect(c.v["out"], taken.slice(1, 4).reinterpret(to));
  CHECK(c.result<From>(taken) == out);
}

TEST(fields_take_tensors_as_what_they_are_reinterpreted_to) {
  checkReinterpreted<unsigned>("int", UNSIGNED_INT, INT, {1, 2, 3, ~0U}, {1, ~0U, 2, 1});
  checkReinterpreted<int>("float", INT, FLOAT, {1, 2, 3, 4}, {1, 4, 2, 1});
  checkReinterpreted<float>("unsigned", FLOAT, UNSIGNED_INT, {-1, 2, 3, 4}, {-1, 4, 2, -1});
  checkReinterpreted<short>("unsigned short", SHORT, UNSIGNED_SHORT, {1, 2, 3, -4}, {1, -4, 2, 1});
  checkReinterpreted<unsigned char>("char", UNSIGNED_CHAR, CHAR, {1, 2, 3, 255}, {1, 255, 2, 1});
}
