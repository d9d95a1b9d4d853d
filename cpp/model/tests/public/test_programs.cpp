#include <poplar/CycleCount.hpp>
#include <poplar/IeeeHalf.hpp>
#include <poplar/PrintTensor.hpp>
#include <poplar/TypeTraits.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

/// Programs in the forms found in public code: what they print, write and count.
using namespace poplar;
using namespace poplar::program;

namespace {

std::string printed(Fixture& f) {
  Engine engine(f.graph, f.prog);
  std::ostringstream text;
  engine.setPrintTensorStream(text);
  engine.loadAndRun(f.device);
  return text.str();
}

}  // namespace

TEST(tensors_are_printed_as_the_sdk_does) {
  Fixture f;
  f.prog.add(PrintTensor("zeros", f.constant<float>({4}, {0, 0, 0, 0})));
  f.prog.add(PrintTensor("numbers", f.constant<int>({5}, {0, 1, 2, 3, 4})));
  f.prog.add(PrintTensor("wide", f.constant<int>({2, 2}, {7, -10, 123, 4})));
  f.prog.add(PrintTensor("large", f.constant<float>({2}, {1e20f, -1})));
  f.prog.add(PrintTensor("mixed", f.constant<float>({3}, {100.5f, 1, 0})));
  f.prog.add(PrintTensor("one", f.constant<unsigned>({1}, {9})[0]));
  CHECK_EQ(printed(f), std::string("zeros: [0.0000000 0.0000000 0.0000000 0.0000000]\n"
                                   "numbers: [0 1 2 3 4]\n"
                                   "wide: [[  7 -10]\n"
                                   " [123   4]]\n"
                                   "large: [ 1.0000000e+20 -1.0000000e+00]\n"
                                   "mixed: [100.50000   1.00000   0.00000]\n"
                                   "one: 9\n"));
}

TEST(tensors_are_printed_in_a_format) {
  Fixture f;
  std::vector<int> many(12);
  for (int i = 0; i < 12; ++i) many[static_cast<std::size_t>(i)] = i;
  const auto t = f.constant<int>({12}, many);
  f.prog.add(PrintTensor("few", t, PrintTensorFmt(10, 2)));
  f.prog.add(PrintTensor("rows", t.reshape({6, 2}), PrintTensorFmt(10, 1)));
  f.prog.add(PrintTensor("lines", t, PrintTensorFmt(0, 3, 16)));
  f.prog.add(PrintTensor(
      "list", t.slice(0, 2).expand({0}),
      PrintTensorFmt(1000, 3, 75, 8, PrintTensorFmt::FloatFormat::Auto, ',', '{', '}')));
  const auto x = f.constant<float>({2}, {0.5f, -3});
  using Format = PrintTensorFmt::FloatFormat;
  f.prog.add(PrintTensor("short", x, PrintTensorFmt(1000, 3, 75, 4, Format::None)));
  f.prog.add(PrintTensor("exact", x, PrintTensorFmt(1000, 3, 75, 3, Format::Scientific)));
  f.prog.add(PrintTensor("loose", x, PrintTensorFmt(1000, 3, 75, 0)));
  CHECK_EQ(printed(f), std::string("few: [ 0  1 ... 10 11]\n"
                                   "rows: [[ 0  1]\n"
                                   " ...\n"
                                   " [10 11]]\n"
                                   "lines: [ 0  1  2  3  4\n"
                                   "  5  6  7  8  9\n"
                                   " 10 11]\n"
                                   "list: {{0,1}}\n"
                                   "short: [0.5  -3]\n"
                                   "exact: [ 5.00e-01 -3.00e+00]\n"
                                   "loose: [0.5 -3]\n"));
}

TEST(graphs_are_written_for_readers) {
  Fixture f;
  std::stringstream source(
      "#include <poplar/Vertex.hpp>\n"
      "class V : public poplar::Vertex { public: poplar::Output<float> out;\n"
      "  bool compute() { *out = 1; return true; } };\n");
  f.graph.addCodelets(source);
  const ComputeSet cs = f.graph.addComputeSet("the set");
  const VertexRef v = f.graph.addVertex(cs, "V", {{"out", f.variable("x", {4})[2]}});
  f.graph.setTileMapping(v, 5);
  Sequence s;
  s = Execute(cs);
  std::ostringstream json;
  f.graph.serialize(json, {s}, SerializationFormat::JSON);
  for (const char* part : {"\"the set\"", "\"tile\":5", "[0,2,3]", "Execute", "\"x\""})
    CHECK(json.str().find(part) != std::string::npos);
  std::ostringstream binary;
  f.graph.serialize(binary, SerializationFormat::Binary);
  CHECK(binary.str().find("the set") != std::string::npos);
}

