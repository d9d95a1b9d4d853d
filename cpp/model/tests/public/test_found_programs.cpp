#include <algorithm>
#include <limits>
#include <poplar/CycleCount.hpp>
#include <poplar/DeviceManager.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>

#include "Check.hpp"
#include "Codelets.hpp"

/// Small programs in the style of public ones, which use the same features.
using namespace poplar;
using namespace poplar::program;

namespace {

/// The elements of a tensor after the program has run.
template <class T = float>
std::vector<T> after(Fixture& f, const Tensor& t) {
  f.graph.createHostRead("after", t);
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  return f.read<T>(engine, "after", t.numElements());
}

}  // namespace

// An assignment solver: void compute(), edges of single numbers used as numbers.
// Long: one program.
TEST(assignment_steps_run) {
  Fixture f;
  add(f, R"src(
    #include <poplar/Vertex.hpp>
    #include <print.h>
    #include <poplar/VectorListTypes.hpp>
    #include <ipu_builtins.h>
    #include <float.h>
    using namespace poplar;
    class Uncovered : public Vertex {
     public:
      InOut<Vector<float, VectorLayout::SPAN, 8>> row;
      Input<Vector<float, VectorLayout::SPAN, 8>> cover;
      Input<float> least;
      Input<int> covered;
      Output<float> smallest;
      InOut<int> done;
      void compute() {
        const int n = row.size();
        auto n2 = n / 2;
        if (covered == 1) { *smallest = FLT_MAX; return; }
        const float2 by = {least, least}, far = {FLT_MAX, FLT_MAX};
        float2 low = far;
        float2* row2 = (float2*)&row[0];
        float2* cover2 = (float2*)&cover[0];
        #pragma clang loop unroll_count(3)
        for (rptsize_t i = 0; i < n2; i++) {
          row2[i] -= (1.f - cover2[i]) * by;
          float2 values = row2[i];
          values += cover2[i] * far;
          low = __builtin_ipu_min(values, low);
        }
        *smallest = __builtin_ipu_min(low[0], low[1]);
        if (n % 2 && cover[n - 1] == 0.f && row[n - 1] < *smallest) *smallest = row[n - 1];
        if (done == covered) *done = true; else *done = false;
      }
    };
    class Pick : public MultiVertex {
     public:
      Input<Vector<int>> t;
      Input<int> index;
      InOut<Vector<int>> all;
      Output<int> picked;
      void compute(unsigned workId) {
        for (std::size_t i = workId; i < all.size(); i += MultiVertex::numWorkers())
          all[i] = t[index % 4];
        if (workId == 0) *picked = t[index / 4];
      }
    };)src");
  const Tensor row = f.variable("row", {5});
  f.graph.setInitialValue(row, std::vector<float>{5, 4, 9, 3, 1});
  const Tensor cover = f.constant<float>({5}, {0, 1, 0, 0, 0});
  const Tensor least = f.constant<float>({}, {1}), covered = f.constant<int>({}, {0});
  const Tensor smallest = f.variable("smallest", {}), done = f.variable("done", {}, INT);
  f.graph.setInitialValue(done, 0);
  const ComputeSet cs = f.graph.addComputeSet("uncover");
  const VertexRef v = f.graph.addVertex(
      cs, "Uncovered",
      {{"row", row}, {"cover", cover}, {"least", least}, {"covered", covered}, {"done", done}});
  f.graph.connect(v["smallest"], smallest);
  f.graph.setTileMapping(v, 0);
  const Tensor all = f.variable("all", {3}, INT), picked = f.variable("picked", {}, INT);
  const VertexRef p = f.graph.addVertex(cs, "Pick", {{"all", all}, {"picked", picked}});
  f.graph.connect(p["t"], f.constant<int>({4}, {10, 20, 30, 40}));
  f.graph.connect(p["index"], f.constant<int>({}, {7}));
  f.graph.setTileMapping(p, 1);
  f.prog.add(Execute(cs));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK(f.read(engine, "row", 5) == (std::vector<float>{4, 4, 8, 2, 1}));
  CHECK_EQ(f.read(engine, "smallest", 1)[0], 1.0f);
  CHECK_EQ(f.read<int>(engine, "done", 1)[0], 1);
  CHECK(f.read<int>(engine, "all", 3) == (std::vector<int>{40, 40, 40}));
  CHECK_EQ(f.read<int>(engine, "picked", 1)[0], 20);
}

