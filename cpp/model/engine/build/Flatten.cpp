#include <map>
#include <stdexcept>
#include <utility>

#include "engine/Errors.hpp"
#include "engine/build/Draft.hpp"
#include "engine/build/Mapped.hpp"
#include "engine/build/PartNodes.hpp"
#include "engine/build/VertexLowering.hpp"
#include "engine/build/Writable.hpp"
#include "engine/graph/Emit.hpp"
#include "engine/run/FloatTraps.hpp"

namespace ipujax::engine::build {
namespace {

class Flattener {
 public:
  Flattener(Draft& draft, GraphImpl& graph, const FlattenOptions& options)
      : draft_(draft), graph_(graph), options_(options) {
    draft_.graph = &graph;
    for (std::uint32_t v = 0; v < graph.variables.size(); ++v) addStorage(v);
    if (options.selector >= 0)
      draft_.storages[static_cast<std::size_t>(options.selector)].input = 0;
    if (options.bind_streams) countSlots();
  }

  void run(const ProgramNode& root) {
    const std::uint32_t index = addNode(NodeKind::kSequence);
    Span span{Span::Kind::kSequence, 0, 0, true, {}};
    addReplicationIndices(index, span);
    addInto(root, index, span, true);
    close(span);
    draft_.root = std::move(span);
    for (const auto& [storage, position] : leaves_at_) {
      for (const auto& access : draft_.accesses[storage]) {
        if (access.kind != AccessKind::kRead && access.position >= position)
          throw poplar_error(
              "[Copy] needs a result that is final; got one that is written after it was streamed "
              "out. Stream it out last.");
      }
    }
  }

 private:
  void addStorage(std::uint32_t v) {
    const auto& variable = graph_.variables[v];
    Storage storage;
    storage.variable = v;
    storage.bytes = variable.elements * sizeOf(variable.type);
    storage.constant = variable.is_constant;
    storage.persistent = v < options_.persistent.size() && options_.persistent[v];
    draft_.storages.push_back(storage);
    draft_.accesses.emplace_back();
  }

  void countSlots() {
    slot_.resize(graph_.streams.size());
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    for (const auto& stream : graph_.streams) {
      const bool in = stream.to_device;
      const auto& signature = draft_.image.signature;
      slot_[stream.id] = nextSlot(in ? signature.inputs : signature.outputs, in ? inputs : outputs);
    }
  }

  /// Tokens are parameters and results of JAX, but hold nothing and have no stream.
  static std::int32_t nextSlot(const std::vector<TensorSpec>& specs, std::size_t& next) {
    while (next < specs.size() && specs[next].dtype == "token") ++next;
    if (next >= specs.size())
      throw poplar_error(
          "[buildImage] needs an argument or result for each stream; got more streams. Describe "
          "each of them in the signature.");
    return static_cast<std::int32_t>(next++);
  }

  std::uint32_t addNode(NodeKind kind) {
    draft_.image.nodes.emplace_back().kind = kind;
    return static_cast<std::uint32_t>(draft_.image.nodes.size() - 1);
  }

  std::uint32_t debugOf(const DebugContext& debug) {
    const auto key = std::make_pair(debug.getPathName(), debug.source());
    const auto [found, fresh] = debug_.emplace(key, draft_.image.debug.size());
    if (fresh) draft_.image.debug.push_back({key.first, key.second});
    return found->second;
  }

  std::uint32_t now() const { return static_cast<std::uint32_t>(draft_.occurrences.size()); }
  void open(Span& span) { span.begin = now(); }
  void close(Span& span) { span.end = now(); }

  OperandDesc operand(const View& view, Access access) {
    if (view.variable >= graph_.variables.size())
      throw poplar_error(
          "[Engine] needs programs of tensors of its graph; got a tensor of another graph. Make "
          "all of them with one graph.");
    OperandDesc o;
    o.buffer = view.variable;
    o.type = view.type;
    o.access = access;
    // An empty view may begin anywhere, even outside of its variable.
    o.offset = view.numElements() == 0 ? 0 : view.offset;
    o.shape.assign(view.shape.begin(), view.shape.end());
    o.strides = view.strides;
    return o;
  }