TEST(tensors_are_written_and_read_back) {
  Fixture f;
  const Tensor a = f.variable("a", {4, 3});
  const Tensor b = f.variable("b", {2}, INT);
  std::stringstream file;
  f.graph.serializeTensors(file, {a.transpose(), b, a.slice(1, 1)}, SerializationFormat::Binary);
  Fixture g;
  const auto read = g.graph.deserializeTensors(file, SerializationFormat::Binary);
  CHECK_EQ(read.size(), 3u);
  CHECK(read[0].shape() == (std::vector<std::size_t>{3, 4}));
  CHECK_EQ(g.graph.getNumVars(), 3u);  // the last is empty, in none of the others
  CHECK_EQ(read[0].getVarRegions().size(), a.transpose().getVarRegions().size());
  CHECK(read[1].elementType() == INT);
  const std::string bytes = file.str();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::stringstream cut(bytes.substr(0, n));
    CHECK_THROWS(g.graph.deserializeTensors(cut, SerializationFormat::Binary), "deserialize");
  }
  std::stringstream text;
  f.graph.serializeTensors(text, {b}, SerializationFormat::JSON);
  CHECK(text.str().find("\"regions\":[[1,0,2]]") != std::string::npos);
  CHECK_THROWS(g.graph.deserializeTensors(text, SerializationFormat::JSON), "Binary");
}

TEST(aliases_are_named_where_they_are_removed) {
  Fixture f;
  const Tensor a = f.variable("a", {4});
  const Tensor t = concat({a, a.slice(1, 3), a});
  std::vector<std::size_t> aliases;
  const auto regions = f.graph.getSortedContiguousRegions(t, {Interval(0, 10)}, true, &aliases);
  CHECK_EQ(regions.size(), 1u);
  CHECK(regions[0] == std::vector<Interval>{Interval(0, 4)});
  CHECK(aliases == (std::vector<std::size_t>{1, 2, 0, 1, 2, 3}));
}

TEST(halves_of_the_host) {
  Fixture f;
  CHECK(TypeTraits::make<IeeeHalf>().type == HALF);
  CHECK_EQ(TypeTraits::make<IeeeHalf>().size, 2u);
  const Tensor t = f.graph.addConstant<IeeeHalf>(HALF, {2}, {IeeeHalf(0.5f), IeeeHalf(-3)});
  f.graph.setTileMapping(t, 0);
  const auto read = f.run<IeeeHalf>(t);
  CHECK_EQ(static_cast<float>(read[1]), -3.0f);
}

TEST(cycles_are_counted_on_several_ipus) {
  Fixture f(8, 2);
  const Tensor t = f.constant<float>({64}, std::vector<float>(64, 1));
  Sequence timed;
  popops::addInPlace(f.graph, t, t, timed);
  const Tensor count = cycleCount(f.graph, timed, 0, SyncType::INTERNAL);
  f.graph.createHostRead("count", count);
  f.prog.add(timed);
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  std::uint64_t cycles = 0;
  engine.readTensor("count", &cycles, &cycles + 1);
  CHECK(cycles > 10);
}

TEST(loops_go_on_by_integers) {
  for (const Type& type : {INT, UNSIGNED_INT, BOOL}) {
    Fixture f;
    const Tensor turns = f.variable("turns", {1}, INT);
    f.graph.setInitialValue(turns, std::vector<int>{0});
    const Tensor going = f.graph.addVariable(type, {1}, "going");
    f.graph.setTileMapping(going, 1);
    Sequence cond;
    const Tensor less = popops::lt(f.graph, turns, 5, cond);
    if (type == BOOL)
      cond.add(Copy(less, going));
    else
      cond.add(Copy(popops::cast(f.graph, less, type, cond), going));
    Sequence body;
    popops::addInPlace(f.graph, turns, 1, body);
    f.prog.add(RepeatWhileTrue(cond, going[0], body));
    Engine engine(f.graph, f.prog);
    engine.loadAndRun(f.device);
    CHECK_EQ(f.read<int>(engine, "turns", 1)[0], 5);
  }
}

