#include <algorithm>

#include "popops/Zero.hpp"
#include "poputil/Util.hpp"
#include "popx/CustomOp.hpp"
#include "popx/CustomOpGraph.hpp"
#include "popx/CustomOpInterface.hpp"

namespace popx {

/// What one function of a library is called with.
struct CustomOpLibrary::Call {
  std::string function;
  poplar::Graph& graph;
  const std::string& attributes;
  poplar::program::Sequence& prog;
  const poplar::DebugContext& debug;
  std::string prefix = debug.getPathName();
};

namespace {

using custom_op::refuse;
using custom_op::Tensors;
using poplar::Tensor;
using poplar::program::Program;
using poplar::program::Sequence;

std::string textOf(const Tensor& t) { return t.elementType().toString() + " " + t.shapeToString(); }

std::size_t checkedInput(const std::string& function, std::int64_t i, std::size_t count) {
  if (i >= 0 && static_cast<std::size_t>(i) < count) return static_cast<std::size_t>(i);
  refuse("inputs from 0 to " + std::to_string(count) + " - 1 in " + function + "_metadata",
         std::to_string(i), "Name inputs of the op.");
}

void checkOnTiles(const std::string& what, const Tensor& t, const poplar::Graph& graph) {
  if (!custom_op::isOf(graph, t))
    refuse(what + " to be a tensor of the graph that the function was given", "one of another",
           "Make it with that graph.");
  bool is_complete = false;
  graph.getTileMapping(t, &is_complete);
  if (!is_complete)
    refuse(what + " on tiles", "elements on no tile", "Call setTileMapping of the graph.");
}

void checkAliases(const std::string& function, const CustomOpMetadata& known,
                  std::size_t num_outputs) {
  for (const auto& [input, output] : known.aliases)
    if (output < 0 || static_cast<std::size_t>(output) >= num_outputs)
      refuse(
          "outputs from 0 to " + std::to_string(num_outputs) + " - 1 in " + function + "_metadata",
          std::to_string(output) + " for input " + std::to_string(input),
          "Name outputs of the op.");
}

bool meetsOneOf(const Tensor& t, const Tensors& others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Tensor& other) { return t.intersectsWith(other); });
}

/// Copies outputs that overlap an input or an earlier output, or are constants, so that later
/// operations may change them.
void separate(const Tensors& inputs, Tensors& outputs, poplar::Graph& graph, Sequence& prog,
              const poplar::DebugContext& debug) {
  Tensors taken = inputs;
  for (Tensor& t : outputs) {
    if (!t.isParallelWriteable() || meetsOneOf(t, taken))
      t = poputil::duplicate(graph, t, prog, {debug, "output"});
    taken.push_back(t);
  }
}

/// The inputs that the function does not overwrite.
Tensors keptOf(const Tensors& given, const CustomOpMetadata& known) {
  Tensors kept;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (known.aliases.count(static_cast<std::int64_t>(i)) == 0) kept.push_back(given[i]);
  return kept;
}

/// Adds the program that a function returned, after checks.
void addProgram(const std::string& function, const CustomOpMetadata& known, const Tensors& given,
                const Program& program, Tensors& outputs, poplar::Graph& graph, Sequence& prog,
                const poplar::DebugContext& debug) {
  const Tensors kept = keptOf(given, known);
  checkAliases(function, known, outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    checkOnTiles("output " + std::to_string(i) + " of " + function, outputs[i], graph);
  if (!program.isEmpty()) {
    custom_op::checkWritten(function, program, kept);
    custom_op::addPlace(program, debug);
    prog.add(program);
  }
  separate(kept, outputs, graph, prog, debug);
}

/// Replaces gradients that a function left empty by zeros of the forward inputs' shapes.
void fillEmpty(Tensors& outputs, const Tensors& fwd_inputs, int input, const std::string& function,
               poplar::Graph& graph, Sequence& prog, const poplar::DebugContext& debug) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].valid()) continue;
    const bool of_all = outputs.size() == fwd_inputs.size();
    if (!of_all && outputs.size() != 1)
      refuse("tensors of a graph from " + function, "an empty poplar::Tensor",
             "Assign the gradient of every input of inputs_with_gradients.");
    const std::size_t number = of_all ? i : static_cast<std::size_t>(input);
    outputs[i] = graph.clone(fwd_inputs.at(number), {debug, "zeros"});
    popops::zero(graph, outputs[i], prog, {debug, "zeros"});
  }
}

/// Whether the types are equal, or integers that differ in sign: functions allocate unsigned
/// indices for operands of a framework that has only signed ones.
bool holdsAs(const poplar::Type& made, const poplar::Type& wanted) {
  using namespace poplar;
  if (made == wanted) return true;
  for (const auto& [with_sign, without] :
       {std::pair<Type, Type>(INT, UNSIGNED_INT), std::pair<Type, Type>(SHORT, UNSIGNED_SHORT),
        std::pair<Type, Type>(SIGNED_CHAR, UNSIGNED_CHAR),
        std::pair<Type, Type>(LONGLONG, UNSIGNED_LONGLONG)})
    if ((made == with_sign && wanted == without) || (made == without && wanted == with_sign))
      return true;
  return false;
}

}  // namespace