// A sequence aligner: own min and max, a counter that workers share, Input<size_t>, private fields.
// Long: one program.
TEST(aligners_share_work_among_workers) {
  Fixture f;
  add(f, R"src(
    #include <ipu_builtins.h>
    #include <poplar/AvailableVTypes.h>
    #include <print.h>
    #include <poplar/FieldTypes.hpp>
    #include <poplar/HalfFloat.hpp>
    #include <poplar/StackSizeDefs.hpp>
    #include <poplar/Vertex.hpp>
    #include <ipu_memory_intrinsics>
    #include <type_traits>
    #include "poplar/TileConstants.hpp"
    inline int max(int a, int b) { return a > b ? a : b; }
    inline int min(int a, int b) { return a > b ? b : a; }
    typedef float sType;
    struct Meta { int begin, length; };
    void inline clear(sType* ptr, int N) {
      const float2 zero = {-9999, -9999};
      const rptsize_t loopCount = N / 2;
      float2* o = reinterpret_cast<float2*>(ptr);
      for (unsigned i = 0; i < loopCount; i++) ipu::store_postinc(&o, zero, 1);
    }
    template <int X>
    class Extend : public poplar::MultiVertex {
     private:
      poplar::Output<poplar::Vector<sType, poplar::VectorLayout::ONE_PTR, 8>> K;
     public:
      poplar::Vector<poplar::Input<poplar::Vector<sType, poplar::VectorLayout::ONE_PTR>>> matrix;
      poplar::Input<size_t> n;
      poplar::Input<poplar::Vector<int, poplar::VectorLayout::ONE_PTR>> Seqs;
      poplar::Input<poplar::Vector<int, poplar::VectorLayout::ONE_PTR>> Metas;
      poplar::Output<poplar::Vector<int, poplar::VectorLayout::ONE_PTR>> score;
      poplar::Output<poplar::Vector<int, poplar::VectorLayout::ONE_PTR>> range;
     private:
      int currentN;
     public:
      bool compute(unsigned workerId) {
        uint8_t* seqs = (uint8_t*)&(Seqs[0]);
        volatile int* globalN = &currentN;
        *globalN = 6;
        int mine = workerId;
        const Meta* metas = reinterpret_cast<const Meta*>(&Metas[0]);
        if (workerId == 0) memset((char*)&score[0], 0, n * sizeof(score[0]));
        for (; mine < n;) {
          const Meta meta = metas[mine];
          if (meta.length == 0) break;
          clear(&K[workerId * 4], 4);
          for (int i = 0; i < workerId * 5; i++) asm volatile("nop" ::: "memory");
          int sum = 0;
          for (int i = 0; i < meta.length; ++i) sum = max(sum, min(seqs[meta.begin + i], X));
          range[mine] = sum + matrix[1][0] + (K[workerId * 4] == -9999);
          mine = *globalN;
          *globalN = mine + 1;
        }
        return true;
      }
    };
    template class Extend<5>;
    template class Extend<100>;)src");
  std::vector<int> metas;
  for (int i = 0; i < 9; ++i) metas.insert(metas.end(), {i, 3});
  const std::vector<unsigned char> letters{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 0};
  std::vector<int> packed(3);
  std::copy(letters.begin(), letters.end(), reinterpret_cast<unsigned char*>(packed.data()));
  const Tensor score = f.variable("score", {9}, INT), range = f.variable("range", {9}, INT);
  const Tensor k = f.variable("k", {24});
  const ComputeSet cs = f.graph.addComputeSet();
  const VertexRef v = f.graph.addVertex(cs, poputil::templateVertex("Extend", 5));
  f.graph.connect(v["K"], k);
  f.graph.connect(v["matrix"], f.constant<float>({2, 1}, {100, 200}));
  f.graph.connect(v["n"], f.constant<unsigned>({}, {9}));
  f.graph.connect(v["Seqs"], f.constant<int>({3}, packed));
  f.graph.connect(v["Metas"], f.constant<int>({18}, metas));
  f.graph.connect(v["score"], score);
  f.graph.connect(v["range"], range);
  f.graph.setTileMapping(v, 2);
  f.prog.add(Execute(cs));
  CHECK(after<int>(f, range) == (std::vector<int>{204, 205, 206, 206, 206, 206, 206, 206, 206}));
}