// Long: codelets in the many styles of public sources, in one program.
TEST(codelets_as_people_write_them) {
  Fixture f;
  std::stringstream source(R"cpp(
#include <poplar/Vertex.hpp>
#include <cmath>
#include <cstddef>
#ifdef __POPC__
#include <print.h>
#endif
    using namespace poplar;
    static constexpr auto SPAN = VectorLayout::SPAN;
    template <typename T>
    T twice(T x) {
      return x + x;
    }
    class Sums : public Vertex {
      Input<Vector<float, SPAN, 8>> values;
      Vector<Input<Vector<float, VectorLayout::ONE_PTR>>> rows;
      const unsigned n;
      Output<float> out;
      Output<unsigned long long> long_one;

     public:
      Sums();
      bool compute() {
        float sum = 0;
        for (auto x : values) sum += twice(x);
        for (unsigned r = 0; r < rows.size(); ++r)
          for (unsigned i = 0; i < n; ++i) sum += rows[r][i];
        *out = std::sqrt(sum);
        *long_one = 1ull << 40;
        return true;
      }
    };
    template <class T>
    struct Scaled : public MultiVertex {
      InOut<Vector<T, SPAN>> data;
      T by;
      bool compute(unsigned worker) {
        for (std::size_t i = worker; i < data.size(); i += MultiVertex::numWorkers()) data[i] *= by;
        return true;
      }
    };
    template class Scaled<float>;
    template class Scaled<int>;
    class [[poplar::constraint("elem(*data)!=elem(*other)")]] Swap : public SupervisorVertex {
     public:
      InOut<Vector<int>> data;
      InOut<Vector<int>> other;
      bool compute() {
        for (unsigned i = 0; i < data.size(); ++i) {
          const int kept = data[i];
          data[i] = other[i];
          other[i] = kept;
        }
        return true;
      }
    };
  )cpp");
  f.graph.addCodelets(source, "-O3");
  ComputeSet cs = f.graph.addComputeSet("cs");
  const Tensor values = f.constant<float>({4}, {1, 2, 3, 2});
  const Tensor out = f.variable("out", {2});
  const Tensor large = f.variable("large", {1}, UNSIGNED_LONGLONG);
  const auto v = f.graph.addVertex(cs, "Sums",
                                   {{"values", values},
                                    {"rows", values.reshape({2, 2})},
                                    {"n", std::size_t{2}},
                                    {"out", out[0]},
                                    {"long_one", large[0]}});
  f.graph.setTileMapping(v, 3);
  const Tensor data = f.variable("data", {3}, INT);
  f.graph.setInitialValue(data, std::vector<int>{1, 2, 3});
  const Tensor other = f.variable("other", {3}, INT);
  f.graph.setInitialValue(other, std::vector<int>{7, 8, 9});
  ComputeSet later = f.graph.addComputeSet("later");
  const auto swap = f.graph.addVertex(later, "Swap");
  f.graph.connect(swap["data"], data);
  f.graph.connect(swap["other"], other);
  f.graph.setTileMapping(swap, 0);
  ComputeSet last = f.graph.addComputeSet("last");
  const auto scaled = f.graph.addVertex(last, "Scaled<int>", {{"data", data}});
  f.graph.setInitialValue(scaled["by"], 10);
  f.graph.setTileMapping(scaled, 0);
  f.graph.setPerfEstimate(scaled, 100);
  f.prog = Sequence(Execute(cs), Execute(later), Execute(last));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_NEAR(f.read(engine, "out", 2)[0], std::sqrt(24.0), 1e-6);
  CHECK_EQ(f.read<unsigned long long>(engine, "large", 1)[0], 1ull << 40);
  CHECK(f.read<int>(engine, "data", 3) == (std::vector<int>{70, 80, 90}));
  CHECK(f.read<int>(engine, "other", 3) == (std::vector<int>{1, 2, 3}));
}

TEST(streams_are_connected_again_between_runs) {
  Fixture f;
  const Tensor t = f.variable("t", {2});
  const auto in = f.graph.addHostToDeviceFIFO("in", FLOAT, 2);
  const auto out = f.graph.addDeviceToHostFIFO("out", FLOAT, 2);
  Engine engine(f.graph, {Copy(in, t), Copy(t, out)});
  std::vector<float> first{1, 2};
  std::vector<float> second{3, 4};
  std::vector<float> result(2);
  engine.connectStream("in", first.data());
  engine.load(f.device);
  engine.connectStream("out", result.data(), result.data() + 2);
  engine.run(0);
  engine.run(1);
  CHECK(result == first);
  engine.connectStream("in", second.data(), second.data() + 2);
  engine.run(0);
  engine.run(1);
  CHECK(result == second);
  int calls = 0;
  engine.connectStreamToCallback("in", [&calls](void* p) {
    ++calls;
    static_cast<float*>(p)[0] = 9;
    static_cast<float*>(p)[1] = 8;
  });
  engine.run(0);
  engine.run(1);
  CHECK_EQ(calls, 1);
  CHECK(result == (std::vector<float>{9, 8}));
}

