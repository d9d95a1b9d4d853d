#include <cmath>
#include <poplin/MatMul.hpp>
#include <popnn/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>

#include "Check.hpp"
#include "Codelets.hpp"

/// More programs in the style of public ones: stencils, sums by workers that wait for one another,
/// a cache over a remote buffer, attention by blocks.
using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

namespace {

constexpr const char* kStencil = R"src(
  #include <poplar/Vertex.hpp>
  #include <cstddef>
  #include <print.h>
  #include <math.h>
  #include <ipudef.h>
  using namespace poplar;
  template <typename T>
  T stencil(const T n, const T w, const T m, const T e, const T s) {
    return (n + w + m + e + s) / 5;
  }
  template <typename T>
  class Fill : public Vertex {
   public:
    Output<Vector<T>> result;
    Input<T> val;
    bool compute() {
      for (auto i = 0; i < result.size(); i++) result[i] = *val;
      return true;
    }
  };
  template class Fill<float>;
  template <typename T>
  class IncludedHalos : public Vertex {
   public:
    Input<VectorList<T, poplar::VectorListLayout::COMPACT_DELTAN, 4, false>> in;
    Output<VectorList<T, poplar::VectorListLayout::COMPACT_DELTAN, 4, false>> out;
    bool compute() {
      for (auto y = 1u; y < in.size() - 1; y++)
        for (auto x = 1u; x < in[y].size() - 1; x++)
          out[y - 1][x - 1] =
              stencil(in[y - 1][x], in[y][x - 1], in[y][x], in[y][x + 1], in[y + 1][x]);
      return true;
    }
  };
  template class IncludedHalos<float>;
)src";

}  // namespace

// A stencil on a 2 by 2 grid of tiles, whose vertices read their neighbours' edges in place.
// Long: one program.
TEST(stencils_take_halos_of_their_neighbours) {
  Fixture f;
  add(f, kStencil);
  const std::size_t n = 3;
  Graph& graph = f.graph;
  const Tensor in = graph.addVariable(FLOAT, {2 * n, 2 * n}, "in");
  const Tensor out = graph.addVariable(FLOAT, {2 * n, 2 * n}, "out");
  const auto zeros = std::vector<float>(n, 0.f);
  const ComputeSet init = graph.addComputeSet("init");
  ComputeSet step1 = graph.addComputeSet("step1"), step2 = graph.addComputeSet("step2");
  for (auto tile = 0u; tile < 4; tile++) {
    const std::size_t row = tile / 2 * n, col = tile % 2 * n;
    const auto block = [=](const Tensor& t) { return t.slice({row, col}, {row + n, col + n}); };
    graph.setTileMapping(block(in), tile);
    graph.setTileMapping(block(out), tile);
    auto v = graph.addVertex(init, "Fill<float>",
                             {{"result", block(in).flatten()}, {"val", (float)tile + 1}});
    graph.setCycleEstimate(v, 100);
    graph.setTileMapping(v, tile);
    const Tensor border = graph.addConstant(FLOAT, {n}, zeros.data(), "{0...}");
    const Tensor corner = graph.addConstant(FLOAT, {1, 1}, 0.f, "0");
    graph.setTileMapping(border, tile);
    graph.setTileMapping(corner, tile);
    const auto rowAt = [&](const Tensor& t, std::size_t at) {
      return t.slice({at, col}, {at + 1, col + n});
    };
    const auto colAt = [&](const Tensor& t, std::size_t at) {
      return t.slice({row, at}, {row + n, at + 1});
    };
    const auto stitched = [&](const Tensor& t) {
      const Tensor north = row > 0 ? rowAt(t, row - 1) : border.reshape({1, n});
      const Tensor south = row == 0 ? rowAt(t, row + n) : border.reshape({1, n});
      const Tensor west = col > 0 ? colAt(t, col - 1) : border.reshape({n, 1});
      const Tensor east = col == 0 ? colAt(t, col + n) : border.reshape({n, 1});
      return concat({concat({corner, west, corner}), concat({north, block(t), south}),
                     concat({corner, east, corner})},
                    1);
    };
    v = graph.addVertex(step1, "IncludedHalos<float>", {{"in", stitched(in)}, {"out", block(out)}});
    graph.setTileMapping(v, tile);
    v = graph.addVertex(step2, "IncludedHalos<float>", {{"in", stitched(out)}, {"out", block(in)}});
    graph.setTileMapping(v, tile);
  }
  graph.createHostRead("in", in);
  std::vector<Program> programs{Execute(init), Repeat{3, Sequence(Execute(step1), Execute(step2))}};
  Engine engine(graph, programs);
  engine.load(f.device);
  engine.run(0);
  engine.run(1);
  std::vector<float> want(36), next(36), got(36);
  for (std::size_t i = 0; i < 36; ++i) want[i] = static_cast<float>(i / 6 / n * 2 + i % 6 / n + 1);
  const auto at = [&](int y, int x) {
    return y < 0 || x < 0 || y > 5 || x > 5 ? 0.f : want[static_cast<std::size_t>(y * 6 + x)];
  };
  for (int turn = 0; turn < 6; ++turn) {
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 6; ++x)
        next[static_cast<std::size_t>(y * 6 + x)] =
            (at(y - 1, x) + at(y, x - 1) + at(y, x) + at(y, x + 1) + at(y + 1, x)) / 5;
    want = next;
  }
  engine.readTensor("in", got.data(), got.data() + 36);
  for (std::size_t i = 0; i < 36; ++i) CHECK_NEAR(got[i], want[i], 1e-6);
}