  bool coversVariable(const View& view) const {
    if (!view.isStrided() || view.numElements() != graph_.variables[view.variable].elements)
      return false;
    for (std::size_t i = 0; i < view.shape.size(); ++i) {
      if (view.strides[i] == 0 && view.shape[i] > 1) return false;
    }
    return true;
  }

  void note(const View& view, Access access, std::uint32_t position) {
    if (access != Access::kWrite)
      draft_.accesses[view.variable].push_back({position, AccessKind::kRead});
    if (access != Access::kRead) {
      const bool all = access == Access::kWrite && coversVariable(view);
      draft_.accesses[view.variable].push_back(
          {position, all ? AccessKind::kWriteAll : AccessKind::kWriteSome});
    }
  }

  void addInto(const ProgramNode& node, std::uint32_t parent, Span& span, bool top) {
    const NestingLevel level(nesting_);
    switch (node.kind) {
      case ProgramKind::kSequence:
        if (!node.text.empty()) parent = addNamed(node, parent);
        for (const auto& child : node.children) addInto(*child, parent, span, top);
        return;
      case ProgramKind::kStep:
        return addStep(node, parent, span);
      case ProgramKind::kStreamIn:
        return addStreamIn(node, parent, span, top);
      case ProgramKind::kStreamOut:
        return addStreamOut(node, parent, span, top);
      case ProgramKind::kExecute:
        for (const auto& step : lowerComputeSets(graph_, node)) {
          keep_.push_back(step);
          addNewStorages();
          addInto(*step, parent, span, false);
        }
        return;
      case ProgramKind::kCall:
        return addCall(node, parent, span);
      case ProgramKind::kRepeat:
        return addRepeat(node, parent, span);
      case ProgramKind::kWhile:
        return addWhile(node, parent, span);
      case ProgramKind::kIf:
      case ProgramKind::kSwitch:
        return addBranches(node, parent, span);
      case ProgramKind::kPrint:
        return addGathered(node, "engine.print", parent, span);
      case ProgramKind::kUndefine:
        for (unsigned part = 0; part < graph_.partsOf(*node.view); ++part)
          addUndefined(*graph_.partOf(node.view, part), span);
        return;
      case ProgramKind::kError: {
        const std::uint32_t index = addNode(NodeKind::kError);
        draft_.image.nodes[parent].children.push_back(index);
        draft_.image.nodes[index].value = debugOf(DebugContext(node.text));
        return;
      }
    }
  }

  /// Adds a separate sequence below `parent`.
  std::uint32_t addNamed(const ProgramNode& node, std::uint32_t parent) {
    const std::uint32_t index = addNode(NodeKind::kSequence);
    draft_.image.nodes[parent].children.push_back(index);
    draft_.image.nodes[index].value = debugOf(node.debug) + 1;
    return index;
  }

  /// The step of `node`; it is added once, however often it occurs.
  std::uint64_t stepOf(const ProgramNode& node) {
    const auto [found, fresh] = steps_.emplace(&node, draft_.image.steps.size());
    if (!fresh) return found->second;
    needWritable(graph_, node);
    StepDesc step;
    step.kernel = node.step.kernel;
    const bool copies = step.kernel == "engine.copy";
    for (const auto& o : node.step.operands) {
      step.operands.push_back(operand(*o.view, o.access));
      if (copies) needTiles(graph_, *o.view, node.debug);
    }
    step.attributes = node.step.attributes;
    std::int64_t traps = options_.float_traps;
    if (step.kernel == "engine.vertices") traps |= maskOf(graph_.traps);
    if (step.attributes.has(kFloatTraps)) traps |= step.attributes.integer(kFloatTraps);
    if (traps != 0) step.attributes.set(kFloatTraps, traps);
    step.cost = node.step.cost;
    step.in_place = node.step.in_place;
    step.debug = debugOf(node.debug);
    draft_.image.steps.push_back(std::move(step));
    draft_.step_ipus.push_back(ipusOf(node.step));
    return found->second;
  }

  /// One bit for each IPU that has some of the operands.
  std::uint64_t ipusOf(const Step& step) const {
    const System& system = graph_.system;
    if (system.num_ipus == 1) return 1;
    std::uint64_t ipus = 0;
    for (const auto& o : step.operands)
      ipus |= engine::ipusOf(*graph_.variables[o.view->variable].map, system.machine.tiles_per_ipu);
    return ipus;
  }

