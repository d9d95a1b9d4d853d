#include <pybind11/stl.h>

#include "bindings/bindings.hpp"
#include "gcl/Collectives.hpp"
#include "poplar/Program.hpp"
#include "popx/ReplicaGroups.hpp"

namespace py = pybind11;
using namespace pybind11::literals;
using gcl::CollectiveOperator;
using gcl::CommGroup;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;
using Options = std::map<std::string, std::string>;
using Pairs = std::vector<std::pair<unsigned, unsigned>>;

namespace {

OptionFlags flagsOf(const Options& options) {
  OptionFlags flags;
  for (const auto& [name, value] : options) flags.set(name, value);
  return flags;
}

void bindGroups(py::module_& m) {
  py::enum_<CollectiveOperator>(m, "CollectiveOperator")
      .value("ADD", CollectiveOperator::ADD)
      .value("MEAN", CollectiveOperator::MEAN)
      .value("MUL", CollectiveOperator::MUL)
      .value("MIN", CollectiveOperator::MIN)
      .value("MAX", CollectiveOperator::MAX)
      .value("LOGICAL_AND", CollectiveOperator::LOGICAL_AND)
      .value("LOGICAL_OR", CollectiveOperator::LOGICAL_OR)
      .value("SQUARE_ADD", CollectiveOperator::SQUARE_ADD)
      .value("LOCAL", CollectiveOperator::LOCAL);
  py::enum_<gcl::CommGroupType>(m, "CommGroupType")
      .value("ALL", gcl::CommGroupType::ALL)
      .value("CONSECUTIVE", gcl::CommGroupType::CONSECUTIVE)
      .value("ORTHOGONAL", gcl::CommGroupType::ORTHOGONAL)
      .value("NONE", gcl::CommGroupType::NONE);
  py::class_<CommGroup>(m, "CommGroup")
      .def(py::init<>())
      .def(py::init<gcl::CommGroupType, unsigned, unsigned>(), "type"_a, "size"_a, "stride"_a = 0)
      .def("members", &CommGroup::members, "replication_factor"_a);
}

void bindCollectives(py::module_& m) {
  const DebugContext none;
  const Options no_options;
  m.def(
      "allReduceCrossReplica",
      [](Graph& graph, const Tensors& datas, CollectiveOperator op, Sequence& prog,
         const CommGroup& group, const DebugContext& debug, const Options& options) {
        return gcl::allReduceCrossReplica(graph, datas, op, prog, group, debug, flagsOf(options));
      },
      "graph"_a, "datas"_a, "op"_a, "prog"_a, "group"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "allReduceInPlaceCrossReplica",
      [](Graph& graph, const Tensors& datas, CollectiveOperator op, Sequence& prog,
         const CommGroup& group, const DebugContext& debug, const Options& options) {
        gcl::allReduceInPlaceCrossReplica(graph, datas, op, prog, group, debug, flagsOf(options));
      },
      "graph"_a, "datas"_a, "op"_a, "prog"_a, "group"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "reduceScatterCrossReplica",
      [](Graph& graph, const Tensors& datas, CollectiveOperator op, Sequence& prog,
         const CommGroup& group, const DebugContext& debug, const Options& options) {
        return gcl::reduceScatterCrossReplica(graph, datas, op, prog, group, debug,
                                              flagsOf(options));
      },
      "graph"_a, "datas"_a, "op"_a, "prog"_a, "group"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "allGatherCrossReplica",
      [](Graph& graph, const Tensor& data, Sequence& prog, const CommGroup& group,
         const DebugContext& debug, const Options& options) {
        return gcl::allGatherCrossReplica(graph, data, prog, group, debug, flagsOf(options));
      },
      "graph"_a, "data"_a, "prog"_a, "group"_a, "debug"_a = none, "options"_a = no_options);
  m.def(
      "allToAllCrossReplica",
      [](Graph& graph, const Tensor& data, Sequence& prog, const CommGroup& group,
         const DebugContext& debug, const Options& options) {
        return gcl::allToAllCrossReplica(graph, data, prog, group, debug, flagsOf(options));
      },
      "graph"_a, "data"_a, "prog"_a, "group"_a, "debug"_a = none, "options"_a = no_options);
  m.def(
      "broadcastCrossReplica",
      [](Graph& graph, const Tensor& data, Sequence& prog, const CommGroup& group, unsigned root,
         const DebugContext& debug, const Options& options) {
        return gcl::broadcastCrossReplica(graph, data, prog, group, root, debug, flagsOf(options));
      },
      "graph"_a, "data"_a, "prog"_a, "group"_a, "root"_a = 0, "debug"_a = none,
      "options"_a = no_options);
}

void bindReplicaGroups(py::module_& m) {
  using popx::ReplicaGroups;
  const DebugContext none;
  const Options no_options;
  m.def(
      "allReduce",
      [](Graph& graph, const Tensors& datas, CollectiveOperator op, const ReplicaGroups& groups,
         Sequence& prog, const DebugContext& debug, const Options& options) {
        return popx::allReduce(graph, datas, op, groups, prog, debug, flagsOf(options));
      },
      "graph"_a, "datas"_a, "op"_a, "groups"_a, "prog"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "reduceScatter",
      [](Graph& graph, const Tensors& datas, CollectiveOperator op, const ReplicaGroups& groups,
         Sequence& prog, const DebugContext& debug, const Options& options) {
        return popx::reduceScatter(graph, datas, op, groups, prog, debug, flagsOf(options));
      },
      "graph"_a, "datas"_a, "op"_a, "groups"_a, "prog"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "allGatherToDestination",
      [](Graph& graph, const Tensor& data, const Tensor& destination, const ReplicaGroups& groups,
         Sequence& prog, const DebugContext& debug, const Options& options) {
        popx::allGatherToDestination(graph, data, destination, groups, prog, debug,
                                     flagsOf(options));
      },
      "graph"_a, "data"_a, "destination"_a, "groups"_a, "prog"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "allToAllToDestination",
      [](Graph& graph, const Tensor& data, const Tensor& destination, const ReplicaGroups& groups,
         Sequence& prog, const DebugContext& debug, const Options& options) {
        popx::allToAllToDestination(graph, data, destination, groups, prog, debug,
                                    flagsOf(options));
      },
      "graph"_a, "data"_a, "destination"_a, "groups"_a, "prog"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def(
      "broadcast",
      [](Graph& graph, const Tensor& data, unsigned root, const ReplicaGroups& groups,
         Sequence& prog, const DebugContext& debug, const Options& options) {
        return popx::broadcast(graph, data, root, groups, prog, debug, flagsOf(options));
      },
      "graph"_a, "data"_a, "root"_a, "groups"_a, "prog"_a, "debug"_a = none,
      "options"_a = no_options);
  m.def("collectivePermute", &popx::collectivePermute, "graph"_a, "data"_a, "pairs"_a, "prog"_a,
        "debug"_a = none);
}

}  // namespace

void bindGcl(py::module_& m) {
  py::module_ library = submodule(m, "gcl");
  bindGroups(library);
  bindCollectives(library);
  py::module_ popx = submodule(m, "popx");
  bindReplicaGroups(popx);
}
