#include <array>
#include <poplar/CodeletFileType.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/RemoteBuffer.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/TypeTraits.hpp>
#include <sstream>

#include "Check.hpp"

/// The graph's part of the API: constants, values of the host, views, programs in older forms.
using namespace poplar;
using namespace poplar::program;

namespace {

std::vector<float> run(Graph& graph, const Device& device, const Program& prog, const Tensor& out) {
  graph.createHostRead("out", out);
  Engine engine(graph, prog);
  engine.load(device);
  std::vector<float> values(out.numElements());
  engine.readTensor("out", values.data(), values.data() + values.size());
  engine.run(0);
  engine.readTensor("out", values.data(), values.data() + values.size());
  return values;
}

std::string nameOf(Type& type) { return type.toString(); }  // binds to a constant, as in the SDK

}  // namespace

TEST(type_constants_bind_to_references) {
  CHECK_EQ(nameOf(FLOAT), "float");
  Type& type = true ? HALF : FLOAT;
  CHECK(type == HALF);
  CHECK(equivalent_device_type<float>().value == FLOAT);
  CHECK(TypeTraits::make<double>().isFloat);
  CHECK(!TypeTraits::isSimpleType<std::string>());
}

TEST(array_refs_borrow_what_has_data_and_size) {
  const auto sum = [](ArrayRef<int> values) {
    int total = 0;
    for (int v : values) total += v;
    return total;
  };
  const int plain[] = {1, 2};
  CHECK_EQ(sum(plain), 3);
  CHECK_EQ(sum(std::array<int, 3>{1, 2, 3}), 6);
  CHECK_EQ(sum(std::vector<int>{4, 5}), 9);
  CHECK_EQ(sum({7}), 7);
  CHECK_EQ(Interval(2, 5).lower() + Interval(2, 5).upper(), 7u);
  std::ostringstream text;
  text << Interval(2, 5);
  CHECK_EQ(text.str(), "[2, 5)");
}

TEST(vertices_connect_to_constants_on_their_tile) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  std::istringstream source(R"(
#include <poplar/Vertex.hpp>
class Poly : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> c;
  poplar::Input<float> x;
  poplar::Vector<float> k;
  float h;
  poplar::Output<float> y;
  bool compute() {
    *y = h;
    for (unsigned i = 0; i < c.size(); ++i) *y = *y * *x + c[i] * k[i];
    return true;
  }
};)");
  graph.addCodelets(source);
  CHECK(graph.hasCodelet("Poly"));
  CHECK(!graph.hasCodelet("Other"));
  Tensor y = graph.addVariable(FLOAT, {2}, "y");
  graph.setTileMapping(y, 5);
  ComputeSet cs = graph.addComputeSet("cs");
  VertexRef first = graph.addVertex(cs, "Poly", {{"x", 2.0f}, {"y", y[0]}});
  graph.connect(first["c"], std::vector<float>{1, 2, 3});
  graph.setTileMapping(first, 5);
  VertexRef second = graph.addVertex(cs, "Poly", {{"y", y[1]}});
  graph.setTileMapping(second, 6);
  graph.connect(second["x"], 3.0f);
  graph.connect(second["c"], ArrayRef<float>({1.0f}));
  graph.setInitialValue(first["k"], std::vector<float>{1, 1, 1});
  graph.setInitialValue(second["k"], ArrayRef<double>({2.0}));
  graph.setInitialValue(first["h"], 0.0);
  graph.setInitialValueHalf(second["h"], std::uint16_t{0x4000});  // 2.0
  graph.setCycleEstimate(first, 20);
  const auto values = run(graph, device, Sequence(Execute(cs), Execute(cs)), y);
  CHECK_EQ(values[0], 11.0f);  // (1 * 2 + 2) * 2 + 3
  CHECK_EQ(values[1], 8.0f);   // 2 * 3 + 1 * 2
}

TEST(constants_of_every_form) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  std::vector<double> doubles{0.5, -1.5};
  float* floats = new float[2]{3, 4};
  const Tensor parts[] = {
      graph.addConstant(FLOAT, {2}, doubles),
      graph.addConstant(FLOAT, {2}, floats),
      graph.addConstant<float>(FLOAT, {2}, {1.0, 2.0}),
      graph.addConstant(FLOAT, {2}, 7),
      graph.addConstant<float>(FLOAT, {1}, 0),  // no pointer
      graph.addConstant(FLOAT, {2}, static_cast<const void*>(floats), TypeTraits::make<float>(),
                        true),
      graph.addConstantHalf(FLOAT, {2}, std::uint16_t{0x3c00}),
  };
  delete[] floats;
  for (const Tensor& part : parts) graph.setTileMapping(part, 1);
  float known[2] = {};
  CHECK(graph.getConstantValue(parts[0], known));
  CHECK_EQ(known[1], -1.5f);
  Tensor out = graph.addVariable(FLOAT, {13}, VariableMappingMethod::LINEAR, "out");
  CHECK(!graph.getConstantValue(out, known));
  graph.setInitialValue<float>(out, 0);
  const auto values = run(graph, device, Sequence{Copy(concat(parts), out)}, out);
  const std::vector<float> expected{0.5f, -1.5f, 3, 4, 1, 2, 7, 7, 0, 3, 3, 1, 1};
  CHECK(values == expected);
}

