#include <cmath>
#include <poplin/FullyConnected.hpp>
#include <poprand/RandomGen.hpp>
#include <popsys/CSRFunctions.hpp>
#include <popsys/CycleCount.hpp>
#include <popsys/CycleStamp.hpp>
#include <popsys/codelets.hpp>
#include <poputil/Util.hpp>
#include <poputil/cyclesTables.hpp>
#include <sstream>

#include "Check.hpp"
#include "OneVertex.hpp"

/// Names that programs for SDKs before 1.3 use, and headers of PopLibs that few programs use.
using namespace poplar;
using namespace poplar::program;
using namespace popsys;

namespace {

const char* const kScale = R"(
#include <poplar/Vertex.hpp>
namespace own {
template <typename T>
class Scale : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<T>> in;
  poplar::Output<poplar::Vector<T>> out;
  unsigned factor;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i] = in[i] * factor;
    return true;
  }
};
template class Scale<float>;
}
)";

VertexPerfEstimate MAKE_PERF_ESTIMATOR_NAME(Scale)(const VertexIntrospector& vertex,
                                                   const Target& target, const Type& type) {
  CODELET_FIELD(in);
  CODELET_SCALAR_VAL(factor, unsigned);
  CHECK_EQ(type, FLOAT);
  return VertexPerfEstimate(in.size() * factor * target.getNumWorkerContexts());
}

double computeCycles(bool with_table) {
  Fixture f;
  std::istringstream source(kScale);
  f.graph.addCodelets(source);
  const auto x = f.constant<float>({8}, std::vector<float>(8, 2));
  const auto y = f.variable("y", {8});
  const auto cs = f.graph.addComputeSet("scale");
  const auto v =
      f.graph.addVertex(cs, poputil::templateVertex("own::Scale", FLOAT), {{"in", x}, {"out", y}});
  f.graph.setInitialValue(v["factor"], 50);
  f.graph.setTileMapping(v, 1);
  if (with_table) {
    const poputil::internal::PerfEstimatorTable table = {CYCLE_ESTIMATOR_ENTRY(own, Scale, FLOAT)};
    poputil::internal::registerPerfFunctions(f.graph, table);
  } else {
    f.graph.setPerfEstimate(v, 0);
  }
  f.prog.add(Execute(cs));
  Engine engine(f.graph, f.prog);
  engine.loadAndRun(f.device);
  CHECK_EQ(f.read(engine, "y", 8)[7], 100.0F);
  return engine.getExecutionProfile()["simulation"]["computeCycles"].asDouble();
}

}  // namespace

TEST(names_of_popsys_are_those_of_poplar) {
  Fixture f;
  popsys::addCodelets(f.graph);
  const FloatingPointBehaviour all;
  CHECK(all.inv && all.div0 && all.oflo && all.esr && all.nanoo);
  const FloatingPointBehaviour saturates(false, false, false, false, false);
  setFloatingPointBehaviour(f.graph, f.prog, saturates, "");
  setStochasticRounding(f.graph, f.prog, false, std::string("off"));
  const Tensor wide = f.constant<float>({1}, {1e6F});
  Sequence copies;
  copies.add(Copy(wide, f.variable("copy", {1})));
  const Tensor cycles = cycleCount(f.graph, copies, 0, "count");
  const Tensor stamp = cycleStamp(f.graph, copies, 0);
  CHECK(cycles.shape() == std::vector<std::size_t>{2});
  CHECK(stamp.shape() == std::vector<std::size_t>{2});
  f.prog.add(copies);
  const auto counted = f.run<unsigned>(cycles);
  CHECK(counted[0] > 0 && counted[1] == 0);
}

TEST(a_graph_on_zero_ipus_has_all_of_them) {
  const Device device = Fixture::modelOf(4, 2);
  Graph graph(device, 0, replication_factor(2));
  CHECK_EQ(graph.getReplicationFactor(), 2U);
  CHECK_EQ(graph.getTarget().getNumIPUs(), 1U);
  CHECK_EQ(graph.getTarget().getTilesPerIPU(), 4U);
  CHECK_EQ(Graph(device.getTarget(), 1, replication_factor(1)).getTarget().getNumIPUs(), 1U);
}

TEST(a_layer_names_its_products) {
  const OptionFlags given = {{"partialsType", "half"}};
  const poplin::fc::FullyConnectedParams layer{2, 3, 5, 7};
  const auto forward = poplin::fc::getMatMulPrePlanParameters(layer, given, HALF, true);
  CHECK_EQ(forward.size(), 1U);
  const auto all = poplin::fc::getMatMulPrePlanParameters(layer, given, HALF, false);
  CHECK_EQ(all.size(), 3U);
  const char* const passes[] = {"TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"};
  // For [G, M, K] x [G, K, N], the passes make the shapes of the output, the input and the weights.
  const std::vector<std::size_t> made[] = {{2, 3, 7}, {2, 3, 5}, {2, 5, 7}};
  poplin::PlanningCache cache;
  Fixture f;
  const Target target = f.graph.getTarget();
  for (unsigned i = 0; i < 3; ++i) {
    const auto& [params, options] = all[i];
    CHECK_EQ(options.at("fullyConnectedPass"), passes[i]);
    CHECK_EQ(options.at("partialsType"), "half");
    CHECK_EQ(params.aShape[2], params.bShape[1]);
    CHECK(made[i] ==
          (std::vector<std::size_t>{params.aShape[0], params.aShape[1], params.bShape[2]}));
    CHECK(params.inputType == HALF && params.outputType == HALF);
    poplin::preplanMatMuls({{&target, params, &options}}, cache);
  }
  CHECK_EQ(forward[0].second.at("fullyConnectedPass"), "INFERENCE_FWD");
}