// A product of vectors in parts: workers share static memory, and the last one waits.
TEST(workers_wait_for_the_parts_of_others) {
  Fixture f;
  add(f, R"src(
    #include <poplar/Vertex.hpp>
    #include <print.h>
    #include <poplar/StackSizeDefs.hpp>
    class [[poplar::constraint("elem(*input1) != elem(*input2)")]] Dot
        : public poplar::MultiVertex {
     public:
      poplar::Input<poplar::Vector<float, poplar::VectorLayout::SPAN, 16, true>> input1;
      poplar::Input<poplar::Vector<float, poplar::VectorLayout::SPAN, 16, true>> input2;
      poplar::Output<float> output;
      static float partials[numWorkers()];
      static volatile unsigned done[numWorkers()];
      bool compute(unsigned workerId) {
        partials[workerId] = 0.f;
        done[workerId] = 0;
        auto each = input1.size() / numWorkers();
        auto left = input1.size() - each * numWorkers();
        for (auto i = workerId; i < left; i += numWorkers())
          partials[workerId] += input1[i] * input2[i];
        const auto start = left + workerId * each;
        const auto end = start + each;
        for (auto i = start; i < end; ++i) partials[workerId] += input1[i] * input2[i];
        done[workerId] = 1;
        if (workerId == 5) {
          for (auto i = 0u; i < numWorkers(); ++i) while (!done[i]);
          *output = 0.f;
          for (auto i = 0u; i < numWorkers(); ++i) *output += partials[i];
        }
        return true;
      }
    };
    float Dot::partials[];
    volatile unsigned Dot::done[];
  )src");
  const std::vector<float> ones(31, 1.5f);
  const Tensor a = f.constant<float>({31}, ones), b = f.constant<float>({31}, ones);
  const Tensor out = f.variable("out", {});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, "Dot", {{"input1", a}, {"input2", b}});
  f.graph.connect(v["output"], out);
  f.graph.setTileMapping(v, 3);
  f.prog.add(Execute(cs));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "out", 1)[0], 31 * 2.25f);
}