// A renderer: structures in bytes, workers at a barrier, constants by another type of the host.
// Long: one program.
TEST(renderers_keep_structures_in_bytes) {
  Fixture f;
  add(f, R"src(
    #include <poplar/Vertex.hpp>
    #include <ipudef.h>
    #include <ipu_builtins.h>
    #include <ipu_vector_math>
    #include <ipu_memory_intrinsics>
    #define NW 6
    struct __attribute__((packed)) Ray { uint16_t x, y; float t; half d; uint16_t next; };
    class Tracer : public poplar::MultiVertex {
     public:
      poplar::Input<unsigned short> tile_id;
      poplar::Input<poplar::Vector<uint8_t>> raysIn;
      poplar::InOut<poplar::Vector<uint8_t>> raysOut;
      poplar::InOut<unsigned> exec_count;
      poplar::InOut<poplar::Vector<unsigned>> flags;
      poplar::Output<float> result;
      [[poplar::constraint("elem(*raysIn)!=elem(*raysOut)")]]
      [[poplar::constraint("elem(*flags)!=elem(*raysOut)")]]
      bool compute(unsigned workerId) {
        const unsigned count = raysOut.size() / sizeof(Ray);
        const uint16_t mine = *tile_id;
        for (uint16_t i = workerId; i < count; i += NW) {
          const Ray* in = read<Ray>(raysIn, i);
          Ray* out = reinterpret_cast<Ray*>(raysOut.data() + i * sizeof(Ray));
          std::memcpy(out, in, sizeof(Ray));
          const float alpha = 1.f - __builtin_ipu_exp(-in->t);
          out->d = __builtin_ipu_f32tof16(__builtin_ipu_max(alpha, 0.25f));
          out->x = in->x % mine + tile_id / 2;
        }
        barrier(1, workerId);
        if (workerId == 0) {
          *exec_count = *exec_count + 1;
          *result = __builtin_ipu_f16tof32(read<Ray>(raysIn, 0)->d) + __builtin_ipu_ln(1.f);
        }
        return true;
      }

     private:
      template <typename T>
      [[gnu::always_inline]] inline const T* read(
          const poplar::Input<poplar::Vector<uint8_t>>& buffer, std::size_t index) {
        return reinterpret_cast<const T*>(buffer.data() + index * sizeof(T));
      }
      void barrier(unsigned phase, unsigned workerId) {
        volatile unsigned* all = flags.data();
        asm volatile("" ::: "memory");
        while (true) {
          all[workerId] = phase;
          bool reached = true;
          for (unsigned i = 0; i < NW; ++i)
            if (all[i] < phase) {
              reached = false;
              break;
            }
          if (reached) break;
        }
        asm volatile("" ::: "memory");
      }
    };)src");
  constexpr std::size_t kBytes = 12, kRays = 7, tid = 3;
  const Tensor in = f.graph.addVariable(UNSIGNED_CHAR, {kRays * kBytes}, "rays_in");
  const Tensor out = f.graph.addVariable(UNSIGNED_CHAR, {kRays * kBytes}, "rays_out");
  std::vector<unsigned char> bytes(kRays * kBytes, 0);
  for (std::size_t i = 0; i < kRays; ++i) bytes[i * kBytes] = static_cast<unsigned char>(10 + i);
  f.graph.setInitialValue(in, ArrayRef<unsigned char>(bytes));
  f.graph.setInitialValue(out, ArrayRef<unsigned char>(bytes));
  f.graph.setTileMapping(in, tid);
  f.graph.setTileMapping(out, tid);
  const Tensor counts = f.graph.addVariable(UNSIGNED_INT, {8}, "counts");
  poputil::mapTensorLinearlyWithOffset(f.graph, counts, 0);
  f.graph.setInitialValue(counts, ArrayRef<unsigned>({1, 1, 1, 1, 1, 1, 1, 1}));
  const Tensor result = f.graph.clone(f.variable("like", {1}), "result");
  f.graph.setTileMapping(result, tid);
  const Tensor flags = f.constant<unsigned>({6}, std::vector<unsigned>(6, 0));
  const ComputeSet cs = f.graph.addComputeSet("trace");
  const VertexRef v = f.graph.addVertex(cs, "Tracer");
  const Tensor id = f.graph.addConstant(UNSIGNED_SHORT, {}, static_cast<unsigned>(tid));
  f.graph.setTileMapping(id, tid);
  f.graph.connect(v["tile_id"], id);
  f.graph.connect(v["raysIn"], in);
  f.graph.connect(v["raysOut"], out);
  f.graph.connect(v["exec_count"], counts.slice({tid}, {tid + 1}).reshape({}));
  f.graph.connect(v["flags"], flags);
  f.graph.connect(v["result"], result[0]);
  f.graph.setTileMapping(v, tid);
  f.prog.add(Execute(cs));
  f.prog.add(Copy(out, in, /*dontOutline*/ true, DebugContext{"rays/next"}));
  f.prog.add(Execute(cs));
  f.graph.createHostRead("counts", counts);
  const std::vector<unsigned char> rays = after<unsigned char>(f, out);
  for (std::size_t i = 0; i < kRays; ++i)
    CHECK_EQ(unsigned{rays[i * kBytes]}, ((10 + i) % 3 + 1) % 3 + 1);
  CHECK_EQ(unsigned{rays[9]}, 0x34u);  // the half 0.25
}

