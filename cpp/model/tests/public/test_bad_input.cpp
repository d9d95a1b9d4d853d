#include <poplar/exceptions.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// Errors in a program throw exceptions of the kind that Poplar's programs catch, with a message
/// that says where. They never end the process, and the graph and the engine remain usable.
using namespace poplar;
using namespace poplar::program;

namespace {

/// Checks that `run` throws an E whose text contains `part`.
template <class E, class F>
void throwsAs(const F& run, const std::string& part) {
  try {
    run();
  } catch (const E& e) {
    CHECK_THROWS(throw e, part);
    return;
  } catch (const std::exception& e) {
    throw check::Failure("of another type: " + std::string(e.what()));
  }
  throw check::Failure("nothing was thrown; expected an error naming '" + part + "'");
}

const char* const kCodelets = R"(
#include <poplar/Vertex.hpp>
class Add : public poplar::Vertex {
  poplar::Input<poplar::Vector<float>> in;
  poplar::Output<poplar::Vector<float>> out;

 public:
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] + 1;
    return true;
  }
};
class One : public poplar::Vertex {
 public:
  poplar::Output<int> value;
  int from;
  bool compute() {
    *value = from;
    return true;
  }
};
)";

struct Codelets : Fixture {
  ComputeSet cs = graph.addComputeSet("cs");
  Tensor in = variable("in", {8});
  Tensor out = variable("out", {8});

  Codelets() {
    std::stringstream source(kCodelets);
    graph.addCodelets(source);
    prog.add(Execute(cs));
  }
  VertexRef add(const Tensor& from, const Tensor& to, unsigned tile) {
    const VertexRef v = graph.addVertex(cs, "Add", {{"in", from}, {"out", to}});
    graph.setTileMapping(v, tile);
    return v;
  }
};

}  // namespace

TEST(vertices_on_no_tile) {
  Codelets c;
  const VertexRef v = c.graph.addVertex(c.cs, "Add", {{"in", c.in}, {"out", c.out}});
  throwsAs<invalid_tile_mapping>([&] { c.graph.setTileMapping(v, 8); }, "needs a tile below 8");
  throwsAs<invalid_tile_mapping>([&] { Engine(c.graph, c.prog); }, "setTileMapping");
  c.graph.setTileMapping(v, 7);
  c.graph.setInitialValue<float>(c.in, 0.0f);
  Engine engine(c.graph, c.prog);
  engine.loadAndRun(c.device);
  CHECK_EQ(c.read(engine, "out", 8)[0], 1.0f);
}

TEST(fields_that_are_not_connected) {
  Codelets c;
  const VertexRef v = c.graph.addVertex(c.cs, "Add", {{"in", c.in}});
  c.graph.setTileMapping(v, 0);
  throwsAs<graph_connection_error>([&] { Engine(c.graph, c.prog); }, "'out'");
  throwsAs<graph_connection_error>([&] { c.graph.connect(v["into"], c.out); }, "in, out");
  throwsAs<graph_connection_error>([&] { c.graph.setInitialValue(v["outs"], 1); }, "in, out");
  c.graph.connect(v["out"], c.out);
  Engine(c.graph, c.prog).loadAndRun(c.device);
}

TEST(fields_of_other_types_and_sizes) {
  Codelets c;
  const Tensor whole = c.variable("whole", {8}, INT);
  const VertexRef v = c.add(c.in, c.out, 0);
  c.graph.connect(v["in"], whole);
  throwsAs<graph_connection_error>([&] { Engine(c.graph, c.prog); }, "float");
  Codelets d;
  const VertexRef one = d.graph.addVertex(d.cs, "One", {{"value", d.variable("i", {2}, INT)}});
  d.graph.setTileMapping(one, 0);
  throwsAs<graph_connection_error>([&] { Engine(d.graph, d.prog); }, "'value'");
}

TEST(two_vertices_that_write_one_element) {
  Codelets c;
  c.add(c.in.slice(0, 4), c.out.slice(0, 4), 0);
  c.add(c.in.slice(0, 4), c.out.slice(3, 7), 1);
  throwsAs<graph_program_compilation_error>([&] { Engine(c.graph, c.prog); },
                                            "both write element 3 of 'out'");
  // They may write one after the other, and many may read one element.
  Codelets d;
  d.add(d.in.slice(0, 4), d.out.slice(0, 4), 0);
  d.add(d.in.slice(0, 4), d.out.slice(4, 8), 1);
  d.cs = d.graph.addComputeSet("next");
  d.add(d.in.slice(0, 4), d.out.slice(3, 7), 1);
  d.prog.add(Execute(d.cs));
  Engine(d.graph, d.prog).loadAndRun(d.device);
}

