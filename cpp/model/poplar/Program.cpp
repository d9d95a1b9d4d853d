#include "poplar/Program.hpp"

#include "engine/graph/Emit.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "engine/graph/RemoteCopy.hpp"
#include "poplar/exceptions.hpp"

namespace poplar::program {
namespace {

using ipujax::engine::makeNode;
using ipujax::engine::ProgramKind;
using ipujax::engine::ProgramNodePtr;

const ProgramNodePtr& nodeOf(const Program& program) {
  static const ProgramNodePtr kEmpty = makeNode(ProgramKind::kSequence, {});
  return program.node() ? program.node() : kEmpty;
}

void needScalar(const Tensor& tensor, const char* where) {
  if (!tensor.valid() || tensor.numElements() != 1) {
    throw poplar_error(std::string("[") + where + "] needs a tensor of one element; got " +
                       (tensor.valid() ? tensor.shapeToString() : "none") +
                       ". Slice or reduce it.");
  }
  const Type type = tensor.elementType();
  const std::size_t bytes = ipujax::engine::sizeOf(type.element());
  if (type.isFloatingPoint() || (bytes != 1 && bytes != 4))
    throw poplar_error(std::string("[") + where +
                       "] needs a bool, or an integer of 8 or 32 bits; got " + type.toString() +
                       ". Compare or cast it.");
}

void needTensor(const Tensor& tensor, const char* where) {
  if (!tensor.valid())
    throw poplar_error(std::string("[") + where +
                       "] needs a tensor of a graph; got an empty Tensor. Make it with "
                       "addVariable.");
}

ProgramNodePtr streamNode(ProgramKind kind, const DataStream& stream, const Tensor& tensor,
                          const DebugContext& debug) {
  needTensor(tensor, "Copy");
  const auto& known = tensor.graphImpl()->streams;
  if (stream.id() >= known.size() || known[stream.id()].handle != stream.handle())
    throw poplar_error("[Copy] needs a stream and a tensor of one graph; got the stream '" +
                       stream.handle() + "' of another. Make both with one graph.");
  if (stream.numElements() != tensor.numElements() ||
      stream.elementType() != tensor.elementType()) {
    throw poplar_error(
        "[Copy] stream '" + stream.handle() + "' needs " + std::to_string(stream.numElements()) +
        " elements of " + stream.elementType().toString() + "; got " + tensor.shapeToString() +
        " of " + tensor.elementType().toString() + ". Make both of one type and size.");
  }
  auto node = makeNode(kind, debug);
  node->view = tensor;
  node->ids = {stream.id()};
  return node;
}

ProgramNodePtr remoteNode(const RemoteBuffer& buffer, const Tensor& tensor, const Tensor& offset,
                          bool to_remote, const DebugContext& debug) {
  const std::size_t entries = offset.valid() ? offset.numElements() : buffer.getRepeats();
  const bool integers = !offset.valid() || offset.elementType() < HALF;
  if (tensor.elementType() != buffer.elementType() || !integers ||
      tensor.numElements() != entries * buffer.numElements()) {
    throw poplar_error("[Copy] remote buffer '" + buffer.handle() + "' needs " +
                       std::to_string(entries) + " entries of " +
                       std::to_string(buffer.numElements()) + " elements of " +
                       buffer.elementType().toString() + "; got " + tensor.shapeToString() +
                       " of " + tensor.elementType().toString() +
                       ". Make both of one type and size, with integer offsets.");
  }
  auto node = makeNode(ProgramKind::kSequence, debug);
  auto& graph = *tensor.graphImpl();
  const ipujax::engine::ViewPtr offsets = offset.valid() ? offset.view() : nullptr;
  ipujax::engine::appendRemoteCopy({graph, graph.system}, *node, buffer, tensor, offsets, to_remote,
                                   ipujax::engine::Outside::kFail, debug);
  return node;
}

ProgramNodePtr whileNode(bool go_on, const Program& cond, const Tensor& predicate,
                         const Program& body, const DebugContext& debug) {
  needScalar(predicate, "RepeatWhile");
  auto node = makeNode(ProgramKind::kWhile, debug);
  node->count = go_on ? 1 : 0;
  node->view = predicate;
  node->children = {nodeOf(cond), nodeOf(body)};
  return node;
}

}  // namespace

bool Program::isEmpty() const {
  return !node_ || (node_->kind == ProgramKind::kSequence && node_->children.empty());
}

Sequence::Sequence(const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {}

Sequence::Sequence(std::initializer_list<Program> programs, const DebugContext& debugContext)
    : Sequence(debugContext) {
  for (const auto& program : programs) add(program);
}

Sequence::Sequence(const std::vector<Program>& programs, const DebugContext& debugContext)
    : Sequence(debugContext) {
  for (const auto& program : programs) add(program);
}

void Sequence::add_front(const Program& program) {
  node_->children.insert(node_->children.begin(), nodeOf(program));
}

void Sequence::add(const Program& program) {
  if (program.node() == node_)
    throw control_program_error(
        "[Sequence::add] needs another program; got the sequence itself. Use Repeat to run one "
        "several times.");
  node_->children.push_back(nodeOf(program));
}

Block::Block(const Program& program, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {
  node_->children.push_back(nodeOf(program));
  node_->text = debugContext.getPathName();
}

Execute::Execute(ComputeSet cs, const DebugContext& debugContext)
    : Execute(std::vector<ComputeSet>{cs}, debugContext) {}

Execute::Execute(const std::vector<ComputeSet>& cs, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {
  auto vertices = makeNode(ProgramKind::kExecute, debugContext);
  for (const auto& set : cs) vertices->ids.push_back(set.getId());
  node_->children.push_back(std::move(vertices));
  for (const auto& set : cs) {
    if (set.steps()) node_->children.push_back(set.steps());
  }
}

Execute::Execute(ComputeSet cs, Tensor t, const DebugContext& debugContext)
    : Execute(cs, debugContext) {
  if (!t.valid() || t.elementType() != BOOL || t.numElements() != 1)
    throw poplar_error("[Execute] needs one element of BOOL for what vertices return; got " +
                       (t.valid() ? t.shapeToString() + " of " + t.elementType().toString()
                                  : std::string("an empty Tensor")) +
                       ". Make it with addVariable(BOOL, {1}).");
  node_->children.front()->view = t.view();
}

Copy::Copy(const FunctionBuffer&, const Function&, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {}
Copy::Copy(const Function&, const FunctionBuffer&, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {}

Copy::Copy(Tensor src, Tensor dst, bool, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {
  if (src.numElements() != dst.numElements() || src.elementType() != dst.elementType()) {
    throw poplar_error("[Copy] needs as many elements of one type; got " + src.shapeToString() +
                       " of " + src.elementType().toString() + " and " + dst.shapeToString() +
                       " of " + dst.elementType().toString() +
                       ". Reshape, slice or cast one of them.");
  }
  if (src.graphImpl() != dst.graphImpl())
    throw poplar_error(
        "[Copy] needs tensors of one graph; got some of two. Make both with one graph.");
  if (src.shape() != dst.shape()) src = src.reshape(dst.shape());
  ipujax::engine::appendCopy(*dst.graphImpl(), *node_, src, dst, debugContext);
  if (!src.hasMetadata() || src.getMetadata() == dst.getMetadata()) return;
  if (!dst.graphImpl()->variableOfAll(*dst.view()) || dst.getMetadata().containsConstant())
    throw tensor_metadata_error(
        "[Copy] needs quarters of one format, or all of a variable whose metadata change with "
        "them; got a part, or constant metadata. Cast the source.");
  ipujax::engine::appendCopy(*dst.graphImpl(), *node_, src.getMetadata().reshape({}),
                             dst.getMetadata().reshape({}), debugContext);
}

Copy::Copy(DataStream stream, Tensor dst, bool, const DebugContext& debugContext)
    : Program(streamNode(ProgramKind::kStreamIn, stream, dst, debugContext)) {}

Copy::Copy(Tensor src, DataStream stream, bool, const DebugContext& debugContext)
    : Program(streamNode(ProgramKind::kStreamOut, stream, src, debugContext)) {}

Copy::Copy(const RemoteBuffer& buffer, Tensor dst, const DebugContext& debugContext)
    : Copy(buffer, std::move(dst), Tensor(), debugContext) {}

Copy::Copy(const RemoteBuffer& buffer, Tensor dst, Tensor offset, const DebugContext& debugContext)
    : Program(remoteNode(buffer, dst, offset, false, debugContext)) {}

Copy::Copy(Tensor src, const RemoteBuffer& buffer, const DebugContext& debugContext)
    : Copy(std::move(src), buffer, Tensor(), debugContext) {}

Copy::Copy(Tensor src, const RemoteBuffer& buffer, Tensor offset, const DebugContext& debugContext)
    : Program(remoteNode(buffer, src, offset, true, debugContext)) {}

Repeat::Repeat(unsigned count, const Program& prog, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kRepeat, debugContext)) {
  node_->count = count;
  node_->children = {nodeOf(prog)};
}

RepeatWhileTrue::RepeatWhileTrue(const Program& cond, Tensor predicate, const Program& body,
                                 const DebugContext& debugContext)
    : Program(whileNode(true, cond, predicate, body, debugContext)) {}

RepeatWhileFalse::RepeatWhileFalse(const Program& cond, Tensor predicate, const Program& body,
                                   const DebugContext& debugContext)
    : Program(whileNode(false, cond, predicate, body, debugContext)) {}

Loop::Loop(const Program& body, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kRepeat, debugContext)) {
  node_->count = std::uint64_t{1} << 62;  // longer than any run
  node_->children = {nodeOf(body)};
}

If::If(Tensor predicate, const Program& trueBody, const Program& falseBody,
       const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kIf, debugContext)) {
  needScalar(predicate, "If");
  node_->view = predicate;
  node_->children = {nodeOf(trueBody), nodeOf(falseBody)};
}

Switch::Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
               const Program& defaultCase, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSwitch, debugContext)) {
  needScalar(control, "Switch");
  node_->view = control;
  for (const auto& [selector, program] : cases) {
    node_->selectors.push_back(selector);
    node_->children.push_back(nodeOf(program));
  }
  node_->children.push_back(nodeOf(defaultCase));
}

Switch::Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
               const DebugContext& debugContext)
    : Switch(control, cases, Sequence(), debugContext) {}

Switch::Switch(Tensor control, const Program& defaultCase, const DebugContext& debugContext)
    : Switch(std::move(control), {}, defaultCase, debugContext) {}

Switch::Switch(Tensor control, const DebugContext& debugContext)
    : Switch(std::move(control), {}, Sequence(), debugContext) {}

Switch Switch::switchWithBoundsChecking(Tensor control,
                                        const std::vector<std::pair<std::int32_t, Program>>& cases,
                                        const DebugContext& debugContext) {
  return Switch(std::move(control), cases, Sequence(), debugContext);
}

Switch Switch::switchWithUnreachableDefault(Tensor control, const DebugContext& debugContext) {
  return Switch(std::move(control), debugContext);
}

Switch& Switch::add(std::int32_t value, const Program& body) {
  node_->selectors.push_back(value);
  node_->children.insert(node_->children.end() - 1, nodeOf(body));  // the default is the last
  return *this;
}

Call::Call(const HostFunction& f, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs,
           const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {
  if (f.inputs().empty() && f.outputs().empty()) {
    throw poplar_error(
        "[Call] needs a host function that Graph::addHostFunction made; got number " +
        std::to_string(f.getId()) + " alone. Pass what it returned.");
  }
  if (inputs.size() != f.inputs().size() || outputs.size() != f.outputs().size()) {
    throw poplar_error("[Call] host function '" + f.handle() + "' needs " +
                       std::to_string(f.inputs().size()) + " inputs and " +
                       std::to_string(f.outputs().size()) + " outputs; got " +
                       std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()) +
                       ". Pass one tensor for each.");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    node_->children.push_back(Copy(inputs[i], f.inputs()[i], false, debugContext).node());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    node_->children.push_back(Copy(f.outputs()[i], outputs[i], false, debugContext).node());
}

Call::Call(Function f, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kCall, debugContext)) {
  node_->ids = {f.getId()};
}

PrintTensor::PrintTensor(Tensor t, const DebugContext& debugContext)
    : PrintTensor(t, PrintTensorFmt(), debugContext) {}

PrintTensor::PrintTensor(StringRef title, Tensor t, const DebugContext& debugContext)
    : PrintTensor(title, std::move(t), PrintTensorFmt(), debugContext) {}

PrintTensor::PrintTensor(Tensor t, const PrintTensorFmt& format, const DebugContext& debugContext)
    : PrintTensor(t.valid() ? t.getDebugStr() : "", t, format, debugContext) {}

PrintTensor::PrintTensor(StringRef title, Tensor t, const PrintTensorFmt& format,
                         const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kPrint, debugContext)) {
  needTensor(t, "PrintTensor");
  node_->text = std::string(title);
  node_->view = t;
  node_->step.attributes
      .set("format",
           ipujax::engine::Attributes::Integers{format.summariseThreshold, format.edgeItems,
                                                format.maxLineWidth, format.digits,
                                                static_cast<std::int64_t>(format.floatFormat)})
      .set("marks", std::string{format.separator, format.openBracket, format.closeBracket});
}

