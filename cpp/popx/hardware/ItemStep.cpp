#include "popx/hardware/ItemStep.hpp"

#include "poplar/exceptions.hpp"
#include "popops/Zero.hpp"
#include "poputil/VertexTemplates.hpp"
#include "popx/hardware/Codelets.hpp"

namespace popx {

using poplar::Tensor;

ItemStep::ItemStep(Graph& graph, std::string where, std::size_t items, Sequence& prog,
                   const DebugContext& debugContext)
    : graph_(graph),
      where_(std::move(where)),
      items_(items),
      prog_(prog),
      debug_context_(debugContext) {}

unsigned ItemStep::tileOf(std::size_t item) const {
  return static_cast<unsigned>(item % graph_.getTarget().getNumTiles());
}

Tensor ItemStep::room(const poplar::Type& type, std::size_t elements) {
  const Tensor t = graph_.addVariable(type, {items_, elements}, {debug_context_, "item"});
  for (std::size_t i = 0; i < items_; ++i) graph_.setTileMapping(t[i], tileOf(i));
  bytes_per_item_ += elements * graph_.getTarget().getTypeSize(type);
  return t;
}

Tensor ItemStep::zeros(const poplar::Type& type, std::size_t elements) {
  const Tensor t = room(type, elements);
  if (t.numElements() > 0) popops::zero(graph_, t, prog_, {debug_context_, "zeros"});
  return t;
}

Tensor ItemStep::status() { return zeros(poplar::INT, 1).squeeze({1}); }

Tensor ItemStep::shared(const Tensor& values) {
  bytes_per_item_ += values.numElements() * graph_.getTarget().getTypeSize(values.elementType());
  return values.flatten().expand({0}).broadcast(static_cast<unsigned>(items_), 0);
}

Tensor ItemStep::copy(const Parts& value, unsigned rank) {
  const auto& shape = value[0].shape();
  const std::size_t elements = batch::elementsOf({shape.end() - rank, shape.end()});
  std::vector<Tensor> parts;
  for (const Tensor& part : value) parts.push_back(part.reshape({items_, elements, 1}));
  const Tensor t = room(value[0].elementType(), elements * value.size());
  if (t.numElements() > 0)
    prog_.add(poplar::program::Copy(poplar::concat(parts, 2).reshape(t.shape()), t));
  return t;
}

void ItemStep::checkMemory() const {
  const auto& target = graph_.getTarget();
  const std::uint64_t each = (items_ + target.getNumTiles() - 1) / target.getNumTiles();
  if (each * bytes_per_item_ <= target.getBytesPerTile()) return;
  throw poplar::poplar_error(
      "[" + where_ +
      "] needs matrices or lines that fit the memory of a tile with their workspace (" +
      std::to_string(target.getBytesPerTile()) + " bytes); got " + std::to_string(each) +
      " a tile of " + std::to_string(bytes_per_item_) +
      " bytes. Use smaller ones, or smaller batches.");
}

void ItemStep::run(const std::string& family, const std::string& type, const Fields& fields,
                   const Numbers& numbers, double flops) {
  checkMemory();
  if (items_ == 0 || fields[0].second.numElements() == 0) return;
  const auto compute_set = graph_.addComputeSet({debug_context_, type});
  // Our estimate: two loads and a multiply-add, one instruction each.
  const auto cycles = static_cast<std::uint64_t>(20 + 1.5 * flops);
  for (std::size_t i = 0; i < items_; ++i) {
    const auto vertex = codelets::addVertex(graph_, compute_set, family, type);
    graph_.setTileMapping(vertex, tileOf(i));
    for (const auto& [name, values] : fields) graph_.connect(vertex[name], values[i]);
    for (const auto& [name, value] : numbers) graph_.setInitialValue(vertex[name], value);
    graph_.setPerfEstimate(vertex, cycles, static_cast<std::uint64_t>(flops));
  }
  prog_.add(poplar::program::Execute(compute_set, {debug_context_, type}));
}

bool batch::holdsReals(const poplar::Type& type) { return type == poplar::FLOAT; }

std::string instanceFor(const std::string& name, bool complex) {
  return poputil::templateVertex(name, complex);
}

Parts partsOf(const Tensor& values, const std::vector<std::size_t>& shape, bool complex) {
  if (!complex) return {values.reshape(shape)};
  const Tensor pairs = values.reshape({batch::elementsOf(shape), 2});
  return {pairs.slice(0, 1, 1).reshape(shape), pairs.slice(1, 2, 1).reshape(shape)};
}

}  // namespace popx
