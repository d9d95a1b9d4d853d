#include "engine/build/VertexLowering.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "engine/Errors.hpp"
#include "engine/build/GatheredEdges.hpp"
#include "engine/codelets/CodeletBuild.hpp"
#include "engine/codelets/CodeletText.hpp"
#include "engine/codelets/ConstantEdges.hpp"
#include "engine/codelets/FieldRanks.hpp"
#include "engine/codelets/VertexCost.hpp"
#include "engine/codelets/VertexEstimate.hpp"
#include "engine/codelets/VertexState.hpp"
#include "engine/codelets/VertexStep.hpp"
#include "engine/codelets/VertexStore.hpp"
#include "engine/codelets/WriteConflicts.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/kernels/random/WorkerSeeds.hpp"

// Lowers program::Execute to steps: for each file of codelets, and each rounding mode of halves,
// one "engine.vertices" step that runs all its vertices. "engine.edges" steps around it gather the
// edges that are not contiguous, and scatter those that are written.
//
// Attribute "vertices": the number of the step, and for each vertex its type (index into "types"),
// tile and then, for each field of the codelet's table: a value's bits; operand and offset of a
// scalar edge; operand, offset and size of a vector edge, and operand and offset of its metadata if
// the field has any; a count and that many of these for lists; a count and bits for vectors of
// state.
namespace ipujax::engine {
namespace {

template <class T>
bool isIn(double value) {  // false for NaN
  return value > static_cast<double>(std::numeric_limits<T>::min()) - 1 &&
         value < static_cast<double>(std::numeric_limits<T>::max()) + 1;
}

/// Whether the conversion of a number to an integer type is defined. Floats hold infinities.
bool holds(ElementType type, double value) {
  switch (type) {
    case ElementType::kInt8:
      return isIn<std::int8_t>(value);
    case ElementType::kUInt8:
      return isIn<std::uint8_t>(value);
    case ElementType::kInt16:
      return isIn<std::int16_t>(value);
    case ElementType::kUInt16:
      return isIn<std::uint16_t>(value);
    case ElementType::kInt32:
      return isIn<std::int32_t>(value);
    case ElementType::kUInt32:
      return isIn<std::uint32_t>(value);
    case ElementType::kInt64:
      return value >= -0x1p63 && value < 0x1p63;
    case ElementType::kUInt64:
      return value > -1 && value < 0x1p64;
    default:
      return true;
  }
}

class Lowering {
 public:
  Lowering(GraphImpl& graph, const DebugContext& debug, std::size_t file, unsigned half_mode)
      : graph_(graph),
        debug_(debug),
        store_(*graph.vertices),
        file_(file),
        library_(store_.rounding(file, half_mode)),
        unit_(store_.unit(file, half_mode)),
        edges_(graph, debug),
        costs_(graph) {
    integers_.push_back(store_.num_steps++);
  }

  void add(unsigned id, const VertexRecord& vertex) {
    const IpujaxCodelet& codelet = library_->codelet(vertex.type);
    if (!vertex.tile) {
      throw invalid_tile_mapping("[Execute] needs every vertex on a tile; got a " + vertex.type +
                                 " in '" + debug_.getPathName() +
                                 "' that is on none. Call setTileMapping.");
    }
    TileLoad& load = costs_.loadOf(*vertex.tile);
    const std::uint64_t others = load.state;
    largest_edge_ = 0;
    integers_.push_back(typeIndex(vertex.type));
    integers_.push_back(*vertex.tile);
    for (const std::int64_t part :
         {std::int64_t{id}, typeIndex(vertex.type), std::int64_t{*vertex.tile}})
      placed_.push_back(part);
    for (unsigned i = 0; i < codelet.num_fields; ++i) addField(vertex, codelet.fields[i], load);
    addKept(vertex);
    state_bytes_.push_back(static_cast<std::int64_t>(load.state - others));
    costs_.add(vertex, codelet, largest_edge_);
  }

