#include "poplar/Module.hpp"

#include "poplar/exceptions.hpp"

namespace poplar {
namespace {

[[noreturn]] void refuse(const char* where) {
  throw poplar_error(std::string("[Module::") + where +
                     "] needs code of tiles; got a program of the model, which has none. Use "
                     "serialize to keep it.");
}

}  // namespace

Module Module::deserialize(std::istream& in) { return Module(Executable::deserialize(in)); }
void Module::forEachSegment(SegmentFunc) const { refuse("forEachSegment"); }
void Module::forEachLoadableSegment(LoadableSegmentFunc) const { refuse("forEachLoadableSegment"); }

Module compileModule(const Graph& graph, program::Program prog, const OptionFlags& opt,
                     ProgressFunc progressCallBack, const DebugContext& debugContext) {
  return Module(compileGraph(graph, ArrayRef<program::Program>(&prog, 1), opt,
                             std::move(progressCallBack), debugContext));
}

Module compileModule(const Graph& graph, program::Program prog, const Preallocations&,
                     const OptionFlags& opt, ProgressFunc progressCallBack,
                     const DebugContext& debugContext) {
  return compileModule(graph, std::move(prog), opt, std::move(progressCallBack), debugContext);
}

}  // namespace poplar
