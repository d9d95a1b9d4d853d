#include <algorithm>
#include <istream>
#include <iterator>

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"

// The part of Graph that is about codelets and vertices.
namespace poplar {
namespace {

using ipujax::engine::CodeletFile;
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

/// The vertex of a field that it has.
VertexRecord& recordOf(GraphImpl& impl, const FieldRef& field) {
  VertexRecord& vertex = recordOf(impl, field.vertex);
  std::size_t file = 0;
  const auto& fields = storeOf(impl).findClass(vertex.type, file)->fields;
  if (std::ranges::find(fields, field.name) != fields.end()) return vertex;
  throw graph_connection_error("[Graph::connect] needs a field of " + vertex.type + " (" +
                               joined(fields) + "); got '" + field.name +
                               "'. Use one of these names.");
}

void addFile(GraphImpl& impl, CodeletFile file) {
  VertexStore& store = storeOf(impl);
  store.types.push_back(file.found.types);
  store.files.push_back(std::move(file));
  if (!store.types.back().empty()) store.library(store.files.size() - 1);  // errors show here
}

}  // namespace

bool Graph::addCodelets(StringRef src, CodeletFileType type, StringRef compileFlags,
                        StringRef /*targetName*/) {
  if (type != CodeletFileType::Auto && type != CodeletFileType::CppSource) {
    throw file_load_error(
        "[Graph::addCodelets] needs C++ source on the IPU Model; got a file of another "
        "kind: " +
        std::string(src) + ". Give its source.");
  }
  addFile(impl(), ipujax::engine::readCodelets(src, compileFlags));
  return true;
}

void Graph::addCodelets(std::istream& stream, StringRef compileFlags, CodeletFileType type,
                        StringRef /*targetName*/) {
  if (type != CodeletFileType::Auto && type != CodeletFileType::CppSource)
    throw file_load_error(
        "[Graph::addCodelets] needs C++ source on the IPU Model; got another kind. Pass "
        "CodeletFileType::CppSource.");
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  addFile(impl(), ipujax::engine::codeletsFromText(std::move(text), compileFlags));
}

ComputeSet Graph::addComputeSet(const DebugContext& debugContext) {
  VertexStore& store = storeOf(impl());
  store.compute_sets.push_back({debugContext, {}});
  return ComputeSet(static_cast<unsigned>(store.compute_sets.size() - 1));
}

VertexRef Graph::addVertex(ComputeSet cs, StringRef vertexType) {
  VertexStore& store = storeOf(impl());
  if (cs.getId() >= store.compute_sets.size())
    throw graph_connection_error(
        "[Graph::addVertex] needs a compute set of this graph; got another. Make it with this "
        "graph's addComputeSet.");
  VertexRecord vertex;
  vertex.type = ipujax::engine::normaliseTypeName(vertexType);
  if (!store.findClass(vertex.type, vertex.file)) {
    std::vector<std::string> known;
    for (const auto& types : store.types) known.insert(known.end(), types.begin(), types.end());
    throw unknown_vertex_type("[Graph::addVertex] needs a vertex type that addCodelets added (" +
                              joined(known) + "); got " + vertex.type +
                              ". Use one of these names.");
  }
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
    if (c.is_list) {
      connect(v[c.field], c.tensors);
    } else {
      connect(v[c.field], c.tensors[0]);
    }
  }
  return v;
}

void Graph::connect(FieldRef field, const Tensor& tensor) {
  VertexRecord& vertex = recordOf(impl(), field);
  Connection& edge = vertex.edges[field.name];
  if (!field.isIndexed()) {
    edge = {{tensor}, false};
    return;
  }
  edge.is_list = true;
  if (edge.views.size() <= field.getIndex()) edge.views.resize(field.getIndex() + 1);
  edge.views[field.getIndex()] = tensor;
}

void Graph::connect(FieldRef field, ArrayRef<Tensor> tensors) {
  VertexRecord& vertex = recordOf(impl(), field);
  vertex.edges[field.name] = {{tensors.begin(), tensors.end()}, true};
}

void Graph::setFieldValue(FieldRef field, double value) {
  VertexRecord& vertex = recordOf(impl(), field);
  vertex.values[field.name][field.isIndexed() ? field.getIndex() : 0] = value;
}

void Graph::setFieldSize(FieldRef field, std::size_t size) {
  VertexRecord& vertex = recordOf(impl(), field);
  vertex.sizes[field.name] = size;
}

void Graph::setPerfEstimate(const VertexRef& v, std::uint64_t cycles, std::uint64_t flops) {
  VertexRecord& vertex = recordOf(impl(), v);
  vertex.cycles = cycles;
  vertex.flops = flops;
}

void Graph::setTileMapping(VertexRef v, unsigned tileNum) {
  const auto& tiles = physicalTiles();
  if (tileNum >= tiles.size()) {
    throw invalid_tile_mapping("[Graph::setTileMapping] needs a tile below " +
                               std::to_string(tiles.size()) + "; got " + std::to_string(tileNum) +
                               ". Use a tile of the graph.");
  }
  recordOf(impl(), v).tile = tiles[tileNum];
}

}  // namespace poplar