  /// `result`: a view of one BOOL, or null. `is_first`: no earlier step writes it.
  std::vector<ProgramNodePtr> finish(const ViewPtr& result, bool is_first) {
    edges_.finish();
    const auto node = makeNode(ProgramKind::kStep, debug_);
    node->step.kernel = "engine.vertices";
    node->step.operands = operands();
    addSeeds(node->step);
    if (result) node->step.operands.push_back({result, Access::kReadWrite});
    node->step.attributes.set(kGathers, std::int64_t{!result ? 0 : is_first ? 1 : 2});
    std::string names;
    for (const auto& type : types_) names += type + "\n";
    node->step.cost = costs_.total(store_.unit(file_), types_.size());
    if (costs_.leavesMemory()) {
      unit_ = withCycles(unit_);
      library_ = CodeletLibrary::compile(unit_, store_.files[file_].flags);
    }
    node->step.attributes.set("unit", unit_);
    node->step.attributes.set("flags", store_.files[file_].flags);
    node->step.attributes.set("types", names);
    node->step.attributes.set("vertices", std::move(integers_));
    node->step.attributes.set(kPlacedVertices, std::move(placed_));
    node->step.attributes.set(kStateBytes, std::move(state_bytes_));
    if (keeps_) node->step.attributes.set(kKept, std::move(kept_));
    if (library_->counter()) node->step.attributes.set(kReadsCycles, std::int64_t{1});
    std::vector<ProgramNodePtr> nodes = edges_.gathers();
    nodes.push_back(node);
    for (auto& scatter : edges_.scatters()) nodes.push_back(std::move(scatter));
    return nodes;
  }

 private:
  struct Operand {
    std::int64_t index = 0;
    bool written = false;
  };

  /// Adds the state that the step's vertices draw random numbers from: that of their own replica in
  /// a graph of createReplicatedGraph.
  void addSeeds(Step& step) const {
    if (library_->enter() == nullptr || !drawsNumbers(unit_)) return;
    const Parts parts = partsOfOperands();
    const auto hidden = graph_.hidden.find(seeds::hiddenName(parts.count, parts.first_tile));
    if (hidden == graph_.hidden.end()) return;
    // A virtual graph of a replicated one has only the states of its own tiles.
    const std::size_t words = std::size_t{parts.tiles} * kIpujaxWorkers * seeds::kWords;
    if (hidden->second->numElements() < words) return;
    step.attributes.set(kSeeds, static_cast<std::int64_t>(step.operands.size()));
    if (parts.first_tile > 0) step.attributes.set(kSeededFrom, std::int64_t{parts.first_tile});
    step.operands.push_back({hidden->second, Access::kReadWrite});
  }

  Parts partsOfOperands() const {
    for (const std::uint32_t id : order_)
      if (graph_.variables[id].parts.count > 1) return graph_.variables[id].parts;
    return {};
  }

  [[noreturn]] void refuse(const VertexRecord& vertex, const IpujaxField& field,
                           const std::string& needs, const std::string& got) const {
    throw graph_connection_error("[Execute] needs " + needs + " for field '" + field.name +
                                 "' of a " + vertex.type + " in '" + debug_.getPathName() +
                                 "'; got " + got + ". Connect another tensor.");
  }

  std::int64_t typeIndex(const std::string& type) {
    const auto it = std::find(types_.begin(), types_.end(), type);
    if (it != types_.end()) return it - types_.begin();
    types_.push_back(type);
    return static_cast<std::int64_t>(types_.size() - 1);
  }

  void addField(const VertexRecord& vertex, const IpujaxField& field, TileLoad& load) {
    load.state += field.ipu_bytes;
    if (field.kind == kIpujaxValue) return addValue(vertex, field);
    if (field.kind == kIpujaxStateVector) return addState(vertex, field, load);
    const auto it = vertex.edges.find(field.name);
    if (it == vertex.edges.end()) refuse(vertex, field, "a connected tensor", "none");
    const auto wanted = static_cast<ElementType>(field.element);
    const auto tensors = vertex.constants.empty()
                             ? tensorsOf(vertex, field, it->second)
                             : tensorsOf(vertex, field, ofType(wanted, vertex, field, it->second));
    const bool list = field.kind == kIpujaxListOfVectors || field.kind == kIpujaxListOfScalars;
    const bool scalar = field.kind == kIpujaxScalarEdge || field.kind == kIpujaxListOfScalars;
    if (list) integers_.push_back(static_cast<std::int64_t>(tensors.size()));
    if (list) load.state += 4 * tensors.size();
    std::size_t i = 0;
    for (const ViewPtr& tensor : tensors) {
      if (!tensor) refuse(vertex, field, "a tensor for each element", "an element without");
      if (tensor->type != wanted) {
        refuse(vertex, field, std::string("elements of ") + nameOf(wanted), nameOf(tensor->type));
      }
      if (scalar && tensor->numElements() != 1)
        refuse(vertex, field, "a tensor of one element", shapeText(tensor->shape));
      addEdge(vertex, field, *tensor);
      if (!scalar) integers_.push_back(static_cast<std::int64_t>(tensor->numElements()));
      if (field.has_metadata) addMetadata(vertex, it->second, i);
      ++i;
    }
  }