// A cache: lines of a remote buffer pass through tiles for input and output to their places.
TEST(caches_fetch_lines_of_remote_buffers) {
  Fixture f;
  constexpr std::size_t kLines = 10, kCached = 4, kLine = 6, kFetched = 2;
  std::vector<unsigned> io{0, 1}, compute{2, 3, 4, 5, 6, 7};
  Graph ioGraph = f.graph.createVirtualGraph(io),
        computeGraph = f.graph.createVirtualGraph(compute);
  const RemoteBuffer buffer = computeGraph.addRemoteBuffer("features", INT, kLine, kLines);
  const Tensor resident = popops::createSliceableTensor(computeGraph, INT, {kCached, kLine}, {0},
                                                        {1}, {}, {}, "resident");
  const Tensor from = ioGraph.addVariable(UNSIGNED_INT, {kFetched}, VariableMappingMethod::LINEAR);
  const Tensor to = ioGraph.addVariable(UNSIGNED_INT, {kFetched, 1}, VariableMappingMethod::LINEAR);
  const Tensor ioFetched = ioGraph.addVariable(INT, {kFetched, kLine}, "io_fetched");
  poputil::mapTensorLinearly(ioGraph, ioFetched);
  const Tensor fetched = computeGraph.clone(ioFetched.expand({1}), "fetched");
  poputil::mapTensorLinearly(computeGraph, fetched);
  const DataStream offsets = f.graph.addHostToDeviceFIFO("offsets", UNSIGNED_INT, kFetched);
  const DataStream places = f.graph.addHostToDeviceFIFO("places", UNSIGNED_INT, kFetched);
  popops::zero(f.graph, resident, f.prog);
  Sequence update({Copy(offsets, from), Copy(places, to), Copy(buffer, ioFetched, from, "fetch"),
                   Copy(ioFetched.expand({1}), fetched)});
  popops::multiUpdate(computeGraph, resident, fetched, to, {0}, {1}, update, {}, {}, "scatter");
  f.graph.createHostRead("resident", resident);
  Engine engine(f.graph, {f.prog, update});
  engine.load(f.device);
  for (int line = 0; line < static_cast<int>(kLines); ++line) {
    std::vector<int> values(kLine, 100 + line);
    engine.copyToRemoteBuffer(values.data(), "features", static_cast<unsigned>(line));
  }
  std::vector<unsigned> lines{7, 2}, slots{3, 0};
  engine.connectStream("offsets", lines.data());
  engine.connectStream("places", slots.data());
  engine.run(0);
  engine.run(1);
  const auto kept = f.read<int>(engine, "resident", kCached * kLine);
  for (std::size_t i = 0; i < kCached; ++i)
    CHECK_EQ(kept[i * kLine + 5], i == 3 ? 107 : i == 0 ? 102 : 0);
}