TEST(a_vertex_that_writes_one_element_twice) {
  Codelets c;
  c.add(c.in.slice(0, 4), concat(c.out.slice(2, 4), c.out.slice(3, 5)), 0);
  throwsAs<graph_program_compilation_error>([&] { Engine(c.graph, c.prog); },
                                            "got element 3 of 'out' twice in 'out'");
  Codelets d;  // a vertex may read one twice
  d.add(concat(d.in.slice(2, 4), d.in.slice(3, 5)), d.out.slice(0, 4), 0);
  Engine(d.graph, d.prog).loadAndRun(d.device);
}

TEST(names_that_nothing_has) {
  Codelets c;
  throwsAs<unknown_vertex_type>([&] { c.graph.addVertex(c.cs, "Sub"); }, "Add");
  throwsAs<file_load_error>([&] { c.graph.addCodelets("no_such_file.cpp"); }, "no_such_file.cpp");
  c.add(c.in, c.out, 0);
  Engine engine(c.graph, c.prog);
  engine.load(c.device);
  std::vector<float> host(8);
  throwsAs<stream_connection_error>([&] { engine.connectStream("x", host.data()); }, "x");
  throwsAs<stream_connection_error>(
      [&] { engine.readTensor("x", host.data(), host.data() + host.size()); }, "x");
  throwsAs<poplar_error>([&] { engine.run(3); }, "3");
  throwsAs<poplar_error>([&] { engine.readTensor("in", host.data(), host.data() + 3); }, "32");
  throwsAs<invalid_option>([&] { Engine(c.graph, c.prog, {{"no.such", "1"}}); }, "no.such");
  engine.run(0);
}

TEST(codelets_that_do_not_compile) {
  Codelets c;
  std::stringstream source("#include <poplar/Vertex.hpp>\nclass V : public poplar::Vertex {\n");
  throwsAs<graph_program_compilation_error>(
      [&] {
        c.graph.addCodelets(source);
        const auto v = c.graph.addVertex(c.cs, "V");
        c.graph.setTileMapping(v, 0);
        Engine(c.graph, c.prog);
      },
      "");
}

TEST(codelets_that_write_to_their_inputs) {
  const auto added = [](const std::string& statement) {
    return [statement] {
      Fixture f;
      std::stringstream source(
          "#include <poplar/Vertex.hpp>\nusing namespace poplar;\nclass W : public Vertex {\n"
          "  Input<Vector<float>> in;\n  Input<VectorList<float>> rows;\n  Input<float> one;\n"
          "  Vector<Input<Vector<float>>> list;\n  InOut<Vector<float>> out;\n"
          "  bool compute() {\n" +
          statement + "\n    return true;\n  }\n};\n");
      f.graph.addCodelets(source);
    };
  };
  for (const char* write : {"in[0] = 1;", "in[1] += 2;", "rows[0][1] = 1;", "list[1][0]++;",
                            "*in = 3;", "*one = 1;", "for (auto& x : in) x = 0;"})
    throwsAs<graph_program_compilation_error>(added(write), "codelets.cpp:10");
  // Pointers to elements that are only read may have other types.
  for (const char* read :
       {"out[0] = in[0] + rows[0][0];", "out[0] = *reinterpret_cast<float*>(&in[0]);",
        "float* x = &in[0]; out[0] = *x;", "const float* x = in; out[0] = *x;"})
    added(read)();
}

TEST(two_streams_of_one_handle) {
  Fixture f;
  f.graph.addHostToDeviceFIFO("s", FLOAT, 4);
  throwsAs<stream_connection_error>([&] { f.graph.addHostToDeviceFIFO("s", FLOAT, 4); }, "'s'");
  throwsAs<stream_connection_error>([&] { f.graph.addDeviceToHostFIFO("s", FLOAT, 4); }, "'s'");
  f.graph.addDeviceToHostFIFO("t", FLOAT, 4);
}