// A breadth-first search of a graph: loops until a flag, several reductions at once.
TEST(searches_repeat_while_a_flag_is_false) {
  Fixture f;
  add(f, R"src(
    #include <climits>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    class Frontier : public MultiVertex {
     public:
      Input<VectorList<int, VectorListLayout::DELTANELEMENTS>> rows;
      Input<Vector<int>> seen;
      InOut<Vector<int>> dist;
      Input<unsigned int> iteration;
      Output<Vector<bool>> still;
      auto compute(unsigned workerId) -> bool {
        for (rptsize_t row = workerId; row < rows.size(); row += MultiVertex::numWorkers()) {
          still[row] = true;
          if (dist[row] != INT_MAX) continue;
          for (rptsize_t n = 0; n < rows[row].size(); n += 1)
            if (rows[row][n] == 1 && seen[n] != INT_MAX) {
              dist[row] = iteration;
              still[row] = false;
              break;
            }
        }
        return true;
      }
    };)src");
  const int inf = std::numeric_limits<int>::max();
  const Tensor dist = f.variable("dist", {4}, INT), seen = f.variable("seen", {4}, INT);
  f.graph.setInitialValue(dist, std::vector<int>{0, inf, inf, inf});
  const Tensor still = f.graph.addVariable(BOOL, {4}, "still");
  f.graph.setTileMapping(still, 1);
  const Tensor turn = f.variable("turn", {}, UNSIGNED_INT);
  f.graph.setInitialValue(turn, 0u);
  const ComputeSet cs = f.graph.addComputeSet("bfs");
  const VertexRef v =
      f.graph.addVertex(cs, "Frontier", {{"seen", seen}, {"dist", dist}, {"iteration", turn}});
  f.graph.connect(v["rows"],
                  f.constant<int>({4, 4}, {0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  f.graph.connect(v["still"], still);
  f.graph.setTileMapping(v, 1);
  Sequence body;
  popops::addInPlace(f.graph, turn, 1u, body);
  body.add(Copy(dist, seen));
  body.add(Execute(cs));
  const std::vector<popops::SingleReduceOp> reductions{
      {still, {0}, {popops::Operation::LOGICAL_AND}, "all"}};
  std::vector<Tensor> results;
  popops::reduceMany(f.graph, reductions, results, body);
  f.prog.add(body);
  f.prog.add(RepeatWhileFalse(Sequence{}, results[0], body));
  CHECK(after<int>(f, dist) == (std::vector<int>{0, 1, 2, inf}));
}

// An odd-even sort that runs until a reduction finds the values sorted.
TEST(sorts_exchange_odd_and_even_neighbours) {
  Fixture f;
  add(f, R"src(
    #include <poplar/Vertex.hpp>
    template <typename T>
    class SwapIfGreater : public poplar::Vertex {
     public:
      poplar::InOut<T> a, b;
      poplar::InOut<unsigned> swaps;
      bool compute() {
        if (*a > *b) { const T t = *a; *a = *b; *b = t; *swaps += 1; }
        return true;
      }
    };
    template class SwapIfGreater<float>;
    template class SwapIfGreater<int>;)src");
  constexpr std::size_t n = 7;
  const Tensor t = f.variable("t", {n});
  f.graph.setInitialValue(t, std::vector<float>{5, 3, 6, 1, 7, 2, 4});
  const Tensor swaps = f.graph.addVariable(UNSIGNED_INT, {n - 1}, "swaps");
  poputil::mapTensorLinearly(f.graph, swaps);
  Sequence step;
  popops::zero(f.graph, swaps, step);
  for (std::size_t odd = 0; odd < 2; ++odd) {
    const ComputeSet cs = f.graph.addComputeSet(odd ? "odd" : "even");
    for (std::size_t i = odd; i + 1 < n; i += 2) {
      const VertexRef v = f.graph.addVertex(cs, poputil::templateVertex("SwapIfGreater", FLOAT),
                                            {{"a", t[i]}, {"b", t[i + 1]}, {"swaps", swaps[i]}});
      f.graph.setTileMapping(v, static_cast<unsigned>(i % 8));
    }
    step.add(Execute(cs));
  }
  const Tensor total = f.graph.addVariable(UNSIGNED_INT, {1}, "total");
  f.graph.setTileMapping(total, 0);
  popops::reduceWithOutput(f.graph, swaps, total, {0}, popops::Operation::ADD, step);
  f.prog.add(step);
  f.prog.add(RepeatWhileTrue(Sequence(), popops::cast(f.graph, total, BOOL, step)[0], step));
  CHECK(after(f, t) == (std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
}

// A circuit simulator: the first device that attaches, cycles of a program, tiles by intervals.
TEST(simulators_take_a_device_that_attaches) {
  setenv("IPUJAX_MODEL_AS_IPU", "1", 1);
  auto manager = DeviceManager::createDeviceManager();
  auto devices = manager.getDevices();
  unsetenv("IPUJAX_MODEL_AS_IPU");
  const auto found = std::find_if(devices.begin(), devices.end(), [](Device& device) {
    return device.getTarget().getNumIPUs() == 1 && device.attach();
  });
  CHECK(found != devices.end());
  Device device = std::move(*found);
  Graph graph(device.getTarget());
  popops::addCodelets(graph);
  const Tensor t = graph.addVariable(INT, {3000}, "state");
  std::vector<std::vector<Interval>> mapping(device.getTarget().getNumTiles());
  for (std::size_t i = 0; i < 3000; i += 10) mapping[i / 10].emplace_back(i, i + 10);
  graph.setTileMapping(t, mapping);
  graph.setInitialValue(t, std::vector<int>(3000, 1));
  Sequence step;
  popops::addInPlace(graph, t, t, step, "cycle");
  const Tensor cycles = cycleCount(graph, step, 0, SyncType::EXTERNAL, "cycles");
  graph.createHostRead("cycles", cycles);
  const DataStream out = graph.addDeviceToHostFIFO("out", INT, 3000);
  std::vector<Program> programs{step, Sequence({Copy(t, out)})};
  Engine engine(graph, programs, {{"debug.retainDebugInformation", "false"}});
  engine.load(device);
  std::vector<int> values(3000);
  engine.connectStream("out", values.data());
  for (int i = 0; i < 4; ++i) engine.run(0, "cycle");
  engine.run(1);
  CHECK(values == std::vector<int>(3000, 16));
  unsigned long counted = 0;
  engine.readTensor("cycles", &counted, &counted + 1);
  CHECK(counted > 0);
}
