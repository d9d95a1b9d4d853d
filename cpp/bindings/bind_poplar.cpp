#include <pybind11/native_enum.h>

#include <functional>

#include "bindings/backend.hpp"
#include "bindings/bindings.hpp"
#include "poplar/CSRFunctions.hpp"
#include "poplar/MetadataCreation.hpp"
#include "poplar/exceptions.hpp"
#include "poputil/TileMapping.hpp"

using poplar::DataStream;
using poplar::RemoteBuffer;

namespace {

void bindTypes(py::module_& m) {
  py::class_<Type>(m, "Type")
      .def("__repr__", &Type::toString)
      .def(
          "__eq__", [](Type a, Type b) { return a == b; }, py::is_operator())
      .def("__hash__", [](Type a) { return std::hash<std::string>()(a.toString()); });
  const std::pair<const char*, Type> types[] = {{"BOOL", poplar::BOOL},
                                                {"CHAR", poplar::CHAR},
                                                {"SIGNED_CHAR", poplar::SIGNED_CHAR},
                                                {"UNSIGNED_CHAR", poplar::UNSIGNED_CHAR},
                                                {"SHORT", poplar::SHORT},
                                                {"UNSIGNED_SHORT", poplar::UNSIGNED_SHORT},
                                                {"INT", poplar::INT},
                                                {"UNSIGNED_INT", poplar::UNSIGNED_INT},
                                                {"LONGLONG", poplar::LONGLONG},
                                                {"UNSIGNED_LONGLONG", poplar::UNSIGNED_LONGLONG},
                                                {"HALF", poplar::HALF},
                                                {"FLOAT", poplar::FLOAT},
                                                {"QUARTER", poplar::QUARTER}};
  for (const auto& [name, type] : types) m.attr(name) = type;

  py::class_<DebugContext>(m, "DebugContext")
      .def(py::init(&backend::debugOf), "name"_a = "", "source"_a = "")
      .def_property_readonly("name", &DebugContext::getPathName)
      .def_property_readonly("source", &backend::sourceOf);
  py::implicitly_convertible<py::str, DebugContext>();

  py::class_<poplar::Target>(m, "Target")
      .def("getNumIPUs", &poplar::Target::getNumIPUs)
      .def("getNumTiles", &poplar::Target::getNumTiles)
      .def("getTilesPerIPU", &poplar::Target::getTilesPerIPU)
      .def("getBytesPerTile", &poplar::Target::getBytesPerTile)
      .def("getTargetArchString",
           [](const poplar::Target& target) { return std::string(target.getTargetArchString()); })
      .def("getTileClockFrequency", &poplar::Target::getTileClockFrequency);
}

void bindTensor(py::module_& m) {
  py::class_<Tensor>(m, "Tensor")
      .def("elementType", &Tensor::elementType)
      .def("rank", &Tensor::rank)
      .def_property_readonly("shape", [](const Tensor& t) { return t.shape(); })
      .def("dim", &Tensor::dim, "i"_a)
      .def("numElements", &Tensor::numElements)
      .def("__getitem__", [](const Tensor& t, std::size_t i) { return t[i]; })
      .def("slice",
           py::overload_cast<std::size_t, std::size_t, unsigned>(&Tensor::slice, py::const_),
           "begin"_a, "end"_a, "dimension"_a = 0)
      .def("slice",
           py::overload_cast<ArrayRef<std::size_t>, ArrayRef<std::size_t>>(&Tensor::slice,
                                                                           py::const_),
           "begin"_a, "end"_a)
      .def("subSample", &Tensor::subSample, "stride"_a, "dimension"_a)
      .def("reshape", &Tensor::reshape, "shape"_a)
      .def("flatten", py::overload_cast<>(&Tensor::flatten, py::const_))
      .def("dimShuffle", &Tensor::dimShuffle, "permutation"_a)
      .def("transpose", &Tensor::transpose)
      .def("reverse", &Tensor::reverse, "dimension"_a)
      .def("broadcast", &Tensor::broadcast, "n"_a, "dimension"_a)
      .def(
          "broadcastToMatch",
          [](Tensor t, const Shape& shape) {
            t.broadcastToMatch(shape);
            return t;
          },
          "shape"_a)
      .def("expand", &Tensor::expand, "indices"_a)
      .def("squeeze", py::overload_cast<ArrayRef<std::size_t>>(&Tensor::squeeze, py::const_),
           "indices"_a)
      .def("reinterpret", &Tensor::reinterpret, "type"_a)
      .def("isContiguous", &Tensor::isContiguous)
      .def("intersectsWith", &Tensor::intersectsWith, "other"_a)
      .def(
          "__eq__", [](const Tensor& a, const Tensor& b) { return a == b; }, py::is_operator())
      .def("__repr__", [](const Tensor& t) {
        return "Tensor(" + t.elementType().toString() + " " + t.shapeToString() + ")";
      });
  m.def("concat", py::overload_cast<ArrayRef<Tensor>, unsigned>(&poplar::concat), "tensors"_a,
        "dimension"_a = 0);
}

Tensor addConstantBytes(Graph& graph, Type type, const Shape& shape, const py::buffer& buffer,
                        const DebugContext& debug) {
  const py::buffer_info info = buffer.request();
  std::size_t bytes = graph.getTarget().getTypeSize(type);
  for (const std::size_t size : shape) bytes *= size;
  if (static_cast<std::size_t>(info.size * info.itemsize) != bytes) {
    throw poplar::tensor_creation_error("[addConstantBytes] needs " + std::to_string(bytes) +
                                        " bytes; got " + std::to_string(info.size * info.itemsize) +
                                        ". Pass every element of the shape.");
  }
  return backend::addConstant(graph, type, shape, info.ptr, debug);
}

void bindClone(py::module_& m, py::class_<Graph>& graph) {
  using poplar::TensorCloneMethod;
  py::native_enum<TensorCloneMethod>(m, "TensorCloneMethod", "enum.Enum")
      .value("PRESERVE_ORDER_AND_ALIASES", TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES)
      .value("CREATE_NEW_ORDER", TensorCloneMethod::CREATE_NEW_ORDER)
      .value("PRESERVE_ORDER_UNLESS_ALIASES", TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES)
      .finalize();
  graph.def(
      "clone",
      [](Graph& g, const Tensor& t, const DebugContext& debug, TensorCloneMethod method) {
        return g.clone(t, debug, method);
      },
      "tensor"_a, debugArg(), "method"_a = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
}

void bindQuarters(py::module_& m, py::class_<Graph>& graph) {
  using Format = poplar::QuarterMetadata::Format;
  py::native_enum<Format>(m, "QuarterFormat", "enum.Enum")
      .value("F143", Format::F143)
      .value("F152", Format::F152)
      .finalize();
  m.def("createConstantMetadataTensor", &poplar::createConstantMetadataTensor, "graph"_a,
        "fp8Format"_a, "fp8Scale"_a, debugArg());
  graph.def(
      "clone",
      [](Graph& g, const Type& type, const Tensor& metadata, const Tensor& t,
         const DebugContext& debug) { return g.clone(type, metadata, t, debug); },
      "type"_a, "metadata"_a, "tensor"_a, debugArg());
}

void bindGraph(py::module_& m, py::class_<Graph>& graph) {
  graph
      .def(py::init([](const poplar::Target& target, unsigned replication_factor) {
             return Graph(target, poplar::replication_factor(replication_factor));
           }),
           "target"_a, "replication_factor"_a = 1)
      .def("getReplicationFactor", &Graph::getReplicationFactor)
      .def("addReplicationIndexConstant", &Graph::addReplicationIndexConstant, debugArg())
      .def("getTarget", &Graph::getTarget)
      .def("addVariable",
           py::overload_cast<const Type&, ArrayRef<std::size_t>, const DebugContext&>(
               &Graph::addVariable),
           "type"_a, "shape"_a, debugArg())
      .def("addConstantBytes", &addConstantBytes, "type"_a, "shape"_a, "buffer"_a, debugArg())
      .def("setTileMapping", py::overload_cast<const Tensor&, unsigned>(&Graph::setTileMapping),
           "t"_a, "tile"_a)
      .def(
          "getTileMapping",
          [](const Graph& g, const Tensor& t) {
            std::vector<std::vector<std::pair<std::size_t, std::size_t>>> result;
            for (const auto& intervals : g.getTileMapping(t)) {
              result.emplace_back();
              for (const auto& i : intervals) result.back().emplace_back(i.begin(), i.end());
            }
            return result;
          },
          "t"_a)
      .def(
          "addHostToDeviceFIFO",
          [](Graph& g, const std::string& handle, Type type, std::size_t n) {
            return g.addHostToDeviceFIFO(handle, type, n);
          },
          "handle"_a, "type"_a, "num_elements"_a)
      .def(
          "addDeviceToHostFIFO",
          [](Graph& g, const std::string& handle, Type type, std::size_t n) {
            return g.addDeviceToHostFIFO(handle, type, n);
          },
          "handle"_a, "type"_a, "num_elements"_a)
      .def(
          "addRemoteBuffer",
          [](Graph& g, const std::string& handle, Type type, std::size_t n, std::size_t repeats) {
            return g.addRemoteBuffer(handle, type, n, repeats);
          },
          "handle"_a, "elementType"_a, "numElements"_a, "repeats"_a = 1)
      .def("addFunction", &Graph::addFunction, "program"_a)
      .def("createVirtualGraph", py::overload_cast<unsigned, unsigned>(&Graph::createVirtualGraph),
           "lowerTile"_a, "upperTile"_a);
  auto poputil = m.def_submodule("poputil");
  poputil.def(
      "mapTensorLinearly", [](Graph& g, const Tensor& t) { poputil::mapTensorLinearly(g, t); },
      "graph"_a, "t"_a);
  poputil.def(
      "copyToIpu",
      [](Graph& graph, const Tensor& t, Sequence& prog, unsigned ipu, const DebugContext& debug) {
        return poputil::copyToIpu(graph, t, prog, ipu, debug);
      },
      "masterGraph"_a, "t"_a, "prog"_a, "dstIPU"_a, debugArg());
}

template <class From, class To>
auto copyOf() {
  return py::init([](const From& src, const To& dst, const DebugContext& debug) {
    return poplar::program::Copy(src, dst, false, debug);
  });
}

void bindPrograms(py::module_& m) {
  namespace program = poplar::program;
  auto p = m.def_submodule("program");
  using program::Program;
  py::class_<Program>(p, "Program").def("isEmpty", &Program::isEmpty);
  py::class_<program::Sequence, Program>(p, "Sequence")
      .def(py::init<const DebugContext&>(), debugArg())
      .def("add", &program::Sequence::add, "program"_a);
  py::class_<program::Copy, Program>(p, "Copy")
      .def(copyOf<Tensor, Tensor>(), "src"_a, "dst"_a, debugArg())
      .def(copyOf<DataStream, Tensor>(), "src"_a, "dst"_a, debugArg())
      .def(copyOf<Tensor, DataStream>(), "src"_a, "dst"_a, debugArg())
      .def(py::init<const RemoteBuffer&, Tensor, const DebugContext&>(), "buffer"_a, "dst"_a,
           debugArg())
      .def(py::init<const RemoteBuffer&, Tensor, Tensor, const DebugContext&>(), "buffer"_a,
           "dst"_a, "offset"_a, debugArg())
      .def(py::init<Tensor, const RemoteBuffer&, const DebugContext&>(), "src"_a, "buffer"_a,
           debugArg())
      .def(py::init<Tensor, const RemoteBuffer&, Tensor, const DebugContext&>(), "src"_a,
           "buffer"_a, "offset"_a, debugArg());
  py::class_<program::CrossReplicaCopy, Program>(p, "CrossReplicaCopy")
      .def(py::init<Tensor, Tensor, const std::map<unsigned, unsigned>&, const DebugContext&>(),
           "src"_a, "dst"_a, "replica_map"_a, debugArg());
  py::class_<program::Repeat, Program>(p, "Repeat")
      .def(py::init<unsigned, const Program&, const DebugContext&>(), "count"_a, "body"_a,
           debugArg());
  py::class_<program::RepeatWhileTrue, Program>(p, "RepeatWhileTrue")
      .def(py::init<const Program&, Tensor, const Program&, const DebugContext&>(), "cond"_a,
           "predicate"_a, "body"_a, debugArg());
  py::class_<program::If, Program>(p, "If").def(
      py::init<Tensor, const Program&, const Program&, const DebugContext&>(), "predicate"_a,
      "true_body"_a, "false_body"_a, debugArg());
  py::class_<program::Switch, Program>(p, "Switch")
      .def(py::init<Tensor, const std::vector<std::pair<std::int32_t, Program>>&, const Program&,
                    const DebugContext&>(),
           "control"_a, "cases"_a, "default"_a, debugArg());
  py::class_<program::Call, Program>(p, "Call").def(
      py::init<poplar::Function, const DebugContext&>(), "function"_a, debugArg());
  py::class_<program::PrintTensor, Program>(p, "PrintTensor")
      .def(py::init<const std::string&, Tensor>(), "title"_a, "tensor"_a);
  py::class_<program::WriteUndef, Program>(p, "WriteUndef")
      .def(py::init<Tensor, const DebugContext&>(), "tensor"_a, debugArg());
  py::class_<program::ErrorProgram, Program>(p, "ErrorProgram")
      .def(py::init<const std::string&, Tensor, const DebugContext&>(), "message"_a, "tensor"_a,
           debugArg());
}

}  // namespace

void bindPoplar(py::module_& m) {
  auto poplar = m.def_submodule("poplar");
  py::register_exception<poplar::poplar_error>(poplar, "poplar_error", PyExc_RuntimeError);
  py::register_exception<poplar::invalid_option>(poplar, "invalid_option",
                                                 poplar.attr("poplar_error").ptr());
  py::register_exception<poplar::graph_memory_allocation_error>(
      poplar, "graph_memory_allocation_error", poplar.attr("poplar_error").ptr());
  bindTypes(poplar);
  bindTensor(poplar);
  py::class_<DataStream>(poplar, "DataStream");
  py::class_<RemoteBuffer>(poplar, "RemoteBuffer")
      .def("handle", &RemoteBuffer::handle)
      .def("numElements", &RemoteBuffer::numElements)
      .def("getRepeats", &RemoteBuffer::getRepeats)
      .def("elementType", &RemoteBuffer::elementType)
      .def(
          "__eq__", [](const RemoteBuffer& a, const RemoteBuffer& b) { return a == b; },
          py::is_operator());
  py::class_<::poplar::Function>(poplar, "Function");
  // Programs and graphs refer to each other, so the class comes first and its functions last.
  py::class_<Graph> graph(poplar, "Graph");
  bindPrograms(poplar);
  bindClone(poplar, graph);
  bindQuarters(poplar, graph);
  bindGraph(poplar, graph);
  poplar.def(
      "setStochasticRounding",
      [](Graph& graph, ::poplar::program::Sequence& prog, bool enable) {
        ::poplar::setStochasticRounding(graph, prog, enable);
      },
      "graph"_a, "prog"_a, "enable"_a);
}