  void addStep(const ProgramNode& node, std::uint32_t parent, Span& span) {
    const unsigned parts = part_nodes_.partsOf(node);
    for (unsigned part = 0; parts > 1 && part < parts; ++part) {
      const ProgramNode& made = part_nodes_.nodeOf(node, part);
      addNewStorages();
      addStep(made, parent, span);
    }
    if (parts > 1) return;
    const std::uint64_t step = stepOf(node);
    const std::uint32_t index = addNode(NodeKind::kStep);
    draft_.image.nodes[index].value = step;
    draft_.image.nodes[parent].children.push_back(index);
    const std::uint32_t position = now();
    draft_.occurrences.push_back({static_cast<std::int64_t>(step)});
    span.children.push_back({Span::Kind::kLeaf, position, position + 1, true, {}});
    // Reads come first: a step that reads and writes one storage needs the old value.
    for (const auto& o : node.step.operands) {
      if (o.access != Access::kWrite) note(*o.view, Access::kRead, position);
    }
    for (const auto& o : node.step.operands) {
      if (o.access == Access::kRead) continue;
      note(*o.view, o.access == Access::kReadWrite ? Access::kReadWrite : Access::kWrite, position);
    }
  }

  /// Adds a step over the node's tensor, made contiguous, and keeps the new nodes alive.
  void addGathered(const ProgramNode& node, const char* kernel, std::uint32_t parent, Span& span) {
    auto step = std::make_shared<ProgramNode>();
    step->kind = ProgramKind::kStep;
    step->step.kernel = kernel;
    step->step.attributes = node.step.attributes;
    step->step.attributes.set("title", node.text);
    step->step.operands = {{contiguous(partsTogether(node.view), parent, span), Access::kRead}};
    step->debug = node.debug;
    keep_.push_back(step);
    addInto(*step, parent, span, false);
  }

  void addReplicationIndices(std::uint32_t parent, Span& span) {
    for (const ViewPtr& index : graph_.replication_indices) {
      auto step = std::make_shared<ProgramNode>();
      step->kind = ProgramKind::kStep;
      step->step.kernel = "engine.replication_index";
      step->step.operands = {{index, Access::kWrite}};
      step->debug = DebugContext("replicationIndex");
      keep_.push_back(step);
      addInto(*step, parent, span, false);
    }
  }

  /// Adds a variable in the same kind of memory, with its storage.
  ViewPtr addVariable(const View& like, const DebugContext& debug) {
    ViewPtr view = graph_.addTemporary(like, like.shape, debug);
    addStorage(view->variable);
    return view;
  }

  void addNewStorages() {
    while (draft_.storages.size() < graph_.variables.size())
      addStorage(static_cast<std::uint32_t>(draft_.storages.size()));
  }

  /// All parts of a view as [parts, ...]; the view itself if it has only one.
  ViewPtr partsTogether(const ViewPtr& view) {
    if (graph_.partsOf(*view) == 1) return view;
    ViewPtr all = graph_.allParts(view);
    addNewStorages();
    return all;
  }

  ViewPtr contiguous(const ViewPtr& view, std::uint32_t parent, Span& span) {
    if (view->isContiguous()) return view;
    const ViewPtr copy = addVariable(*view, "contiguous");
    addCopy(view, copy, parent, span);
    return copy;
  }

  void addCopy(const ViewPtr& src, const ViewPtr& dst, std::uint32_t parent, Span& span) {
    const auto copy = std::make_shared<ProgramNode>();
    appendCopy(graph_, *copy, src, dst, {});
    addNewStorages();
    keep_.push_back(copy);
    addInto(*copy, parent, span, false);
  }

  bool isWhole(const View& view) const {
    return view.isContiguous() && view.offset == 0 && coversVariable(view);
  }

  void addStreamIn(const ProgramNode& node, std::uint32_t parent, Span& span, bool top) {
    if (!options_.bind_streams) return addStreamStep(node, true, parent, span);
    const std::int32_t slot = slot_[node.ids[0]];
    const View& view = *node.view;
    addHostIo(node, true, parent, span);
    const bool direct = top && isWhole(view) && draft_.accesses[view.variable].empty() &&
                        draft_.storages[view.variable].input < 0;
    if (direct) {
      draft_.storages[view.variable].input = slot;
      return;
    }
    const ViewPtr landing = addVariable(view, node.debug);
    draft_.storages[landing->variable].input = slot;
    addCopy(landing, node.view, parent, span);
  }