// Attention by blocks: nested loops that slice by counters, a running maximum and sum.
// Long: one program.
TEST(attention_runs_by_blocks) {
  Fixture f;
  Graph& graph = f.graph;
  popops::addCodelets(graph);
  popnn::addCodelets(graph);
  constexpr std::size_t kGroups = 2, kLength = 6, kDim = 4, kBlocks = 3, kEach = kLength / kBlocks;
  std::mt19937 random(1);
  std::vector<std::vector<float>> values;
  std::vector<Tensor> qkv;
  const DebugContext dc("attention");
  for (int i = 0; i < 3; ++i) {
    values.push_back(randomFloats(random, kGroups * kLength * kDim));
    const Tensor t = f.constant<float>({kGroups, kLength, kDim}, values.back());
    const Tensor blocks = popops::createSliceableTensor(
        graph, FLOAT, {kBlocks, kGroups, kEach, kDim}, {0}, {1}, 4, {dc, "blocks"});
    f.prog.add(Copy(t.reshape({kGroups, kBlocks, kEach, kDim}).dimShuffle({1, 0, 2, 3}), blocks));
    qkv.push_back(blocks);
  }
  const Tensor out = graph.clone(qkv[0], {dc, "out"});
  popops::zero(graph, out, f.prog, {dc, "zero"});
  std::vector<Tensor> counters;
  for (const char* name : {"i", "j"}) {
    counters.push_back(graph.addVariable(UNSIGNED_INT, {1}, {dc, name}));
    poputil::mapTensorLinearly(graph, counters.back());
    popops::zero(graph, counters.back(), f.prog, {dc, name});
  }
  Sequence outer;
  const auto at = [&](const Tensor& t, const Tensor& i, Sequence& prog) {
    return popops::dynamicSlice(graph, t, i, {0}, {1}, prog, {dc, "at"}).squeeze({0});
  };
  const Tensor q = at(qkv[0], counters[0], outer), o = at(out, counters[0], outer);
  const Tensor most = graph.addVariable(FLOAT, {kGroups, kEach}, VariableMappingMethod::LINEAR);
  const Tensor sums = graph.clone(most);
  popops::fill(graph, most, outer, -10000, {dc, "fill"});
  popops::zero(graph, sums, outer);
  Sequence inner, block;
  const Tensor seen = popops::map(graph, (pe::_1 + 1) * unsigned(kEach) > pe::_2 * unsigned(kEach),
                                  {counters[0], counters[1]}, inner, {dc, "is seen"})[0];
  const Tensor k = at(qkv[1], counters[1], block), v = at(qkv[2], counters[1], block);
  const Tensor t =
      poplin::matMulGrouped(graph, q, k.dimShuffle({0, 2, 1}), block, FLOAT, {dc, "qk"});
  Tensor maxima = popops::reduce(graph, t, FLOAT, {2}, {popops::Operation::MAX}, block);
  maxima = popops::max(graph, most, maxima, block, {dc, "max"});
  const Tensor c = popops::map(graph, pe::Exp(pe::_1 - pe::_2), {most, maxima}, block);
  block.add(Copy(maxima, most));
  popops::subInPlace(graph, t, maxima.expand({2}), block);
  popops::expInPlace(graph, t, block);
  const Tensor s = popops::reduce(graph, t, FLOAT, {2}, {popops::Operation::ADD}, block);
  block.add(Copy(popops::map(graph, pe::_1 * pe::_2 + pe::_3, {sums, c, s}, block), sums));
  popops::mulInPlace(graph, o, c.expand({2}), block);
  poplin::matMulGroupedAcc(graph, o, 1.0, t, v, block, {dc, "o += t v"});
  inner.add(If(seen, block, Sequence()));
  popops::mapInPlace(graph, pe::_1 + 1, {counters[1]}, inner, {dc, "j += 1"});
  outer.add(Repeat(qkv[1].dim(0), inner, {dc, "inner"}));
  popops::divInPlace(graph, o, sums.expand({2}), outer);
  popops::dynamicUpdate(graph, out, o.expand({0}), counters[0], {0}, {1}, outer, {dc, "set"});
  popops::mapInPlace(graph, (pe::_1 + 1) % unsigned(kBlocks), {counters[0]}, outer);
  popops::zero(graph, counters[1], outer);
  f.prog.add(Repeat(qkv[0].dim(0), outer));
  const auto got = f.run(out.dimShuffle({1, 0, 2, 3}).reshape({kGroups, kLength, kDim}));
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t i = 0; i < kLength; ++i) {
      const auto of = [&](int which, std::size_t at, std::size_t d) {
        return values[static_cast<std::size_t>(which)][(g * kLength + at) * kDim + d];
      };
      double total = 0;
      std::vector<double> want(kDim, 0);
      for (std::size_t j = 0; j < (i / kEach + 1) * kEach; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < kDim; ++d) score += of(0, i, d) * of(1, j, d);
        total += std::exp(score);
        for (std::size_t d = 0; d < kDim; ++d) want[d] += std::exp(score) * of(2, j, d);
      }
      for (std::size_t d = 0; d < kDim; ++d)
        CHECK_NEAR(got[(g * kLength + i) * kDim + d], want[d] / total, 1e-4);
    }
  }
}