TEST(tables_of_estimators_are_those_of_the_graph) {
  CHECK_EQ(computeCycles(true) - computeCycles(false), 8.0 * 50 * 6 * 6);
}

TEST(metadata_of_quarters_is_made_by_poputil_too) {
  Fixture f;
  const Tensor fixed =
      poputil::createConstantMetadataTensor(f.graph, QuarterMetadata::Format::F143, 2);
  const Tensor set =
      poputil::createVariableMetadataTensor(f.graph, QuarterMetadata::Format::F152, -3);
  CHECK(fixed.elementType() == QUARTER_METADATA && set.elementType() == QUARTER_METADATA);
  CHECK(f.graph.isConstant(fixed.getVarRegions()[0].var));
  CHECK(!f.graph.isConstant(set.getVarRegions()[0].var));
}

TEST(options_are_written_as_they_are_read) {
  const OptionFlags flags = {{"debug.instrument", "true"}, {"a \"name\"", "1, \\ 2"}};
  std::stringstream text;
  text << flags;
  OptionFlags read = {{"kept", "yes"}};
  readJSON(text, read);
  CHECK_EQ(read.size(), 3U);
  CHECK_EQ(read.at("debug.instrument"), "true");
  CHECK_EQ(read.at("a \"name\""), "1, \\ 2");
  std::stringstream none;
  none << OptionFlags();
  CHECK_EQ(none.str(), "{}");
}

TEST(several_tiles_are_stamped) {
  Fixture f;
  Sequence stamped;
  const std::vector<Tensor> stamps =
      cycleStamp(f.graph, stamped, std::vector<unsigned>{3, 1}, SyncType::EXTERNAL, "both");
  CHECK_EQ(stamps.size(), 2U);
  CHECK_EQ(f.graph.getTileMapping(stamps[0])[3].size(), 1U);
  CHECK_EQ(f.graph.getTileMapping(stamps[1])[1].size(), 1U);
  f.prog.add(stamped);
  const auto first = f.run<unsigned>(concat(stamps));
  CHECK(first[0] <= first[2] && first[1] == 0 && first[3] == 0);
}

TEST(an_array_in_braces_is_of_its_elements) {
  const std::vector<unsigned> zeros(4, 7);
  Fixture f;
  const Tensor t = f.graph.addVariable(UNSIGNED_INT, {4}, VariableMappingMethod::LINEAR);
  f.graph.setInitialValue(t, ArrayRef{zeros});
  CHECK(f.run<unsigned>(t) == zeros);
  CHECK_EQ((ArrayRef<std::vector<unsigned>>{zeros, zeros}).size(), 2U);
}

TEST(random_numbers_need_no_seed) {
  constexpr std::size_t kCount = 4000;
  Fixture f(8);
  const auto seed = f.constant<unsigned>({2}, {7, 9});
  poprand::setSeed(f.graph, seed, 5, f.prog);
  const auto like = f.graph.addVariable(FLOAT, {kCount}, VariableMappingMethod::LINEAR);
  const auto ones = f.constant<float>({kCount}, std::vector<float>(kCount, 1));
  const auto all = concat({poprand::uniform(f.graph, like, FLOAT, -1, 3, f.prog),
                           poprand::normal(f.graph, like, FLOAT, 1, 2, f.prog),
                           poprand::truncatedNormal(f.graph, like, FLOAT, 1, 1, 2, f.prog),
                           poprand::bernoulli(f.graph, like, FLOAT, 0.25, f.prog),
                           poprand::dropout(f.graph, ones, like, 0.5, 2, f.prog)});
  const auto found = f.run(all);
  const double means[] = {1, 1, 1, 0.25, 1};
  for (std::size_t i = 0; i < 5; ++i) {
    double mean = 0;
    for (std::size_t j = 0; j < kCount; ++j) mean += found[i * kCount + j] / kCount;
    CHECK_NEAR(mean, means[i], 0.15);
  }
}

TEST(vectors_of_two_pointers_are_spans) {
  OneVertex f("Sum", R"(
    #include <poplar/HalfFloat.hpp>
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    static constexpr auto TWO_PTR = poplar::VectorLayout::TWO_PTR;
    class Sum : public SupervisorVertex {
    public:
      Vector<Input<Vector<float, TWO_PTR, 8>>> in;
      Output<Vector<float, TWO_PTR>> out;
      bool compute() {
        for (unsigned i = 0; i < in.size(); ++i) {
          out[i] = 0;
          for (unsigned j = 0; j < in[i].size(); ++j) out[i] += in[i][j];
        }
        return true;
      }
    };)");
  const auto out = f.onTile<float>({2}, {0, 0});
  f.graph.connect(f.v["in"], f.onTile<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  f.graph.connect(f.v["out"], out);
  CHECK(f.result<float>(out) == (std::vector<float>{6, 15}));
}
