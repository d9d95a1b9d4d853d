#include "poplar/Executable.hpp"

#include <istream>
#include <iterator>
#include <ostream>
#include <span>

#include "engine/build/Build.hpp"
#include "poplar/exceptions.hpp"
#include "poplar/internal/EngineOptions.hpp"
#include "poplar/internal/Held.hpp"

namespace poplar {

using ipujax::engine::Image;

void Executable::serialize(std::ostream& out) const {
  const std::string bytes = internal::held(image_, "Executable").serialise();
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out)
    throw poplar_error(
        "[Executable::serialize] needs a stream that can be written; got an error. Check the file "
        "and the disk.");
}

Executable Executable::deserialize(std::istream& in, bool) {
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  try {
    return Executable(Image::deserialise(std::as_bytes(std::span(bytes))));
  } catch (const ipujax::engine::ImageError& e) {
    throw poplar_error(e.what());
  }
}

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const OptionFlags& opt, ProgressFunc progressCallBack,
                        const DebugContext& debugContext) {
  const internal::EngineOptions options = internal::engineOptions(opt);
  if (progressCallBack) progressCallBack(0, 1);
  std::vector<ipujax::engine::ProgramNodePtr> nodes;
  for (const auto& program : progs) nodes.push_back(program::Sequence({program}).node());
  const std::string name = debugContext.getPathName();
  const bool traps = options.float_exceptions;
  try {
    auto image =
        ipujax::engine::buildEntryPoints(graph.impl(), nodes, name.empty() ? "graph" : name,
                                         {options.refuses_too_large, {traps, traps, traps}});
    if (progressCallBack) progressCallBack(1, 1);
    return Executable(std::move(image));
  } catch (const ipujax::engine::ImageError& e) {  // invalid tensors or programs
    const std::string what = e.what();
    const std::size_t begin = what.find(": ");
    throw graph_program_compilation_error(
        "[compileGraph] needs programs of tensors of this graph, of at most 2^31 - 1 elements, "
        "which "
        "write to no constant, and to no element twice; got one where " +
        what.substr(begin == std::string::npos ? 0 : begin + 2, what.rfind(". ") - begin - 2) +
        ". Correct the tensors of its copies and vertices.");
  }
}

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs, bool,
                        const OptionFlags& opt, ProgressFunc progressCallBack,
                        const DebugContext& debugContext) {
  return compileGraph(graph, progs, opt, std::move(progressCallBack), debugContext);
}
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs, const Preallocations&,
                        const OptionFlags& opt, ProgressFunc progressCallBack,
                        const DebugContext& debugContext) {
  return compileGraph(graph, progs, opt, std::move(progressCallBack), debugContext);
}
Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs, const Preallocations&,
                        bool, const OptionFlags& opt, ProgressFunc progressCallBack,
                        const DebugContext& debugContext) {
  return compileGraph(graph, progs, opt, std::move(progressCallBack), debugContext);
}

}  // namespace poplar
