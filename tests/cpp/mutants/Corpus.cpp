#include "mutants/Corpus.hpp"

#include <functional>
#include <sstream>

#include "engine/build/Build.hpp"
#include "poplar/CSRFunctions.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"
#include "poplar/MetadataCreation.hpp"
#include "popnn/Pooling.hpp"
#include "popops/Cast.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/NormaliseImage.hpp"
#include "popops/OneHot.hpp"
#include "popops/Reduce.hpp"
#include "popops/SelectScalarFromRows.hpp"
#include "popops/SequenceSlice.hpp"
#include "popops/TopK.hpp"
#include "poprand/RandomGen.hpp"
#include "poputil/TileMapping.hpp"

namespace mutants {
namespace {

namespace engine = ipujax::engine;
using namespace poplar;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

std::string dtypeOf(Type type) {
  if (type == FLOAT) return "float32";
  if (type == HALF) return "float16";
  if (type == INT) return "int32";
  return type == UNSIGNED_INT ? "uint32" : "bool";
}

/// A program whose arguments and results are bound to a caller's arrays.
struct Bound {
  Graph graph{IPUModel().createDevice()};
  Sequence prog;
  engine::BuildOptions options;

  engine::TensorSpec specOf(const Tensor& t) const {
    const std::uint64_t bytes = t.numElements() * graph.getTarget().getTypeSize(t.elementType());
    return {dtypeOf(t.elementType()), {t.shape().begin(), t.shape().end()}, bytes, {}};
  }
  Tensor in(Type type, Shape shape) {
    auto& specs = options.signature.inputs;
    auto t = graph.addVariable(type, shape, VariableMappingMethod::LINEAR, "in");
    prog.add(program::Copy(
        graph.addHostToDeviceFIFO("in" + std::to_string(specs.size()), type, t.numElements()), t));
    specs.push_back(specOf(t));
    return t;
  }
  /// A copy of an argument, which may be written to.
  Tensor inCopied(Type type, Shape shape) {
    const auto given = in(type, shape);
    const auto t = graph.addVariable(type, shape, VariableMappingMethod::LINEAR, "copy");
    prog.add(program::Copy(given, t));
    return t;
  }
  void out(const Tensor& t) {
    auto& specs = options.signature.outputs;
    prog.add(program::Copy(t, graph.addDeviceToHostFIFO("out" + std::to_string(specs.size()),
                                                        t.elementType(), t.numElements())));
    specs.push_back(specOf(t));
  }
  std::string build() {
    options.signature.name = "mutant";
    return engine::buildImage(graph, prog, options)->serialise();
  }
};

/// A FIFO whose newest value is not used afterwards, and one whose newest value is.
void fifos(Bound& b) {
  const auto x = b.inCopied(FLOAT, {1, 1024});
  const auto total = b.inCopied(FLOAT, {1, 1024});
  const auto place = b.inCopied(UNSIGNED_INT, {1});
  for (const bool stays : {false, true}) {
    const auto fifo = b.graph.addVariable(FLOAT, {3, 1024}, VariableMappingMethod::LINEAR, "fifo");
    Sequence body;
    const auto newest = popops::add(b.graph, x, total, body);
    const auto oldest = popops::dynamicSlice(b.graph, fifo, place, {0}, {1}, body);
    popops::dynamicUpdate(b.graph, fifo, newest, place, {0}, {1}, body);
    if (stays) popops::addInPlace(b.graph, x, newest, body);
    popops::addInPlace(b.graph, total, oldest, body);
    b.prog.add(program::Repeat(4, body));
  }
  b.out(total);
}

void selections(Bound& b) {
  const auto keys = b.in(FLOAT, {3, 70});
  const auto values = b.in(INT, {3, 70});
  const auto indices = b.in(UNSIGNED_INT, {3});
  const popops::TopKParams params(5, true, popops::SortOrder::DESCENDING);
  b.out(popops::topK(b.graph, b.prog, keys, params));
  b.out(popops::topKKeyValue(b.graph, b.prog, keys, values, params).second);
  b.out(popops::topKWithPermutation(b.graph, b.prog, keys, params).second);
  b.out(popops::selectScalarFromRows(b.graph, keys, indices, b.prog));
  const auto encoded = b.graph.addVariable(HALF, {3, 9}, VariableMappingMethod::LINEAR, "encoded");
  popops::encodeOneHot(b.graph, indices, encoded, b.prog);
  b.out(encoded);
}

void lookups(Bound& b) {
  const auto table = b.inCopied(FLOAT, {20, 6});
  const auto offsets = b.in(UNSIGNED_INT, {4, 1});
  const auto rows = b.in(FLOAT, {4, 1, 6});
  const auto scale = b.in(FLOAT, {});
  b.out(popops::multiSlice(b.graph, table, offsets, {0}, {1}, b.prog, {}, {}));
  popops::multiUpdate(b.graph, table, rows, offsets, {0}, {1}, b.prog, {}, {});
  popops::multiUpdateAdd(b.graph, table, rows, offsets, scale, {0}, {1}, b.prog, {}, {});
  popops::multiUpdateMax(b.graph, table, rows, offsets, {0}, {1}, b.prog, {}, {});
  const auto start = b.in(UNSIGNED_INT, {1});
  b.out(popops::dynamicSlice(b.graph, table, start, {0}, {3}, b.prog));
  popops::dynamicUpdate(b.graph, table, b.in(FLOAT, {3, 6}), start, {0}, {3}, b.prog);
  b.out(table);
}

void randomNumbers(Bound& b) {
  const auto seed = b.in(UNSIGNED_INT, {2});
  const auto x = b.in(FLOAT, {5, 40});
  auto& g = b.graph;
  poprand::setSeed(g, seed, 3, b.prog);
  b.out(poprand::uniform(g, nullptr, 1, x, FLOAT, -1, 1, b.prog));
  b.out(poprand::uniform(g, &seed, 1, x, INT, -7, 9, b.prog));
  b.out(poprand::logUniform(g, &seed, 1, x, HALF, 1, 9, b.prog));
  b.out(poprand::bernoulli(g, &seed, 1, x, FLOAT, 0.3, b.prog));
  b.out(poprand::normal(g, &seed, 1, x, HALF, 0, 2, b.prog));
  b.out(poprand::truncatedNormal(g, &seed, 1, x, FLOAT, 0, 1, 2, b.prog));
  b.out(poprand::dropout(g, &seed, 1, x, x, 0.5, 2, b.prog));
  b.out(poprand::shapedDropout(g, &seed, 1, x, x.slice(0, 1), 0.5, 2, b.prog));
}

/// Adds in half precision, with a key drawn from the workers' generators.
void stochasticRounding(Bound& b) {
  const auto x = b.in(FLOAT, {5, 40});
  poplar::setStochasticRounding(b.graph, b.prog, true);
  const auto half = popops::cast(b.graph, x, HALF, b.prog);
  b.out(popops::add(b.graph, half, half, b.prog));
}

void pooling(Bound& b) {
  for (const auto type : {popnn::PoolingType::MAX, popnn::PoolingType::AVG}) {
    const popnn::pooling::PoolParams params(type, {8, 7}, {3, 2}, {2, 1}, {1, 0}, {0, 1}, 3, 2,
                                            FLOAT);
    const auto x = b.in(FLOAT, {2, 3, 8, 7});
    const auto pooled = popnn::pooling::pool(b.graph, params, x, b.prog);
    b.out(pooled);
    b.out(type == popnn::PoolingType::MAX
              ? popnn::pooling::poolInputGradient(b.graph, params, x, pooled, pooled, true, b.prog)
              : popnn::pooling::poolInputGradient(b.graph, params, 1, pooled, b.prog));
  }
}

void scaledReductions(Bound& b) {
  const auto x = b.in(HALF, {6, 33});
  const auto scale = b.in(FLOAT, {});
  const auto sum = b.inCopied(FLOAT, {33});
  popops::reduceWithOutput(b.graph, x, sum, {0}, {popops::Operation::ADD, true, scale}, b.prog);
  b.out(sum);
  b.out(popops::reduce(b.graph, x, FLOAT, {1}, {popops::Operation::LOG_ADD}, b.prog));
  b.out(popops::reduce(b.graph, x, HALF, {0, 1}, {popops::Operation::MAX}, b.prog));
}

void quarters(Bound& b) {
  const auto metadata = createConstantMetadataTensor(b.graph, QuarterMetadata::Format::F143, 1);
  const auto q = popops::cast(b.graph, b.in(FLOAT, {5, 9}), QUARTER, metadata, b.prog);
  b.out(popops::cast(b.graph, q, HALF, b.prog));
}

void imagesAndRuns(Bound& b) {
  const auto offsets = b.in(HALF, {3}), scales = b.in(HALF, {3});
  const auto image = b.in(UNSIGNED_CHAR, {2, 5, 3});
  b.out(popops::normaliseImage(b.graph, b.prog, image, 0.5F, offsets, scales));
  const auto counts = b.in(UNSIGNED_INT, {4});
  const auto from = b.in(FLOAT, {7, 6});
  const auto to = b.inCopied(FLOAT, {9, 6});
  popops::sequenceSlice(b.graph, from, to, counts, counts, counts, false, b.prog);
  b.out(to);
}

std::string sealed(const Executable& executable) {
  std::ostringstream out;
  executable.serialize(out);
  return out.str();
}

/// Streams that are not bound, entry points, conditions, printing.
std::string streams() {
  Graph graph(IPUModel().createDevice());
  const auto x = graph.addVariable(FLOAT, {2, 8}, VariableMappingMethod::LINEAR, "x");
  const auto flag = graph.addVariable(BOOL, {}, VariableMappingMethod::LINEAR, "flag");
  const auto which = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "which");
  graph.createHostWrite("write", x);
  graph.createHostRead("read", x);
  Sequence body;
  popops::addInPlace(graph, x, x.slice(0, 1).broadcast(2, 0), body);
  Sequence prog;
  prog.add(program::Copy(graph.addHostToDeviceFIFO("in", FLOAT, 16), x.flatten()));
  prog.add(program::Copy(graph.addHostToDeviceFIFO("flag", BOOL, 1), flag));
  prog.add(program::Copy(graph.addHostToDeviceFIFO("which", INT, 1), which));
  prog.add(program::Repeat(3, body));
  prog.add(program::If(flag, body, Sequence()));
  prog.add(program::Switch(which, {{1, body}, {2, Sequence()}}, body));
  prog.add(program::PrintTensor("x", x));
  prog.add(program::Copy(x.flatten(), graph.addDeviceToHostFIFO("out", FLOAT, 16)));
  return sealed(compileGraph(graph, {prog}));
}

/// Vertices; the codelets are compiled here, so this process may run them.
std::string codelets() {
  Graph graph(IPUModel().createDevice());
  std::istringstream source(R"(
    #include <poplar/Vertex.hpp>
    using namespace poplar;
    struct Sum : Vertex {
      Vector<Input<Vector<float>>> rows;
      Output<Vector<float>> out;
      Vector<float> weights;
      float bias;
      bool compute() {
        for (unsigned i = 0; i < out.size(); ++i) out[i] = bias;
        for (unsigned r = 0; r < rows.size(); ++r)
          for (unsigned i = 0; i < rows[r].size() && i < out.size(); ++i)
            out[i] += rows[r][i] * (r < weights.size() ? weights[r] : 1);
        return true;
      }
    };
  )");
  graph.addCodelets(source);
  const auto x = graph.addVariable(FLOAT, {3, 8}, VariableMappingMethod::LINEAR, "x");
  const auto y = graph.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR, "y");
  auto set = graph.addComputeSet("sum");
  const auto vertex = graph.addVertex(set, "Sum", {{"rows", x}, {"out", y}});
  // A vertex whose edges are scattered: they are gathered and written back.
  const auto z = graph.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR, "z");
  const auto turned = concat(z.slice(4, 8), z.slice(0, 4));
  const auto other =
      graph.addVertex(set, "Sum", {{"rows", x.reshape({8, 3}).transpose()}, {"out", turned}});
  for (const auto& v : {vertex, other}) {
    graph.setFieldSize(v["weights"], 3);
    graph.setInitialValue(v["bias"], 2.0f);
    graph.setTileMapping(v, 0);
  }
  graph.createHostWrite("x", x);
  graph.createHostRead("y", y);
  graph.createHostRead("z", z);
  return sealed(compileGraph(graph, {program::Execute(set)}));
}

}  // namespace

std::vector<std::string> poplarCorpus() {
  std::vector<std::string> corpus;
  for (const auto fill : {fifos, selections, lookups, randomNumbers, stochasticRounding, pooling,
                          scaledReductions, quarters, imagesAndRuns}) {
    Bound bound;
    fill(bound);
    corpus.push_back(bound.build());
  }
  corpus.push_back(streams());
  corpus.push_back(codelets());
  return corpus;
}

}  // namespace mutants
