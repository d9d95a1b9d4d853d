#include <pybind11/native_enum.h>

#include "bindings/bindings.hpp"
#include "gcl/Collectives.hpp"
#include "popx/ReplicaGroups.hpp"

using gcl::CollectiveOperator;
using gcl::CommGroup;

namespace {

void bindGroups(py::module_& m) {
  py::native_enum<CollectiveOperator>(m, "CollectiveOperator", "enum.Enum")
      .value("ADD", CollectiveOperator::ADD)
      .value("MEAN", CollectiveOperator::MEAN)
      .value("MUL", CollectiveOperator::MUL)
      .value("MIN", CollectiveOperator::MIN)
      .value("MAX", CollectiveOperator::MAX)
      .value("LOGICAL_AND", CollectiveOperator::LOGICAL_AND)
      .value("LOGICAL_OR", CollectiveOperator::LOGICAL_OR)
      .value("SQUARE_ADD", CollectiveOperator::SQUARE_ADD)
      .value("LOCAL", CollectiveOperator::LOCAL)
      .finalize();
  py::native_enum<gcl::CommGroupType>(m, "CommGroupType", "enum.Enum")
      .value("ALL", gcl::CommGroupType::ALL)
      .value("CONSECUTIVE", gcl::CommGroupType::CONSECUTIVE)
      .value("ORTHOGONAL", gcl::CommGroupType::ORTHOGONAL)
      .value("NONE", gcl::CommGroupType::NONE)
      .finalize();
  py::class_<CommGroup>(m, "CommGroup")
      .def(py::init<>())
      .def(py::init<gcl::CommGroupType, unsigned, unsigned>(), "type"_a, "size"_a, "stride"_a = 0);
}

template <class Result>
void bindReduction(py::module_& m, const char* name,
                   Result (*reduce)(Graph&, const Tensors&, CollectiveOperator, Sequence&,
                                    const CommGroup&, const DebugContext&, const OptionFlags&)) {
  m.def(name, reduce, "graph"_a, "datas"_a, "op"_a, "prog"_a, "group"_a, debugArg(), optionsArg());
}

void bindMove(py::module_& m, const char* name,
              Tensor (*move)(Graph&, const Tensor&, Sequence&, const CommGroup&,
                             const DebugContext&, const OptionFlags&)) {
  m.def(name, move, "graph"_a, "data"_a, "prog"_a, "group"_a, debugArg(), optionsArg());
}

void bindCollectives(py::module_& m) {
  bindReduction<Tensors>(m, "allReduceCrossReplica", &gcl::allReduceCrossReplica);
  bindReduction<void>(m, "allReduceInPlaceCrossReplica", &gcl::allReduceInPlaceCrossReplica);
  bindReduction<Tensors>(m, "reduceScatterCrossReplica", &gcl::reduceScatterCrossReplica);
  bindMove(m, "allGatherCrossReplica", &gcl::allGatherCrossReplica);
  bindMove(m, "allToAllCrossReplica", &gcl::allToAllCrossReplica);
  m.def("broadcastCrossReplica", &gcl::broadcastCrossReplica, "graph"_a, "data"_a, "prog"_a,
        "group"_a, "root"_a = 0, debugArg(), optionsArg());
}

void bindReplicaGroups(py::module_& m) {
  m.def("allReduce", &popx::allReduce, "graph"_a, "datas"_a, "op"_a, "groups"_a, "prog"_a,
        debugArg(), optionsArg());
  m.def("reduceScatter", &popx::reduceScatter, "graph"_a, "datas"_a, "op"_a, "groups"_a, "prog"_a,
        debugArg(), optionsArg());
  m.def("allGatherToDestination", &popx::allGatherToDestination, "graph"_a, "data"_a,
        "destination"_a, "groups"_a, "prog"_a, debugArg(), optionsArg());
  m.def("allToAllToDestination", &popx::allToAllToDestination, "graph"_a, "data"_a, "destination"_a,
        "groups"_a, "prog"_a, debugArg(), optionsArg());
  m.def("broadcast", &popx::broadcast, "graph"_a, "data"_a, "root"_a, "groups"_a, "prog"_a,
        debugArg(), optionsArg());
  m.def("collectivePermute", &popx::collectivePermute, "graph"_a, "data"_a, "pairs"_a, "prog"_a,
        debugArg());
}

}  // namespace

void bindGcl(py::module_& m) {
  py::module_ library = submodule(m, "gcl");
  bindGroups(library);
  bindCollectives(library);
  py::module_ popx = submodule(m, "popx");
  bindReplicaGroups(popx);
}