WriteUndef::WriteUndef(Tensor t, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kUndefine, debugContext)) {
  needTensor(t, "WriteUndef");
  node_->view = t;
}

Sync::Sync(SyncType, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {}

ErrorProgram::ErrorProgram(StringRef message, Tensor t, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kError, debugContext)) {
  node_->text = std::string(message);
  node_->view = t;
}

Abort::Abort(const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kError, debugContext)) {
  const std::string name = debugContext.getPathName();
  node_->text = "Abort" + (name.empty() ? "" : " '" + name + "'");
}

Abort::Abort(const std::string& message, const DebugContext& debugContext) : Abort(debugContext) {
  node_->text += ": " + message;
}

AbortOnCondition::AbortOnCondition(Tensor predicate, const std::string& message,
                                   const DebugContext& debugContext)
    : Program(If(std::move(predicate), Abort(message, debugContext), Sequence(), debugContext)) {}
AbortOnCondition::AbortOnCondition(Tensor predicate, const DebugContext& debugContext)
    : Program(If(std::move(predicate), Abort(debugContext), Sequence(), debugContext)) {}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(Tensor, const DebugContext& debugContext)
    : Program(makeNode(ProgramKind::kSequence, debugContext)) {}

bool operator==(const Program& lhs, const Program& rhs) { return lhs.node() == rhs.node(); }

}  // namespace poplar::program