  /// The connection, with numbers that were connected to the field converted to its type.
  Connection ofType(ElementType wanted, const VertexRecord& vertex, const IpujaxField& field,
                    Connection connection) {
    for (ViewPtr& view : connection.views) {
      const bool is_number = std::ranges::find(vertex.constants, view) != vertex.constants.end();
      if (!view || !is_number || view->type == wanted) continue;
      ViewPtr made = constantOfType(graph_, *view, wanted);
      if (!made)
        refuse(vertex, field, std::string("numbers that ") + nameOf(wanted) + " can hold",
               std::string(nameOf(view->type)) + " with others");
      view = std::move(made);
    }
    return connection;
  }

  /// Adds the metadata of tensor `i`. Tensors that are rows of one tensor share its metadata.
  void addMetadata(const VertexRecord& vertex, const Connection& connection, std::size_t i) {
    const auto& all = connection.metadata;
    const ViewPtr& metadata = all[std::min(i, all.size() - 1)];
    if (!metadata) {
      integers_.insert(integers_.end(), {-1, 0});
      return;
    }
    const IpujaxField byte{"metadata", kIpujaxScalarEdge,
                           kIpujaxIn,  static_cast<std::uint32_t>(ElementType::kUInt8),
                           1,          0,
                           0,          0};
    addEdge(vertex, byte, *metadata);
  }

  /// The tensors of an edge; if a list is connected to one tensor, its rows.
  std::vector<ViewPtr> tensorsOf(const VertexRecord& vertex, const IpujaxField& field,
                                 const Connection& connection) const {
    const bool list = field.kind == kIpujaxListOfVectors || field.kind == kIpujaxListOfScalars;
    if (!list && connection.views.size() != 1)
      refuse(vertex, field, "one tensor", std::to_string(connection.views.size()));
    if (const auto misfit = findRankMisfit(field, connection))
      refuse(vertex, field, misfit->needs, misfit->got);
    if (!list || connection.is_list) return connection.views;
    const View& whole = *connection.views[0];
    if (whole.shape.empty()) refuse(vertex, field, "a list of tensors", shapeText(whole.shape));
    const std::vector<std::size_t> row_shape(whole.shape.begin() + 1, whole.shape.end());
    std::vector<ViewPtr> rows;
    for (std::size_t i = 0; i < whole.shape[0]; ++i)
      rows.push_back(share(reshapeView(sliceView(whole, 0, i, i + 1), row_shape)));
    return rows;
  }

  std::int64_t bitsOfValue(const VertexRecord& vertex, const IpujaxField& field,
                           double value) const {
    const auto type = static_cast<ElementType>(field.element);
    if (holds(type, value)) return bitsOf(value, type);
    throw graph_connection_error("[Graph::setInitialValue] needs a value that the " +
                                 std::string(nameOf(type)) + " '" + field.name + "' of a " +
                                 vertex.type + " can hold; got " + std::to_string(value) +
                                 ". Set another value.");
  }

  void addValue(const VertexRecord& vertex, const IpujaxField& field) {
    const auto it = vertex.values.find(field.name);
    integers_.push_back(it != vertex.values.end());  // 0: the codelet's own initialiser stays
    const double value = it == vertex.values.end() ? 0 : it->second.begin()->second;
    integers_.push_back(bitsOfValue(vertex, field, value));
  }

  void addState(const VertexRecord& vertex, const IpujaxField& field, TileLoad& load) {
    const auto size = static_cast<std::size_t>(stateElements(vertex, field));
    const auto it = vertex.values.find(field.name);
    integers_.push_back(static_cast<std::int64_t>(size));
    for (std::size_t i = 0; i < size; ++i) {
      const bool set = it != vertex.values.end() && it->second.count(i) != 0;
      integers_.push_back(bitsOfValue(vertex, field, set ? it->second.at(i) : 0.0));
    }
    load.state += size * field.element_bytes;
  }

  void addKept(const VertexRecord& vertex) {
    if (!vertex.kept) {
      kept_.insert(kept_.end(), {-1, 0});
      return;
    }
    keeps_ = true;
    Operand& operand = operandOf(vertex.kept->variable);
    operand.written = true;
    kept_.insert(kept_.end(), {operand.index, static_cast<std::int64_t>(vertex.kept->begin)});
  }