  void addStreamOut(const ProgramNode& node, std::uint32_t parent, Span& span, bool top) {
    if (!options_.bind_streams) return addStreamStep(node, false, parent, span);
    const std::int32_t slot = slot_[node.ids[0]];
    addHostIo(node, false, parent, span);
    Storage& storage = draft_.storages[node.view->variable];
    const bool direct = top && isWhole(*node.view) && storage.output < 0 && !storage.constant &&
                        (storage.input < 0 || mayAlias(slot, storage.input));
    if (direct) {
      storage.output = slot;
      leaves_at_.emplace_back(node.view->variable, now());
      return;
    }
    const ViewPtr leaving = addVariable(*node.view, node.debug);
    draft_.storages[leaving->variable].output = slot;
    addCopy(node.view, leaving, parent, span);
  }

  /// Adds a step that does nothing but cost the streaming of the node's tensor; no step if the
  /// caller's array stays on the device.
  void addHostIo(const ProgramNode& node, bool in, std::uint32_t parent, Span& span) {
    const auto& signature = draft_.image.signature;
    const auto& specs = in ? signature.inputs : signature.outputs;
    if (!specs[static_cast<std::size_t>(slot_[node.ids[0]])].is_streamed) return;
    auto step = std::make_shared<ProgramNode>();
    step->kind = ProgramKind::kStep;
    step->debug = node.debug;
    step->step.kernel = "engine.account";
    const bool is_first = !std::exchange(in ? has_read_ : has_given_, true);
    step->step.cost = costOfStream(node.view, in, is_first);
    keep_.push_back(step);
    addInto(*step, parent, span, false);
    if (graph_.system.num_ipus > 1)
      draft_.step_ipus.back() = engine::ipusOf(*graph_.variables[node.view->variable].map,
                                               graph_.system.machine.tiles_per_ipu);
  }

  Cost costOfStream(const ViewPtr& view, bool in, bool asks) {
    const Cost cost = hostIoCost(draft_.host, graph_, view, in, asks);
    addNewStorages();
    return cost;
  }

  bool mayAlias(std::int32_t output, std::int32_t input) const {
    const auto& alias = draft_.image.signature.output_alias;
    return static_cast<std::size_t>(output) < alias.size() &&
           alias[static_cast<std::size_t>(output)] == input;
  }

  void addStreamStep(const ProgramNode& node, bool in, std::uint32_t parent, Span& span) {
    auto step = std::make_shared<ProgramNode>();
    step->kind = ProgramKind::kStep;
    step->debug = node.debug;
    step->step.kernel = in ? "engine.stream_in" : "engine.stream_out";
    step->step.attributes.set("stream", static_cast<std::int64_t>(node.ids[0]));
    const Stream& stream = graph_.streams[node.ids[0]];
    if (stream.is_in_runs) needTiles(graph_, *node.view, node.debug);
    const bool is_shared = in && stream.parts == 1 && graph_.partsOf(*node.view) > 1;
    const ViewPtr tensor =
        is_shared ? graph_.partOf(node.view, 0) : partsTogether(node.view);  // what is streamed
    addNewStorages();
    if (stream.is_in_runs) step->step.cost = costOfStream(tensor, in, true);
    keep_.push_back(step);
    if (in && (is_shared || !tensor->isContiguous())) {
      const ViewPtr landing = addVariable(*tensor, node.debug);
      step->step.operands = {{landing, Access::kWrite}};
      addInto(*step, parent, span, false);
      addCopy(landing, is_shared ? node.view : tensor, parent, span);  // to all parts
      return;
    }
    const ViewPtr view = in ? tensor : contiguous(tensor, parent, span);
    step->step.operands = {{view, in ? Access::kWrite : Access::kRead}};
    addInto(*step, parent, span, false);
  }

  void addCall(const ProgramNode& node, std::uint32_t parent, Span& span) {
    if (node.ids[0] >= graph_.functions.size())
      throw poplar_error(
          "[Call] needs a function of this graph; got another. Make it with this graph's "
          "addFunction.");
    addInto(*graph_.functions[node.ids[0]], parent, span, false);
  }

