#include "popx/CustomOp.hpp"

#include <dlfcn.h>

#include <mutex>
#include <set>

#include "poplar/exceptions.hpp"
#include "poputil/Util.hpp"
#include "popx/Native.hpp"

namespace popx {
namespace {

using poplar::Tensor;
using poplar::program::Program;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

// The interface, by its level (the library's integer custom_op_api_level; 0 without one).
constexpr int kNewestLevel = 5;
using Indices = std::vector<std::int64_t>;
using Aliases = std::map<std::int64_t, std::int64_t>;
using Metadata0 = void(Indices&, Aliases&, bool&, std::uint32_t);
using Metadata1 = void(Indices&, Aliases&, bool&, bool&, std::uint32_t);
using Metadata3 = void(Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);
using Metadata5 = void(Indices&, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);
using Build = Program(poplar::Graph&, const Tensors&, Tensors&, const std::string&,
                      const std::string&);
using BuildGradient = Program(poplar::Graph&, int, const Tensors&, const Tensors&, const Tensors&,
                              Tensors&, const std::string&, const std::string&);
using Allocator = Tensor(poplar::Graph&, std::uint32_t, const std::vector<std::size_t>&,
                         poplar::Type, const std::string&, const std::string&);
using Callback = void(const std::vector<const void*>&, const std::vector<std::uint32_t>&,
                      const std::vector<void*>&, const std::string&, const std::string&);

std::string lastError() {
  const char* reason = dlerror();
  return reason ? reason : "no reason given";
}

/// Libraries build graphs with this copy of the Poplar API.
void showThisLibrary() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&showThisLibrary), &info) != 0 && info.dli_fname)
      dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  });
}

/// What is also an input, an output before it, or a constant becomes a copy, so that all that
/// follows may change it.
void separate(poplar::Graph& graph, const Tensors& inputs, Tensors& outputs, Sequence& prog,
              const poplar::DebugContext& debug) {
  std::set<std::uint32_t> taken;
  const auto variablesOf = [](const Tensor& t) {
    std::set<std::uint32_t> found;
    native::forEachRun(*t.view(), [&](std::uint32_t v, auto, auto) { found.insert(v); });
    return found;
  };
  for (const Tensor& t : inputs) taken.merge(variablesOf(t));
  for (Tensor& t : outputs) {
    const std::set<std::uint32_t> own = variablesOf(t);
    bool shared = !t.isParallelWriteable();
    for (const std::uint32_t v : own) shared |= taken.count(v) > 0;
    if (shared) t = poputil::duplicate(graph, t, prog, {debug, "output"});
    taken.insert(own.begin(), own.end());
  }
}

/// Steps that the user's function made belong to the line that called the op.
void addPlace(native::ProgramNode& node, const native::DebugContext& debug) {
  if (node.debug.source().empty()) node.debug = node.debug.withSource(debug.source());
  for (const auto& child : node.children) addPlace(*child, debug);
}

/// What a user's function threw, with its name.
template <class F>
auto called(const std::string& function, const F& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    throw poplar::poplar_error("[custom_op] " + function + " threw: " + e.what());
  } catch (...) {
    throw poplar::poplar_error("[custom_op] " + function + " threw what is no std::exception");
  }
}

std::size_t inputNumber(const std::string& name, std::int64_t i, std::size_t count) {
  if (i >= 0 && static_cast<std::size_t>(i) < count) return static_cast<std::size_t>(i);
  throw poplar::poplar_error("[custom_op] needs inputs from 0 to " + std::to_string(count) +
                             " - 1 in " + name + "_metadata; got " + std::to_string(i) +
                             ". Name inputs of the op.");
}

void checkMade(const std::string& function, const Tensors& outputs) {
  for (const Tensor& t : outputs) {
    if (!t.valid())
      throw poplar::poplar_error("[custom_op] needs tensors of a graph from " + function +
                                 "; got an empty poplar::Tensor. Assign every output.");
  }
}

}  // namespace

CustomOpLibrary::CustomOpLibrary(const std::string& file) {
  showThisLibrary();
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_)
    throw poplar::link_error(
        "[custom_op] needs a library that can be loaded; got: " + lastError() +
        ". Compile it against the headers in the folder that ipujax.get_include() gives.");
  if (const auto* level = static_cast<const std::int32_t*>(find("custom_op_api_level")))
    level_ = *level;
  if (level_ < 0 || level_ > kNewestLevel)
    throw poplar::link_error("[custom_op] needs custom_op_api_level from 0 to " +
                             std::to_string(kNewestLevel) + "; got " + std::to_string(level_) +
                             ". Use a level whose interface the library has.");
}

CustomOpLibrary CustomOpLibrary::compile(const std::string& source, const std::string& flags) {
  const native::TemporaryFolder folder;
  const std::string from = (folder / "custom_op.cpp").string();
  const std::string to = (folder / "custom_op.so").string();
  native::writeFile(from, source);
  native::runCompiler("custom_op", {"-O2", "-shared", "-fPIC", from, "-o", to}, flags);
  return CustomOpLibrary(to);
}

CustomOpLibrary CustomOpLibrary::load(const std::string& path) { return CustomOpLibrary(path); }

