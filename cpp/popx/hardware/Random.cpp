#include "popx/Random.hpp"

#include <algorithm>

#include "poputil/TileMapping.hpp"
#include "poputil/VertexTemplates.hpp"
#include "popx/checks/Random.hpp"
#include "popx/hardware/Codelets.hpp"

namespace popx {

namespace {

using poplar::Graph;
using poplar::Tensor;

/// The unsigned type of an element's bits.
poplar::Type bitsOf(std::size_t bytes) {
  return bytes == 1   ? poplar::UNSIGNED_CHAR
         : bytes == 2 ? poplar::UNSIGNED_SHORT
         : bytes == 4 ? poplar::UNSIGNED_INT
                      : poplar::UNSIGNED_LONGLONG;
}

/// Threefry's two words of a counter lie along one dimension of the result, the first of even size
/// or else the longest: element 2 h gets word 0 and 2 h + 1 word 1 of counter (outer, h, inner).
struct Halves {
  std::size_t outer = 1, extent = 1, inner = 1;

  explicit Halves(const std::vector<std::size_t>& shape) {
    if (shape.empty()) return;
    const auto even =
        std::find_if(shape.begin(), shape.end(), [](std::size_t size) { return size % 2 == 0; });
    const auto split = even != shape.end() ? even : std::max_element(shape.begin(), shape.end());
    for (auto it = shape.begin(); it != split; ++it) outer *= *it;
    for (auto it = split + 1; it != shape.end(); ++it) inner *= *it;
    extent = *split;
  }
  std::size_t half() const { return (extent + 1) / 2; }

  /// Elements in order, from words [counters * 2].
  Tensor order(const Tensor& words) const {
    return words.reshape({outer, half(), inner, 2})
        .dimShuffle({0, 1, 3, 2})
        .reshape({outer, 2 * half(), inner})
        .slice(0, extent, 1);
  }
};

/// Divides the counters equally among the workers of all tiles.
class Generation {
 public:
  Generation(Graph& graph, const Tensor& state, random::Generator generator,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext)
      : graph_(graph),
        state_(state.flatten()),
        generator_(generator),
        compute_set_(graph.addComputeSet({debugContext, "bits"})),
        debug_context_(debugContext) {
    prog.add(poplar::program::Execute(compute_set_, {debugContext, "bits"}));
  }

  Tensor words(const poplar::Type& type, std::size_t counters, std::size_t each) {
    const auto& target = graph_.getTarget();
    const Tensor all = graph_.addVariable(type, {counters * each}, {debug_context_, "words"});
    const std::size_t workers = target.getNumTiles() * target.getNumWorkerContexts();
    const std::size_t share = std::max<std::size_t>(1, (counters + workers - 1) / workers);
    for (std::size_t begin = 0; begin < counters; begin += share) {
      const std::size_t end = std::min(counters, begin + share);
      const auto tile = static_cast<unsigned>(begin / share / target.getNumWorkerContexts());
      const Tensor part = all.slice(begin * each, end * each);
      graph_.setTileMapping(part, tile);
      addVertex(type, part, begin, end - begin, tile);
    }
    return all;
  }

  Tensor advance(std::size_t counters) {
    const Tensor next = graph_.clone(state_, {debug_context_, "state"});
    graph_.setTileMapping(next, 0);
    const auto vertex =
        codelets::addVertex(graph_, compute_set_, "Random",
                            poputil::templateVertex("AdvanceState", bytesOf(state_.elementType())));
    graph_.connect(vertex["state"], state_);
    graph_.connect(vertex["next"], next);
    graph_.setInitialValue(vertex["counters"], static_cast<unsigned>(counters));
    graph_.setTileMapping(vertex, 0);
    graph_.setPerfEstimate(vertex, 40);  // our estimate
    return next;
  }

 private:
  unsigned bytesOf(const poplar::Type& type) const {
    return static_cast<unsigned>(graph_.getTarget().getTypeSize(type));
  }

  void addVertex(const poplar::Type& type, const Tensor& out, std::size_t begin,
                 std::size_t counters, unsigned tile) {
    const std::string name = generator_.threefry ? "Threefry" : "Philox";
    const auto vertex = codelets::addVertex(
        graph_, compute_set_, "Random",
        poputil::templateVertex(name, bytesOf(state_.elementType()), bytesOf(type)));
    graph_.connect(vertex["state"], state_);
    graph_.connect(vertex["out"], out);
    graph_.setInitialValue(vertex["begin"], static_cast<unsigned>(begin));
    if (!generator_.threefry)
      graph_.setInitialValue(vertex["wide"], generator_.state_bytes == 24 ? 1 : 0);
    graph_.setTileMapping(vertex, tile);
    // Instructions of the algorithms, no multiply-high on the IPU (our estimate): threefry 20
    // rounds of 5 and 6 key additions of 2; philox 10 rounds of 2 wide products of 10 and 6 more.
    graph_.setPerfEstimate(vertex, 30 + (generator_.threefry ? 125 : 270) * counters);
  }

  Graph& graph_;
  Tensor state_;
  random::Generator generator_;
  poplar::ComputeSet compute_set_;
  poplar::DebugContext debug_context_;
};

}  // namespace

std::pair<Tensor, Tensor> rngBitGenerator(Graph& graph, const Tensor& state,
                                          const std::string& algorithm,
                                          const std::vector<std::size_t>& shape,
                                          const poplar::Type& type, poplar::program::Sequence& prog,
                                          const poplar::DebugContext& debugContext) {
  const auto generator = random::check(graph, state, algorithm, type);
  const std::size_t bytes = graph.getTarget().getTypeSize(type);
  const bool words64 = bytes == 8;
  std::size_t elements = 1;
  for (const std::size_t size : shape) elements *= size;
  const Halves halves(shape);
  const std::size_t each = generator.threefry ? (words64 ? 1 : 2) : (words64 ? 2 : 4);
  const std::size_t counters = generator.threefry && !words64
                                   ? halves.outer * halves.half() * halves.inner
                                   : (elements + each - 1) / each;
  Generation generation(graph, state, generator, prog, debugContext);
  const Tensor words = generation.words(bitsOf(bytes), counters, each);
  const Tensor next = generation.advance(counters).reshape(state.shape());
  const Tensor ordered =
      generator.threefry && !words64 ? halves.order(words) : words.slice(0, elements);
  const Tensor bits = graph.addVariable(bitsOf(bytes), shape, {debugContext, "bits"});
  poputil::mapTensorLinearly(graph, bits);
  if (elements > 0) prog.add(poplar::program::Copy(ordered.reshape(shape), bits));
  return {next, bits.reinterpret(type)};
}

}  // namespace popx
