// Codelets that call functions of other files.
#include <sstream>
#include <string>
#include <vector>

#include "Check.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "popops/OnDevice.hpp"

using namespace poplar;
using ipujax::engine::codeletsFromText;
using ipujax::engine::VertexStore;

namespace {

const std::string kCaller = R"(
#include <poplar/Vertex.hpp>
namespace mine { int scaled(int x); }
class Calls : public poplar::Vertex {
 public:
  poplar::InOut<int> x;
  void compute() { *x = mine::scaled(*x) + FACTOR; }
};
)";
const std::string kDefiner = R"(
namespace mine {
int square(int x);
int scaled(int x) { return square(x) * FACTOR; }
}
)";
const std::string kSquare = "namespace mine { int square(int x) { return x * x; } }\n";
const std::string kUnrelated = "namespace mine { int unrelated(int x) { return x; } }\n";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(each_file_of_a_library_is_compiled_with_its_own_flags) {
  OnDevice d;
  const auto add = [&](const std::string& text, const std::string& flags) {
    std::istringstream source(text);
    d.graph.addCodelets(source, flags);
  };
  add(kCaller, "-DFACTOR=1000");
  add(kDefiner, "-DFACTOR=2\n-DUNUSED=1");  // a line break between flags is a space
  add(kSquare, "");
  const Tensor x = d.input<int>(INT, {1}, {7});
  const ComputeSet cs = d.graph.addComputeSet();
  const VertexRef v = d.graph.addVertex(cs, "Calls");
  d.graph.setTileMapping(v, 0);
  d.graph.connect(v["x"], x[0]);
  d.prog.add(program::Execute(cs));
  CHECK_EQ(d.read<int>(x)[0], 7 * 7 * 2 + 1000);
}

TEST(a_file_is_linked_with_those_that_define_what_it_calls) {
  VertexStore store;
  for (const std::string& text : {kCaller, kUnrelated, kDefiner, kSquare})
    store.add(codeletsFromText(text, "-DFACTOR=1"));
  store.vertices.emplace_back();
  store.vertices.back().type = "Calls";
  CHECK(store.library(0)->find("Calls") != nullptr);
  CHECK(has(store.unit(0), "int scaled(int x) {"));
  CHECK(has(store.unit(0), "int square(int x) {"));
  CHECK(!has(store.unit(0), "unrelated"));
}

TEST(a_definition_that_no_file_spells_is_found_among_all_files) {
  VertexStore store;
  store.add(codeletsFromText(kCaller, "-DFACTOR=1"));
  store.add(
      codeletsFromText("#define NAME(a, b) a##b\n"
                       "namespace mine { int NAME(sca, led)(int x) { return x; } }\n",
                       ""));
  store.vertices.emplace_back();
  store.vertices.back().type = "Calls";
  CHECK(store.library(0)->find("Calls") != nullptr);
}