TEST(an_executable_with_codelets_is_kept_in_a_file) {
  std::stringstream file;
  {
    Fixture f;
    std::stringstream source(
        "#include <poplar/Vertex.hpp>\n"
        "struct Kept : poplar::Vertex { poplar::Output<float> out; float by;\n"
        "  bool compute() { *out = by; return true; } };\n");
    f.graph.addCodelets(source);
    const ComputeSet cs = f.graph.addComputeSet();
    const auto v = f.graph.addVertex(cs, "Kept");
    f.graph.connect(v["out"], f.variable("x", {1})[0]);
    f.graph.setInitialValue(v["by"], 2.5f);
    f.graph.setTileMapping(v, 1);
    compileGraph(f.graph, {Execute(cs)}).serialize(file);
  }
  Engine engine(Executable::deserialize(file));
  engine.loadAndRun(Fixture::modelOf(8, 1));
  float x = 0;
  engine.readTensor("x", &x, &x + 1);
  CHECK_EQ(x, 2.5f);
}

TEST(remote_buffers_are_indexed_by_integers) {
  Fixture f(8, 2);
  const auto buffer = f.graph.addRemoteBuffer("buffer", FLOAT, 4, 3);
  const Tensor t = f.variable("t", {4});
  const Tensor at = f.constant<int>({1}, {2});
  f.prog.add(Copy(f.constant<float>({4}, {1, 2, 3, 4}), buffer, at));
  f.prog.add(Copy(buffer, t, at));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK(f.read(engine, "t", 4) == (std::vector<float>{1, 2, 3, 4}));
  std::vector<float> host(4);
  engine.copyFromRemoteBuffer("buffer", host.data(), 2);
  CHECK_EQ(host[3], 4.0f);
  CHECK_THROWS(engine.copyFromRemoteBuffer("b", host.data(), 2), "a remote buffer; got 'b'");
}

TEST(entries_of_remote_buffers_are_counted) {
  for (const std::size_t entries : {1, 3}) {
    Fixture f(8);
    const auto buffer = f.graph.addRemoteBuffer("buffer", FLOAT, 4, entries);
    const Tensor t = f.variable("t", {4});
    f.prog.add(Copy(buffer, t, f.constant<int>({1}, {0})));
    Engine engine(f.graph, f.prog);
    engine.load(f.device);
    const std::vector<float> values{1, 2, 3, 4};
    std::vector<float> got(4);
    engine.copyToRemoteBuffer(values.data(), "buffer", entries - 1);
    engine.copyFromRemoteBuffer("buffer", got.data(), entries - 1);
    CHECK(got == values);
    const std::string count = "one of the " + std::to_string(entries) + " entries";
    const auto beyond = (std::uint64_t{1} << 32) + 1;
    CHECK_THROWS(engine.copyToRemoteBuffer(values.data(), "buffer", entries), count);
    CHECK_THROWS(engine.copyFromRemoteBuffer("buffer", got.data(), beyond), count);
  }
}

TEST(copies_of_entries_beyond_the_last_end_the_run) {
  for (const bool reads : {true, false}) {
    Fixture f(8);
    const auto buffer = f.graph.addRemoteBuffer("buffer", FLOAT, 4, 3);
    const Tensor t = f.variable("t", {4});
    const Tensor at = f.variable("at", {1}, INT);
    f.graph.createHostWrite("set", at);
    f.graph.createHostWrite("give", t);
    f.prog.add(reads ? Copy(buffer, t, at) : Copy(t, buffer, at));
    Engine engine(f.graph, f.prog);
    engine.load(f.device);
    const std::vector<float> values{1, 2, 3, 4};
    engine.copyToRemoteBuffer(values.data(), "buffer", 2);
    engine.writeTensor("give", values.data(), values.data() + 4);
    for (const int beyond : {3, -1}) {
      engine.writeTensor("set", &beyond, &beyond + 1);
      CHECK_THROWS(engine.run(), "offsets from 0 to 2");
    }
    const int last = 2;
    engine.writeTensor("set", &last, &last + 1);
    engine.run();
    CHECK(f.read(engine, "t", 4) == values);
  }
}