  void addRepeat(const ProgramNode& node, std::uint32_t parent, Span& span) {
    if (node.count == 0) return;
    const std::uint32_t index = addNode(NodeKind::kRepeat);
    draft_.image.nodes[parent].children.push_back(index);
    draft_.image.nodes[index].value = node.count;
    Span loop{Span::Kind::kRepeat, now(), 0, true, {}};
    loop.children.push_back(addBody(*node.children[0], index));
    close(loop);
    span.children.push_back(std::move(loop));
  }

  void addWhile(const ProgramNode& node, std::uint32_t parent, Span& span) {
    const std::uint32_t index = addNode(NodeKind::kRepeatWhile);
    draft_.image.nodes[parent].children.push_back(index);
    draft_.image.nodes[index].value = node.count;
    Span loop{Span::Kind::kWhile, now(), 0, true, {}};
    Span condition = addBody(*node.children[0], index);
    addPredicate(node, index, condition);
    loop.children.push_back(std::move(condition));
    loop.children.push_back(addBody(*node.children[1], index));
    close(loop);
    span.children.push_back(std::move(loop));
  }

  void addBranches(const ProgramNode& node, std::uint32_t parent, Span& span) {
    const std::uint32_t index =
        addNode(node.kind == ProgramKind::kIf ? NodeKind::kIf : NodeKind::kSwitch);
    draft_.image.nodes[parent].children.push_back(index);
    draft_.image.nodes[index].selectors = node.selectors;
    addPredicate(node, index, span);
    Span branches{Span::Kind::kBranches, now(), 0, true, {}};
    for (const auto& child : node.children) branches.children.push_back(addBody(*child, index));
    close(branches);
    span.children.push_back(std::move(branches));
  }

  Span addBody(const ProgramNode& body, std::uint32_t parent) {
    const std::uint32_t index = addNode(NodeKind::kSequence);
    draft_.image.nodes[parent].children.push_back(index);
    Span span{Span::Kind::kSequence, now(), 0, true, {}};
    addInto(body, index, span, false);
    close(span);
    return span;
  }

  void addPredicate(const ProgramNode& node, std::uint32_t index, Span& span) {
    const ViewPtr first = graph_.partOf(node.view, 0);  // the parts of a condition are equal
    addNewStorages();
    const View& view = *first;
    if (!view.isStrided())
      throw poplar_error(
          "[Program] needs a predicate in one variable; got a view of several. Copy it to a "
          "variable first.");
    draft_.image.nodes[index].predicate = operand(view, Access::kRead);
    addAccess(view, Access::kRead, span);
    span.end = now();
  }

  /// Ignores views of only a part of a variable: the rest of it may be needed.
  void addUndefined(const View& view, Span& span) {
    if (coversVariable(view)) addAccess(view, Access::kWrite, span);
  }

  /// Adds an access outside of any step.
  void addAccess(const View& view, Access access, Span& span) {
    const std::uint32_t position = now();
    draft_.occurrences.push_back({-1});
    span.children.push_back({Span::Kind::kLeaf, position, position + 1, true, {}});
    note(view, access, position);
  }

  Draft& draft_;
  GraphImpl& graph_;
  const FlattenOptions& options_;
  std::vector<std::int32_t> slot_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> debug_;
  std::map<const ProgramNode*, std::uint64_t> steps_;
  PartNodes part_nodes_{graph_};
  std::vector<ProgramNodePtr> keep_;
  bool has_read_ = false;  ///< a stream of the host; later ones come with the first
  bool has_given_ = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> leaves_at_;  ///< (storage, position)
  int nesting_ = 0;  ///< of programs, including those of called functions
};

}  // namespace

void flatten(Draft& draft, GraphImpl& graph, const ProgramNode& root,
             const FlattenOptions& options) {
  Flattener(draft, graph, options).run(root);
  const auto n = static_cast<std::uint32_t>(draft.storages.size());
  draft.merged_into.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) draft.merged_into[i] = i;
  draft.step_removed.assign(draft.image.steps.size(), false);
  if (draft.image.debug.empty()) draft.image.debug.emplace_back();
}

}  // namespace ipujax::engine::build