  /// Appends operand and offset of a tensor's elements; those in several runs go through a copy.
  void addEdge(const VertexRecord& vertex, const IpujaxField& field, const View& tensor) {
    largest_edge_ = std::max<std::uint64_t>(largest_edge_, tensor.numElements());
    if (tensor.numElements() == 0) {
      integers_.insert(integers_.end(), {-1, 0});
      return;
    }
    std::uint32_t variable = 0;
    std::int64_t begin = 0;
    int runs = 0;
    forEachRun(tensor, [&](std::uint32_t v, std::int64_t b, std::size_t length) {
      if (runs++ == 0) {
        variable = v;
        begin = b;
      }
      countMoved(v, b, length, field, *vertex.tile);
    });
    if (runs > 1) {
      const GatheredEdges::Place place = edges_.add(tensor, *vertex.tile, field);
      variable = place.variable;
      begin = place.begin;
    }
    Operand& operand = operandOf(variable);
    if (field.direction != kIpujaxIn) operand.written = true;
    integers_.insert(integers_.end(), {operand.index, begin});
  }

  /// Counts elements that cross the exchange or links because they are not on the vertex's tile.
  void countMoved(std::uint32_t variable, std::int64_t begin, std::size_t length,
                  const IpujaxField& field, unsigned tile) {
    const auto from = static_cast<std::uint64_t>(begin);
    graph_.variables[variable].map->forEachPart(
        from, from + length, [&](std::uint32_t on, std::uint64_t at, std::uint64_t to) {
          if (on == tile || on == TileMap::kUnmapped) return;
          const double bytes = static_cast<double>(to - at) * field.element_bytes;
          if (field.direction != kIpujaxOut) costs_.addRead(tile, on, bytes);
          if (field.direction != kIpujaxIn) costs_.addWritten(tile, on, bytes);
        });
  }

  Operand& operandOf(std::uint32_t variable) {
    const auto [it, added] = operand_of_.try_emplace(variable);
    if (added) {
      it->second.index = static_cast<std::int64_t>(order_.size());
      order_.push_back(variable);
    }
    return it->second;
  }

  std::vector<StepOperand> operands() const {
    std::vector<StepOperand> result;
    for (const std::uint32_t id : order_) {
      const Variable& variable = graph_.variables[id];
      const Operand& operand = operand_of_.at(id);
      // A vertex need not write all of an output, so its old value is read as well.
      const Access access = operand.written ? Access::kReadWrite : Access::kRead;
      result.push_back({share(wholeVariable(id, variable.type, {variable.elements})), access});
    }
    return result;
  }

  GraphImpl& graph_;
  DebugContext debug_;
  VertexStore& store_;
  std::size_t file_;
  std::shared_ptr<const CodeletLibrary> library_;
  std::string unit_;
  GatheredEdges edges_;
  std::vector<std::string> types_;
  Attributes::Integers integers_;
  Attributes::Integers placed_, state_bytes_;
  Attributes::Integers kept_;
  bool keeps_ = false;
  std::map<std::uint32_t, Operand> operand_of_;
  std::vector<std::uint32_t> order_;
  VertexCosts costs_;
  std::uint64_t largest_edge_ = 0;
};

}  // namespace

std::vector<ProgramNodePtr> lowerComputeSets(GraphImpl& graph, const ProgramNode& execute) {
  std::map<std::pair<std::size_t, unsigned>, Lowering> by_unit;  // file and mode of halves
  checkWrites(graph, execute);
  DebugContext debug = execute.debug;
  for (const auto id : execute.ids) {
    const VertexStore& store = *graph.vertices;
    const auto& set = store.compute_sets[id];
    if (debug.getPathName().empty()) debug = set.debug;
    for (const auto v : set.vertices) {
      const VertexRecord& vertex = store.vertices[v];
      by_unit
          .try_emplace({vertex.file, vertex.half_mode}, graph, debug, vertex.file, vertex.half_mode)
          .first->second.add(v, vertex);
    }
  }
  std::vector<ProgramNodePtr> nodes;
  for (auto& [unit, lowering] : by_unit) {
    const bool is_first = nodes.empty();
    for (auto& node : lowering.finish(execute.view, is_first)) nodes.push_back(std::move(node));
  }
  if (execute.view && nodes.empty())
    throw graph_connection_error(
        "[Execute] needs a compute set with vertices for a tensor of what "
        "they return; got '" +
        debug.getPathName() + "' without. Leave the tensor out.");
  return nodes;
}

}  // namespace ipujax::engine