Tensor CustomOpLibrary::allocate(const Call& call, unsigned input, const Tensor& like) const {
  const std::string function = call.function + "_allocator";
  void* const found = required(function);
  const Tensor made = custom_op::called(function, [&] {
    if (level_ < custom_op::kAttributesSince)
      return reinterpret_cast<custom_op::Allocator0*>(found)(call.graph, input, like.shape(),
                                                             like.elementType());
    return reinterpret_cast<custom_op::Allocator2*>(found)(
        call.graph, input, like.shape(), like.elementType(), call.attributes, call.prefix);
  });
  if (!made.valid()) return made;
  const std::string what = "the tensor of " + function + " for input " + std::to_string(input);
  if (made.shape() != like.shape() || !holdsAs(made.elementType(), like.elementType()))
    refuse(what + " to be " + textOf(like), textOf(made), "Return a tensor of the shape given.");
  checkOnTiles(what, made, call.graph);
  return made.reinterpret(like.elementType());
}

/// The inputs as the function gets them: in tensors it allocates, and copies if it overwrites them.
Tensors CustomOpLibrary::prepare(const Call& call, const CustomOpMetadata& known,
                                 const Tensors& inputs) const {
  Tensors given = inputs;
  const bool allocates = has(call.function + "_allocator");
  for (const std::int64_t i : known.allocating_inputs) {
    Tensor& t = given.at(checkedInput(call.function, i, inputs.size()));
    if (!allocates) continue;
    const Tensor made = allocate(call, static_cast<unsigned>(i), t);
    if (!made.valid()) continue;
    call.prog.add(poplar::program::Copy(t, made, false, {call.debug, "allocated"}));
    t = made;
  }
  for (const auto& [i, output] : known.aliases) {
    Tensor& t = given.at(checkedInput(call.function, i, inputs.size()));
    t = poputil::duplicate(call.graph, t, call.prog, {call.debug, "in_place"});
  }
  return given;
}

Tensors CustomOpLibrary::build(poplar::Graph& graph, const std::string& name, const Tensors& inputs,
                               const std::string& attributes, Sequence& prog,
                               const poplar::DebugContext& debugContext) const {
  const Call call{name, graph, attributes, prog, debugContext};
  void* const function = required(name);
  const CustomOpMetadata known = metadata(name, static_cast<unsigned>(inputs.size()));
  const Tensors given = prepare(call, known, inputs);
  Tensors outputs;
  const Program program = custom_op::called(name, [&] {
    if (level_ < custom_op::kAttributesSince)
      return reinterpret_cast<custom_op::Build0*>(function)(graph, given, outputs, call.prefix);
    return reinterpret_cast<custom_op::Build2*>(function)(graph, given, outputs, attributes,
                                                          call.prefix);
  });
  for (const Tensor& t : outputs)
    if (!t.valid())
      refuse("tensors of a graph from " + name, "an empty poplar::Tensor", "Assign every output.");
  addProgram(name, known, given, program, outputs, graph, prog, debugContext);
  return outputs;
}

Tensors CustomOpLibrary::buildGradient(poplar::Graph& graph, const std::string& name, int input,
                                       const Tensors& gradients, const Tensors& fwd_inputs,
                                       const Tensors& fwd_outputs, const std::string& attributes,
                                       Sequence& prog,
                                       const poplar::DebugContext& debugContext) const {
  const Call call{name + "_grad", graph, attributes, prog, debugContext};
  void* const function = required(call.function);
  Tensors all = gradients;
  all.insert(all.end(), fwd_inputs.begin(), fwd_inputs.end());
  all.insert(all.end(), fwd_outputs.begin(), fwd_outputs.end());
  const CustomOpMetadata known = metadata(call.function, static_cast<unsigned>(all.size()));
  const Tensors given = prepare(call, known, all);
  const auto end_of_gradients = given.begin() + static_cast<std::ptrdiff_t>(gradients.size());
  const auto end_of_inputs = end_of_gradients + static_cast<std::ptrdiff_t>(fwd_inputs.size());
  const Tensors parts[] = {{given.begin(), end_of_gradients},
                           {end_of_gradients, end_of_inputs},
                           {end_of_inputs, given.end()}};
  Tensors outputs;
  const Program program = custom_op::called(call.function, [&] {
    if (level_ < custom_op::kAttributesSince)
      return reinterpret_cast<custom_op::Gradient0*>(function)(graph, input, parts[0], parts[1],
                                                               parts[2], outputs, call.prefix);
    return reinterpret_cast<custom_op::Gradient2*>(function)(
        graph, input, parts[0], parts[1], parts[2], outputs, attributes, call.prefix);
  });
  fillEmpty(outputs, fwd_inputs, input, call.function, graph, prog, debugContext);
  addProgram(call.function, known, given, program, outputs, graph, prog, debugContext);
  return outputs;
}

}  // namespace popx
