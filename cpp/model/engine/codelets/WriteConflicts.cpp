#include "engine/codelets/WriteConflicts.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/Errors.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {
namespace {

/// Elements that a vertex writes.
struct Write {
  std::uint32_t variable;
  std::uint64_t begin;
  std::uint64_t end;
  unsigned vertex;
  const std::string* field;
};

/// The names of the fields that a vertex of a type writes.
class WrittenFields {
 public:
  explicit WrittenFields(VertexStore& store) : store_(store) {}

  const std::vector<std::string>& of(const VertexRecord& vertex) {
    const auto [found, fresh] = fields_.try_emplace({vertex.file, vertex.type});
    if (fresh) {
      const IpujaxCodelet& codelet = store_.library(vertex.file)->codelet(vertex.type);
      for (unsigned i = 0; i < codelet.num_fields; ++i) {
        const auto direction = codelet.fields[i].direction;
        if (direction == kIpujaxOut || direction == kIpujaxInOut)
          found->second.emplace_back(codelet.fields[i].name);
      }
    }
    return found->second;
  }

 private:
  VertexStore& store_;
  std::map<std::pair<std::size_t, std::string>, std::vector<std::string>> fields_;
};

void addWrites(const View& view, unsigned vertex, const std::string& field,
               std::vector<Write>& writes) {
  forEachRun(view, [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    const auto from = static_cast<std::uint64_t>(begin);
    writes.push_back({variable, from, from + length, vertex, &field});
  });
}

std::string textOf(const VertexRecord& vertex) {
  return vertex.type + (vertex.tile ? " on tile " + std::to_string(*vertex.tile) : "");
}

[[noreturn]] void refuse(const GraphImpl& graph, const Write& last, const Write& write) {
  const VertexStore& store = *graph.vertices;
  const std::string vertex = textOf(store.vertices[write.vertex]);
  const std::string element = "element " + std::to_string(write.begin) + " of '" +
                              graph.variables[write.variable].debug.getPathName() + "'";
  if (write.vertex == last.vertex) {
    throw graph_program_compilation_error(
        "[Execute] needs different elements in a field that a vertex writes; got " + element +
        " twice in '" + *write.field + "' of a " + vertex + ". Connect a tensor without aliases.");
  }
  throw graph_program_compilation_error(
      "[Execute] needs vertices that write different elements; got a " +
      textOf(store.vertices[last.vertex]) + " and a " + vertex + " that both write " + element +
      ". Give each its own elements, or run them in two compute sets.");
}

}  // namespace

void checkWrites(const GraphImpl& graph, const ProgramNode& execute) {
  std::vector<Write> writes;
  for (const auto id : execute.ids) {
    if (!graph.vertices || id >= graph.vertices->compute_sets.size())
      throw graph_connection_error(
          "[Execute] needs a compute set of this graph; got another. Make it with this graph's "
          "addComputeSet.");
    VertexStore& store = *graph.vertices;
    WrittenFields written(store);
    for (const auto v : store.compute_sets[id].vertices) {
      const VertexRecord& vertex = store.vertices[v];
      for (const auto& field : written.of(vertex)) {
        const auto edge = vertex.edges.find(field);
        if (edge == vertex.edges.end()) continue;
        for (const auto& view : edge->second.views) {
          if (view) addWrites(*view, v, edge->first, writes);
        }
      }
    }
  }
  std::ranges::sort(writes, {}, [](const Write& w) { return std::tie(w.variable, w.begin); });
  const Write* last = nullptr;  // the previous write in the variable that ends last
  for (const Write& write : writes) {
    const bool meets = last && last->variable == write.variable && write.begin < last->end;
    // Two fields of a vertex may share memory.
    if (meets && (write.vertex != last->vertex || write.field == last->field))
      refuse(graph, *last, write);
    if (!meets || write.end > last->end) last = &write;
  }
}

}  // namespace ipujax::engine