TEST(initial_values_of_views_of_several_variables) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  const Tensor a = graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "a");
  const Tensor b = graph.addVariable(FLOAT, {2}, VariableMappingMethod::LINEAR, "b");
  graph.setInitialValue(concat(b, a), std::vector<int>{1, 2, 3, 4, 5});
  graph.setInitialValue(concat(a.slice(0, 1), b.slice(1, 2)).reinterpret(UNSIGNED_INT),
                        0x40000000U);
  CHECK_THROWS(graph.setInitialValue(concat(a, b), std::vector<int>{1, 2}),
               "1 or 5 initial values");
  Tensor out = graph.addVariable(FLOAT, {5}, VariableMappingMethod::LINEAR, "out");
  CHECK(run(graph, device, Sequence{Copy(concat(a, b), out)}, out) ==
        (std::vector<float>{2, 4, 5, 1, 2}));
}

TEST(views_upsample_and_reorder) {
  Device device = IPUModel().createDevice();
  Graph graph(device);
  Tensor x = graph.addVariable(FLOAT, {2, 2}, VariableMappingMethod::LINEAR, "x");
  graph.setInitialValue(x, std::vector<float>{1, 2, 3, 4});
  const Tensor up = x.upsample(2, 1, UpsampleMethod::REPEAT);
  CHECK(up.shape() == (std::vector<std::size_t>{2, 4}));
  Tensor out = graph.addVariable(FLOAT, {2, 4}, VariableMappingMethod::LINEAR, "out");
  const auto values = run(graph, device, Sequence{Copy(up, out)}, out);
  CHECK(values == (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4}));
  CHECK(graph.findUnbroadcastTensor(x.reshape({1, 4}).broadcast(3, 0)).numElements() == 4);
  Tensor t = x.transpose();
  Tensor other = out.slice(0, 1).flatten();
  graph.reorderToSimplify(&t, {&other});
  CHECK_EQ(t.getContiguousRegions().size(), 1u);
  CHECK_EQ(other.numElements(), 4u);
  const auto pairs = x.flatten().slices(std::vector<std::vector<Interval>>{{{0, 1}, {3, 4}}, {}});
  CHECK_EQ(pairs[0].numElements() + pairs[1].numElements(), 2u);
}

TEST(programs_in_older_and_newer_forms) {
  Device device = IPUModel().createDevice();
  Graph graph = device;  // the constructors are implicit
  Tensor a = graph.addConstant(FLOAT, {1}, 1.0f);
  Tensor b = graph.addConstant(FLOAT, {1}, 2.0f);
  Tensor no = graph.addConstant(BOOL, {}, false);
  Tensor selector = graph.addConstant(INT, {}, 2);
  Tensor out = graph.addVariable(FLOAT, {1}, VariableMappingMethod::LINEAR, "out");
  Switch choose = Switch::switchWithBoundsChecking(selector, {{1, Copy(b, out)}});
  choose.add(2, Copy(a, out));
  Sequence prog(Copy(b, out), Sync(SyncType::EXTERNAL), AbortOnCondition(no), choose);
  prog.add_front(Sequence(std::vector<Program>{}));
  CHECK_EQ(run(graph, device, prog, out)[0], 1.0f);

  Tensor yes = graph.addConstant(BOOL, {}, true);
  Engine engine(graph, {AbortOnCondition(yes, "too large"), Abort("at once")});
  engine.load(device);
  CHECK_THROWS(engine.run(0), "too large");
  CHECK_THROWS(engine.run(1), "at once");
}

TEST(names_of_split_headers) {
  CHECK(getCodeletFileType("a.cpp") == CodeletFileType::CppSource);
  CHECK(getCodeletFileType("a.gp") == CodeletFileType::Object);
  CHECK_EQ(getExtensionFromFileType(CodeletFileType::AsmSource), ".S");
  CHECK_THROWS(getLanguageOption(CodeletFileType::Auto), "Auto");
  std::ostringstream text;
  text << TensorCloneMethod::CREATE_NEW_ORDER;
  CHECK_EQ(text.str(), "CREATE_NEW_ORDER");
  const Target target = Target::createIPUTarget(2, "ipu2");
  CHECK(target == Target::createIPUTarget(2, "ipu2"));
  CHECK(target != Target::createIPUTarget(1, "ipu2"));
  const float numbers[2] = {1.5f, -2.0f};
  std::uint16_t halves[2];
  double back[2];
  copyFloatToDeviceHalf(target, numbers, halves, 2);
  copyDeviceHalfToDouble(target, halves, back, 2);
  CHECK_EQ(halves[0], 0x3e00);
  CHECK_EQ(back[1], -2.0);
  Graph graph(target);
  Graph second_half = graph.createVirtualGraph(100, 200);
  CHECK_EQ(second_half.convertVirtualTileToPhysicalTile(3), 103u);
  CHECK_EQ(second_half.convertPhysicalTileToVirtualTile(103), 3u);
  CHECK_THROWS(second_half.convertPhysicalTileToVirtualTile(3), "tile of this graph");
}
