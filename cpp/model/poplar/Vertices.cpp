#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "engine/Half.hpp"
#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/FieldRanks.hpp"
#include "engine/codelets/LibraryCodelets.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "poplar/Graph.hpp"

// The part of Graph that handles codelets and vertices.
namespace poplar {
namespace {

using ipujax::engine::Connection;
using ipujax::engine::GraphImpl;
using ipujax::engine::VertexRecord;
using ipujax::engine::VertexStore;

VertexStore& storeOf(GraphImpl& impl) {
  if (!impl.vertices) impl.vertices = std::make_shared<VertexStore>();
  return *impl.vertices;
}

VertexRecord& recordOf(GraphImpl& impl, const VertexRef& v) {
  VertexStore& store = storeOf(impl);
  if (v.getId() >= store.vertices.size())
    throw graph_connection_error(
        "[Graph] needs a vertex of this graph; got another. Use the graph that made it.");
  return store.vertices[v.getId()];
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void needOwn(const GraphImpl& impl, const Tensor& tensor) {
  if (!tensor.valid() || tensor.graphImpl() != &impl)
    throw graph_connection_error(
        std::string("[Graph::connect] needs a tensor of this graph; got ") +
        (tensor.valid() ? "one of another" : "an empty Tensor") + ". Make it with this graph.");
}

/// Half mode of vertices added now. Only stochastic rounding needs another half than the
/// compiler's; codelets without halves need none.
unsigned halfModeOf(const GraphImpl& impl, const std::string& text) {
  using Overflow = ipujax::engine::HalfBehaviour::Overflow;
  if (!impl.half.stochastic || text.find("half") == std::string::npos) return 0;
  return 1 + (impl.half.overflow == Overflow::kSaturate ? 2u : 0u) +
         (impl.half.overflow == Overflow::kNan ? 4u : 0u);
}

double valueAt(const TypeTraits::Values& values, std::size_t i) {
  const auto type = values.type.element();
  return ipujax::engine::withElement(type, [&]<class T>(T value) {
    std::memcpy(&value, values.bytes.data() + i * sizeof(T), sizeof(T));
    if (type == ipujax::engine::ElementType::kHalf)
      return static_cast<double>(ipujax::engine::halfToFloat(static_cast<std::uint16_t>(value)));
    return static_cast<double>(value);
  });
}

/// Sets the file that defines a vertex's type: one that was added, or the library's.
bool findFile(VertexStore& store, VertexRecord& vertex) {
  if (store.findClass(vertex.type, vertex.file)) return true;
  if (store.addForIpu(vertex.type)) return store.findClass(vertex.type, vertex.file) != nullptr;
  const ipujax::engine::CodeletFile* const library = ipujax::engine::libraryCodelets(vertex.type);
  if (!library) return false;
  store.add(*library);
  return store.findClass(vertex.type, vertex.file) != nullptr;
}

/// The vertex of a field; throws graph_connection_error if its type has no such field.
VertexRecord& recordOf(GraphImpl& impl, const FieldRef& field) {
  VertexRecord& vertex = recordOf(impl, field.vertex);
  std::size_t file = 0;
  const auto& fields = storeOf(impl).findClass(vertex.type, file)->fields;
  if (std::ranges::find(fields, field.name) != fields.end()) return vertex;
  throw graph_connection_error("[Graph::connect] needs a field of " + vertex.type + " (" +
                               joined(fields) + "); got '" + field.name +
                               "'. Use one of these names.");
}

/// A vector takes one dimension, a list of vectors two. Compiles the type for this check only if a
/// tensor has several dimensions, which is rare; otherwise the engine checks later.
void checkRank(VertexStore& store, const VertexRecord& vertex, const std::string& name,
               const Connection& edge) {
  const auto is_matrix = [](const auto& view) { return view->shape.size() > 1; };
  const auto* const field =
      store.findField(vertex, name, std::ranges::any_of(edge.views, is_matrix));
  const auto misfit = field ? ipujax::engine::findRankMisfit(*field, edge) : std::nullopt;
  if (!misfit) return;
  throw graph_connection_error("[Graph::connect] needs " + misfit->needs + " for field '" + name +
                               "' of a " + vertex.type + "; got " + misfit->got +
                               ". Reshape it, or connect a slice of it.");
}

Connection connectionOf(ArrayRef<Tensor> tensors, bool is_list) {
  Connection made;
  made.is_list = is_list;
  for (const Tensor& tensor : tensors)
    made.add(tensor, tensor.hasMetadata() ? tensor.getMetadata() : Tensor());
  return made;
}

}  // namespace

ComputeSet Graph::addComputeSet(const DebugContext& debugContext) {
  VertexStore& store = storeOf(impl());
  store.compute_sets.push_back({debugContext, {}});
  return ComputeSet(static_cast<unsigned>(store.compute_sets.size() - 1),
                    ipujax::engine::makeNode(ipujax::engine::ProgramKind::kSequence, debugContext));
}

VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType) {
  VertexStore& store = storeOf(impl());
  if (cs.getId() >= store.compute_sets.size())
    throw graph_connection_error(
        "[Graph::addVertex] needs a compute set of this graph; got another. Make it with this "
        "graph's addComputeSet.");
  VertexRecord vertex;
  vertex.type = ipujax::engine::normaliseTypeName(vertexType);
  if (!findFile(store, vertex)) {
    const auto known = store.typeNames();
    throw unknown_vertex_type(
        "[Graph::addVertex] needs a vertex type that addCodelets added" +
        (known.empty()
             ? "; none was added, and got " + vertex.type + ". Add its source first."
             : " (" + joined(known) + "); got " + vertex.type + ". Use one of these names."));
  }
  vertex.half_mode = halfModeOf(impl(), store.files[vertex.file].text);
  auto& types = store.types[vertex.file];
  if (std::ranges::find(types, vertex.type) == types.end()) types.push_back(vertex.type);
  const auto id = static_cast<unsigned>(store.vertices.size());
  store.compute_sets[cs.getId()].vertices.push_back(id);
  store.vertices.push_back(std::move(vertex));
  return VertexRef(id);
}

VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType,
                           ArrayRef<ConnectionDesc> connections) {
  const VertexRef v = addVertex(cs, vertexType);
  for (const auto& c : connections) {
    if (c.constants.count > 0) {
      connectConstants(v[c.field], c.constants);
    } else if (c.is_list) {
      connect(v[c.field], c.tensors);
    } else {
      connect(v[c.field], c.tensors[0]);
    }
  }
  return v;
}

