#include "popx/CustomOpGraph.hpp"

#include <dlfcn.h>

#include <mutex>
#include <set>

#include "popx/Native.hpp"

namespace popx {
namespace {

using custom_op::refuse;
using poplar::Tensor;
using poplar::program::Program;
using Variables = std::set<std::uint32_t>;

void addVariables(const native::ViewPtr& view, Variables& to) {
  if (view) native::forEachRun(*view, [&](std::uint32_t v, auto, auto) { to.insert(v); });
}

/// The variables that steps of a program write to, without vertices: what they write is only known
/// when they are compiled.
void addWritten(const native::ProgramNode& node, Variables& to) {
  for (const auto& operand : node.step.operands)
    if (operand.access != native::Access::kRead) addVariables(operand.view, to);
  if (node.kind == native::ProgramKind::kStreamIn) addVariables(node.view, to);
  for (const auto& child : node.children) addWritten(*child, to);
}

void addPlaceTo(native::ProgramNode& node, const native::DebugContext& debug) {
  if (node.debug.source().empty()) node.debug = node.debug.withSource(debug.source());
  for (const auto& child : node.children) addPlaceTo(*child, debug);
}

}  // namespace

/// Libraries build graphs with the extension's copy of the Poplar API.
void custom_op::showPoplar() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&showPoplar), &info) != 0 && info.dli_fname)
      dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  });
}

void custom_op::guarded(const std::string& function, const std::function<void()>& call) {
  try {
    native::guarded([&] { call(); });
  } catch (const native::CodeletFault& e) {
    throw poplar::poplar_error("[custom_op] needs " + function + " to return; it " + e.what() +
                               ". Correct its code.");
  }
}

void custom_op::construct(void* library) { native::runConstructors(library); }

bool custom_op::isOf(const poplar::Graph& graph, const Tensor& t) {
  return t.graphImpl() == &graph.impl();
}

void custom_op::checkWritten(const std::string& function, const Program& program,
                             const std::vector<Tensor>& kept) {
  if (!program.node()) return;
  Variables written;
  addWritten(*program.node(), written);
  for (const Tensor& t : kept) {
    Variables own;
    addVariables(t.view(), own);
    for (const std::uint32_t v : own)
      if (written.count(v) > 0)
        refuse(function + " to leave inputs alone that its metadata does not name as overwritten",
               "a program that writes to one",
               "Name it in input_to_output_tensor_aliasing of " + function + "_metadata.");
  }
}

void custom_op::addPlace(const Program& program, const poplar::DebugContext& debug) {
  if (program.node()) addPlaceTo(*program.node(), debug);
}

}  // namespace popx
