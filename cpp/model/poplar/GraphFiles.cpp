#include <algorithm>
#include <bit>
#include <istream>
#include <iterator>
#include <ostream>
#include <span>

#include "engine/Serial.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "poplar/Graph.hpp"
#include "poplar/ProfileValue.hpp"
#include "poplar/Program.hpp"

// Files that Graph writes: the whole graph for users, and tensor layouts that it reads back.
namespace poplar {
namespace {

using ipujax::engine::GraphImpl;
using ipujax::engine::Reader;
using ipujax::engine::View;
using ipujax::engine::Writer;

constexpr std::uint64_t kMagic = 0x31736e5465706f70;  // "popeTns1"

void write(std::ostream& out, const ProfileValue& value, SerializationFormat format) {
  if (format == SerializationFormat::JSON)
    serializeToJSON(out, value);
  else
    serializeToCBOR(out, value);
}

/// Elements [begin, end) of a variable.
struct Region {
  std::uint32_t variable;
  std::uint64_t begin;
  std::uint64_t end;
};

std::vector<Region> regionsOf(const View& view) {
  std::vector<Region> regions;
  ipujax::engine::forEachRun(
      view, [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
        const auto from = static_cast<std::uint64_t>(begin);
        if (!regions.empty() && regions.back().variable == variable && regions.back().end == from)
          regions.back().end += length;
        else
          regions.push_back({variable, from, from + length});
      });
  return regions;
}

ProfileValue numbers(const std::vector<std::size_t>& values) {
  return ProfileValue::Vector(values.begin(), values.end());
}

ProfileValue tensorValue(const View& view) {
  ProfileValue::Vector regions;
  for (const Region& region : regionsOf(view))
    regions.emplace_back(ProfileValue::Vector{region.variable, region.begin, region.end});
  return ProfileValue::Map{
      {"type", nameOf(view.type)}, {"shape", numbers(view.shape)}, {"regions", std::move(regions)}};
}

ProfileValue variablesValue(const GraphImpl& impl) {
  ProfileValue::Vector variables;
  for (const auto& variable : impl.variables) {
    ProfileValue::Vector tiles;
    if (variable.map) {
      variable.map->forEachPart(0, variable.elements,
                                [&](unsigned tile, std::uint64_t begin, std::uint64_t end) {
                                  tiles.emplace_back(ProfileValue::Vector{tile, begin, end});
                                });
    }
    variables.emplace_back(ProfileValue::Map{{"name", variable.debug.getPathName()},
                                             {"type", nameOf(variable.type)},
                                             {"elements", variable.elements},
                                             {"constant", variable.is_constant},
                                             {"tiles", std::move(tiles)}});
  }
  return variables;
}

ProfileValue verticesValue(const ipujax::engine::VertexStore& store) {
  ProfileValue::Vector vertices;
  for (const auto& vertex : store.vertices) {
    ProfileValue::Map fields;
    for (const auto& [field, edge] : vertex.edges) {
      ProfileValue::Vector tensors;
      for (const auto& view : edge.views)
        tensors.push_back(view ? tensorValue(*view) : ProfileValue::null());
      fields.emplace(field, std::move(tensors));
    }
    ProfileValue::Map made{{"type", vertex.type}, {"fields", std::move(fields)}};
    if (vertex.tile) made.emplace("tile", *vertex.tile);
    vertices.emplace_back(std::move(made));
  }
  return vertices;
}

ProfileValue computeSetsValue(const ipujax::engine::VertexStore& store) {
  ProfileValue::Vector sets;
  for (const auto& set : store.compute_sets) {
    sets.emplace_back(
        ProfileValue::Map{{"name", set.debug.getPathName()},
                          {"vertices", numbers({set.vertices.begin(), set.vertices.end()})}});
  }
  return sets;
}

[[noreturn]] void refuseFile(const std::string& got) {
  throw poplar_error(
      "[Graph::deserializeTensors] needs what serializeTensors wrote as Binary; got " + got +
      ". Write the tensors again with this version.");
}

Type typeOf(std::uint32_t code) {
  for (const Type& type : {BOOL, SIGNED_CHAR, UNSIGNED_CHAR, SHORT, UNSIGNED_SHORT, INT,
                           UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG, HALF, FLOAT}) {
    if (static_cast<std::uint32_t>(type.element()) == code) return type;
  }
  refuseFile("an element type of number " + std::to_string(code));
}

/// Variables and the tensors in them, as stored in a file.
struct TensorFile {
  struct Variable {
    std::uint32_t type = 0;
    std::uint64_t elements = 0;
    std::string name;
  };
  struct Placed {
    std::uint32_t type = 0;
    std::vector<std::uint64_t> shape;
    std::vector<std::uint64_t> regions;  ///< variable, begin and end of each
  };
  std::vector<Variable> variables;
  std::vector<Placed> tensors;