TEST(copies_of_variables_on_no_tile) {
  for (const bool from : {false, true}) {
    Fixture f;
    const Tensor on = f.variable("on", {2, 4});
    const Tensor off = f.graph.addVariable(FLOAT, {2, 4}, "off");
    f.graph.setTileMapping(off[0], 1);
    f.prog.add(from ? Copy(off[1], on[1]) : Copy(on[1], off[1]));
    throwsAs<invalid_tile_mapping>([&] { Engine(f.graph, f.prog); }, "element 4 of 'off'");
    f.graph.setTileMapping(off[1], 2);
    Engine(f.graph, f.prog);
  }
  Fixture f;
  const auto stream = f.graph.addHostToDeviceFIFO("s", FLOAT, 4);
  f.prog.add(Copy(stream, f.graph.addVariable(FLOAT, {4}, "off")));
  throwsAs<invalid_tile_mapping>([&] { Engine(f.graph, f.prog); }, "'off'");
  Fixture none;  // no elements, no tiles
  none.prog.add(Copy(none.graph.addVariable(FLOAT, {0}), none.graph.addVariable(FLOAT, {0})));
  Engine(none.graph, none.prog);
}

TEST(tensors_out_of_their_bounds) {
  Codelets c;
  throwsAs<poplar_error>([&] { c.in.slice(3, 9); }, "9");
  throwsAs<poplar_error>([&] { c.in.slice(5, 4); }, "5");
  throwsAs<poplar_error>([&] { c.in.slice(0, 1, 1); }, "1");
  throwsAs<poplar_error>([&] { (void)c.in[8]; }, "8");
  throwsAs<poplar_error>([&] { c.in.reshape({3, 3}); }, "8 elements");
  throwsAs<poplar_error>([&] { c.in.dim(1); }, "1");
  throwsAs<poplar_error>([&] { concat(c.in, c.variable("i", {8}, INT)); }, "");
  throwsAs<poplar_error>([&] { Copy(c.in, c.out.slice(0, 4)); }, "8");
  throwsAs<poplar_error>([&] { Copy(c.in, c.variable("j", {8}, INT)); }, "float");
  throwsAs<invalid_tile_mapping>([&] { c.graph.setTileMapping(c.in, 8); }, "8");
}

TEST(predicates_and_streams_of_other_shapes) {
  Codelets c;
  throwsAs<poplar_error>([&] { RepeatWhileTrue(Sequence(), c.in, Sequence()); }, "");
  throwsAs<poplar_error>([&] { If(c.in, Sequence(), Sequence()); }, "");
  throwsAs<poplar_error>([&] { Switch s(c.in); }, "");
  const auto stream = c.graph.addHostToDeviceFIFO("stream", FLOAT, 4);
  throwsAs<poplar_error>([&] { Copy(stream, c.in); }, "4");
  throwsAs<poplar_error>([&] { Copy(Tensor(), c.in); }, "an empty Tensor");
  throwsAs<control_program_error>([&] { c.prog.add(c.prog); }, "the sequence itself");
}

TEST(tensors_of_other_graphs) {
  Codelets c;
  Codelets d;
  throwsAs<poplar_error>([&] { Copy(c.in, d.out); }, "of one graph");
  throwsAs<poplar_error>([&] { concat(c.in, d.out); }, "of one graph");
  const VertexRef v = c.add(c.in, c.out, 0);
  throwsAs<graph_connection_error>([&] { c.graph.connect(v["in"], d.in); }, "another");
  throwsAs<graph_connection_error>([&] { c.graph.connect(v["in"], Tensor()); }, "an empty");
  for (int i = 0; i < 20; ++i) d.graph.addVariable(FLOAT, {8});
  c.prog.add(Copy(d.variable("last", {8}), d.out));
  throwsAs<poplar_error>([&] { Engine(c.graph, c.prog); }, "of another graph");
}

TEST(arguments_of_library_functions) {
  Codelets c;
  throwsAs<poplar_error>([&] { popops::add(c.graph, c.in, c.out.slice(0, 3), c.prog); }, "3");
  throwsAs<poplar_error>([&] { popops::map(c.graph, popops::expr::_3, {c.in}, c.prog); },
                         "one tensor for each placeholder");
}