void Graph::connect(FieldRef field, const Tensor& tensor) {
  needOwn(impl(), tensor);
  VertexRecord& vertex = recordOf(impl(), field);
  const Connection made = connectionOf({tensor}, field.isIndexed());
  checkRank(storeOf(impl()), vertex, field.name, made);
  Connection& edge = vertex.edges[field.name];
  if (!field.isIndexed()) {
    edge = made;
    return;
  }
  edge.is_list = true;
  edge.set(field.getIndex(), made.views[0], made.metadata[0]);
}

void Graph::connect(FieldRef field, ArrayRef<Tensor> tensors) {
  for (const Tensor& tensor : tensors) needOwn(impl(), tensor);
  VertexRecord& vertex = recordOf(impl(), field);
  Connection made = connectionOf(tensors, true);
  checkRank(storeOf(impl()), vertex, field.name, made);
  vertex.edges[field.name] = std::move(made);
}

void Graph::connectConstants(FieldRef field, const TypeTraits::Values& values) {
  VertexRecord& vertex = recordOf(impl(), field);
  // A single value becomes a tensor of one element, which both scalars and vectors take.
  const Tensor t = addConstantFrom(values.type, values.bytes.data(), values.count, values.type,
                                   {values.count}, {"<const>"});
  if (vertex.tile) getTopLevelGraph().setTileMapping(t, *vertex.tile);
  vertex.constants.push_back(t);
  connect(field, t);
  // A field that is a plain value, or a vector of these, holds the constant itself.
  const std::size_t first = field.isIndexed() ? field.getIndex() : 0;
  for (std::size_t i = 0; i < values.count; ++i)
    vertex.values[field.name][first + i] = valueAt(values, i);
}

void Graph::setInitialValueHalf(FieldRef field, std::uint16_t value) {
  setFieldValue(std::move(field), ipujax::engine::halfToFloat(value));
}

void Graph::setInitialValueHalf(FieldRef field, ArrayRef<std::uint16_t> values) {
  setFieldSize(field, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) setInitialValueHalf(field[i], values[i]);
}

void Graph::setFieldValue(FieldRef field, double value) {
  VertexRecord& vertex = recordOf(impl(), field);
  vertex.values[field.name][field.isIndexed() ? field.getIndex() : 0] = value;
}