void* CustomOpLibrary::find(const std::string& function) const {
  return dlsym(handle_, function.c_str());
}

bool CustomOpLibrary::has(const std::string& function) const { return find(function) != nullptr; }

template <class F>
F* CustomOpLibrary::required(const std::string& function) const {
  if (void* found = find(function)) return reinterpret_cast<F*>(found);
  throw poplar::link_error("[custom_op] needs the function " + function +
                           " in the library; found none. Declare it extern \"C\".");
}

CustomOpMetadata CustomOpLibrary::metadata(const std::string& name, unsigned num_inputs) const {
  CustomOpMetadata m;
  const std::string function = name + "_metadata";
  void* found = find(function);
  if (!found) return m;
  Indices replica_identical;
  bool is_hashable = false;
  called(function, [&] {
    if (level_ >= 5) {
      reinterpret_cast<Metadata5*>(found)(m.allocating_inputs, replica_identical, m.aliases,
                                          m.is_elementwise, m.is_stateless, is_hashable,
                                          num_inputs);
    } else if (level_ >= 3) {
      reinterpret_cast<Metadata3*>(found)(m.allocating_inputs, m.aliases, m.is_elementwise,
                                          m.is_stateless, is_hashable, num_inputs);
    } else if (level_ >= 1) {
      reinterpret_cast<Metadata1*>(found)(m.allocating_inputs, m.aliases, m.is_elementwise,
                                          m.is_stateless, num_inputs);
    } else {
      reinterpret_cast<Metadata0*>(found)(m.allocating_inputs, m.aliases, m.is_elementwise,
                                          num_inputs);
    }
    return 0;
  });
  return m;
}

Tensor CustomOpLibrary::allocate(poplar::Graph& graph, const std::string& name, unsigned input,
                                 const std::vector<std::size_t>& shape, const poplar::Type& type,
                                 const std::string& attributes,
                                 const std::string& debug_prefix) const {
  const std::string function = name + "_allocator";
  auto* const allocator = required<Allocator>(function);
  return called(function,
                [&] { return allocator(graph, input, shape, type, attributes, debug_prefix); });
}

std::vector<Tensor> CustomOpLibrary::build(poplar::Graph& graph, const std::string& name,
                                           const Tensors& inputs, const std::string& attributes,
                                           Sequence& prog,
                                           const poplar::DebugContext& debugContext) const {
  const std::string debug_prefix = debugContext.getPathName();
  auto* const function = required<Build>(name);
  const CustomOpMetadata known = metadata(name, static_cast<unsigned>(inputs.size()));
  Tensors given = inputs;
  for (const std::int64_t i : known.allocating_inputs) {
    Tensor& t = given.at(inputNumber(name, i, inputs.size()));
    if (!has(name + "_allocator")) break;
    const Tensor made = allocate(graph, name, static_cast<unsigned>(i), t.shape(), t.elementType(),
                                 attributes, debug_prefix);
    if (!made.valid()) continue;
    prog.add(poplar::program::Copy(t, made, false, {debugContext, "allocated"}));
    t = made;
  }
  Tensors kept;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!known.aliases.count(static_cast<std::int64_t>(i))) kept.push_back(given[i]);
  for (const auto& [i, output] : known.aliases) {
    Tensor& t = given.at(inputNumber(name, i, inputs.size()));
    t = poputil::duplicate(graph, t, prog, {debugContext, "in_place"});
  }
  Tensors outputs;
  const Program program =
      called(name, [&] { return function(graph, given, outputs, attributes, debug_prefix); });
  checkMade(name, outputs);
  addPlace(*program.node(), debugContext);
  prog.add(program);
  separate(graph, kept, outputs, prog, debugContext);
  return outputs;
}

std::vector<Tensor> CustomOpLibrary::buildGradient(poplar::Graph& graph, const std::string& name,
                                                   int input, const Tensors& gradients,
                                                   const Tensors& fwd_inputs,
                                                   const Tensors& fwd_outputs,
                                                   const std::string& attributes, Sequence& prog,
                                                   const poplar::DebugContext& debugContext) const {
  const std::string debug_prefix = debugContext.getPathName();
  const std::string function = name + "_grad";
  auto* const gradient = required<BuildGradient>(function);
  Tensors outputs;
  const Program program = called(function, [&] {
    return gradient(graph, input, gradients, fwd_inputs, fwd_outputs, outputs, attributes,
                    debug_prefix);
  });
  checkMade(function, outputs);
  addPlace(*program.node(), debugContext);
  prog.add(program);
  Tensors all = gradients;
  all.insert(all.end(), fwd_inputs.begin(), fwd_inputs.end());
  all.insert(all.end(), fwd_outputs.begin(), fwd_outputs.end());
  separate(graph, all, outputs, prog, debugContext);
  return outputs;
}

void CustomOpLibrary::callOnHost(const std::string& name, const std::vector<const void*>& inputs,
                                 const std::vector<std::uint32_t>& elements,
                                 const std::vector<void*>& outputs,
                                 const std::string& attributes) const {
  auto* const function = required<Callback>(name);
  called(name, [&] {
    function(inputs, elements, outputs, attributes, name);
    return 0;
  });
}

}  // namespace popx