  template <class Archive, class Self>
  static void visit(Archive& archive, Self& self) {
    archive.list(self.variables, 20, [&](auto& v) { archive(v.type, v.elements, v.name); });
    archive.list(self.tensors, 20, [&](auto& t) { archive(t.type, t.shape, t.regions); });
  }
};

TensorFile tensorFileOf(const GraphImpl& impl, ArrayRef<Tensor> tensors) {
  TensorFile file;
  std::map<std::uint32_t, std::uint64_t> numbers;
  for (const Tensor& t : tensors) {
    const View& view = *t.view();
    TensorFile::Placed placed{
        static_cast<std::uint32_t>(view.type), {view.shape.begin(), view.shape.end()}, {}};
    for (const Region& region : regionsOf(view)) {
      const auto [entry, fresh] = numbers.emplace(region.variable, file.variables.size());
      if (fresh) {
        const auto& variable = impl.variables[region.variable];
        file.variables.push_back({static_cast<std::uint32_t>(variable.type), variable.elements,
                                  variable.debug.getPathName()});
      }
      placed.regions.insert(placed.regions.end(), {entry->second, region.begin, region.end});
    }
    file.tensors.push_back(std::move(placed));
  }
  return file;
}

Tensor place(Graph& graph, const TensorFile::Placed& placed, const std::vector<Tensor>& variables) {
  std::vector<Tensor> pieces;
  const std::span<const std::uint64_t> regions = placed.regions;
  if (regions.size() % 3 != 0) refuseFile("a part of a region");
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < regions.size(); i += 3) {
    const std::uint64_t begin = regions[i + 1];
    const std::uint64_t end = regions[i + 2];
    if (regions[i] >= variables.size() || begin > end ||
        end > variables[regions[i]].numElements() ||
        variables[regions[i]].elementType() != typeOf(placed.type))
      refuseFile("a region outside its variable, or of another type");
    pieces.push_back(variables[regions[i]].slice(begin, end));
    elements += end - begin;
  }
  std::uint64_t rest = elements;  // compares the shape's size without overflow
  for (const std::uint64_t n : placed.shape) {
    if (n == 0 ? rest != 0 : rest % n != 0) refuseFile("a shape of other elements");
    if (n != 0) rest /= n;
  }
  const bool is_empty = std::ranges::find(placed.shape, 0u) != placed.shape.end();
  if (!is_empty && rest != 1) refuseFile("a shape of other elements");
  const std::vector<std::size_t> shape(placed.shape.begin(), placed.shape.end());
  if (pieces.empty()) return graph.addVariable(typeOf(placed.type), shape);
  return concat(pieces).reshape(shape);
}

}  // namespace

void Graph::serialize(std::ostream& out, SerializationFormat format) const {
  serialize(out, {}, format);
}

void Graph::serialize(std::ostream& out, ArrayRef<program::Program> progs,
                      SerializationFormat format) const {
  ProfileValue::Vector programs;
  for (const auto& program : progs) {
    std::ostringstream outline;
    dumpProgram(*this, program, outline);
    programs.emplace_back(outline.str());
  }
  ProfileValue::Map graph{
      {"producer", "ipujax"},
      {"target", ProfileValue::Map{{"numIPUs", target_.getNumIPUs()},
                                   {"tilesPerIPU", target_.getTilesPerIPU()},
                                   {"replicationFactor", getReplicationFactor()}}},
      {"variables", variablesValue(impl())},
      {"programs", std::move(programs)}};
  if (impl().vertices) {
    graph.emplace("computeSets", computeSetsValue(*impl().vertices));
    graph.emplace("vertices", verticesValue(*impl().vertices));
  }
  write(out, graph, format);
}

void Graph::serializeTensors(std::ostream& out, ArrayRef<Tensor> tensors,
                             SerializationFormat format) const {
  const TensorFile file = tensorFileOf(impl(), tensors);
  if (format == SerializationFormat::JSON) {
    ProfileValue::Vector values;
    for (const Tensor& t : tensors) values.push_back(tensorValue(*t.view()));
    return write(
        out,
        ProfileValue::Map{{"variables", variablesValue(impl())}, {"tensors", std::move(values)}},
        format);
  }
  Writer writer;
  writer.put(kMagic);
  TensorFile::visit(writer, file);
  out << writer.take();
}

std::vector<Tensor> Graph::deserializeTensors(std::istream& in, SerializationFormat format) {
  if (format == SerializationFormat::JSON) refuseFile("SerializationFormat::JSON");
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  TensorFile file;
  try {
    Reader reader(std::as_bytes(std::span(bytes)));
    if (reader.get<std::uint64_t>() != kMagic) refuseFile("other bytes");
    TensorFile::visit(reader, file);
    if (!reader.atEnd()) refuseFile("more bytes than tensors");
  } catch (const std::out_of_range&) {
    refuseFile("a file that ends too early");
  }
  std::vector<Tensor> variables;
  for (const auto& v : file.variables)
    variables.push_back(addVariable(typeOf(v.type), {std::size_t{v.elements}}, v.name));
  std::vector<Tensor> tensors;
  for (const auto& placed : file.tensors) tensors.push_back(place(*this, placed, variables));
  return tensors;
}

}  // namespace poplar