void Graph::setFieldSize(FieldRef field, std::size_t size) {
  VertexRecord& vertex = recordOf(impl(), field);
  vertex.sizes[field.name] = size;
}

std::size_t Graph::getFieldSize(FieldRef field) const {
  const VertexRecord& vertex = recordOf(impl(), field);
  if (const auto edge = vertex.edges.find(field.name); edge != vertex.edges.end()) {
    const auto& views = edge->second.views;
    if (edge->second.is_list && !field.indexed) return views.size();
    const std::size_t i = field.indexed ? field.index : 0;
    if (i < views.size() && views[i]) return views[i]->numElements();
  }
  if (const auto size = vertex.sizes.find(field.name); size != vertex.sizes.end())
    return size->second;
  throw no_size_specified(
      "[Graph::getFieldSize] needs a field that is connected or has a size; "
      "got '" +
      field.name + "' of " + vertex.type + ". Call setFieldSize.");
}

void Graph::setPerfEstimate(const VertexRef& v, std::uint64_t cycles, std::uint64_t flops) {
  VertexRecord& vertex = recordOf(impl(), v);
  vertex.cycles = cycles;
  vertex.flops = flops;
}

VertexPerfEstimate Graph::getPerfEstimate(const VertexRef& v) const {
  const VertexRecord& vertex = recordOf(impl(), v);
  if (vertex.cycles) return {*vertex.cycles, vertex.flops};
  const auto& estimators = storeOf(impl()).estimators;
  if (const auto found = estimators.find(vertex.type); found != estimators.end()) {
    const auto [cycles, flops] = found->second(vertex);
    return {cycles, flops};
  }
  throw missing_perf_estimate("[Graph::getPerfEstimate] needs an estimate of " + vertex.type +
                              "; got none. Call setPerfEstimate or registerPerfEstimator.");
}

void Graph::setTileMapping(VertexRef v, unsigned tileNum) {
  const auto& tiles = physicalTiles();
  if (tileNum >= tiles.size()) {
    throw invalid_tile_mapping("[Graph::setTileMapping] needs a tile below " +
                               std::to_string(tiles.size()) + "; got " + std::to_string(tileNum) +
                               ". Use a tile of the graph.");
  }
  VertexRecord& vertex = recordOf(impl(), v);
  vertex.tile = tiles[tileNum];
  for (const auto& constant : vertex.constants)
    getTopLevelGraph().setTileMapping(Tensor(&impl(), constant), tiles[tileNum]);
}

double Graph::getMaxVertexFieldValue(StringRef vertexName, StringRef fieldName) const {
  VertexStore& store = storeOf(impl());
  const std::string type = ipujax::engine::normaliseTypeName(vertexName);
  const auto refuse = [&](const std::string& needs) {
    throw poplar_error("[Graph::getMaxVertexFieldValue] needs " + needs + "; got " + type + "." +
                       std::string(fieldName) + ". Use another field.");
  };
  std::size_t file = 0;
  if (!store.findClass(type, file)) refuse("a vertex type that addCodelets added");
  auto& types = store.types[file];
  if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  const auto library = store.library(file);
  const IpujaxCodelet& codelet = library->codelet(type);
  const std::span fields(codelet.fields, codelet.num_fields);
  const auto field =
      std::ranges::find_if(fields, [&](const auto& f) { return fieldName == f.name; });
  if (field == fields.end()) refuse("one of the type's fields");
  const auto element = static_cast<ipujax::engine::ElementType>(field->element);
  if (element == ipujax::engine::ElementType::kHalf) return 65504;
  if (ipujax::engine::sizeOf(element) == 8)
    refuse("a field of 32 bits or fewer, whose values a double holds");
  return ipujax::engine::withElement(element, [&]<class T>(T) {
    return element == ipujax::engine::ElementType::kBool
               ? 1.0
               : static_cast<double>(std::numeric_limits<T>::max());
  });
}

unsigned Graph::getNumVars() const { return static_cast<unsigned>(impl().variables.size()); }
unsigned Graph::getNumComputeSets() const {
  return static_cast<unsigned>(storeOf(impl()).compute_sets.size());
}
unsigned Graph::getNumVertices() const {
  return static_cast<unsigned>(storeOf(impl()).vertices.size());
}

}  // namespace poplar
