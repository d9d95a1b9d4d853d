#include <pybind11/native_enum.h>

#include "bindings/bindings.hpp"
#include "popnn/Pooling.hpp"
#include "popops/GatherStatistics.hpp"
#include "popops/Iota.hpp"
#include "popops/NormaliseImage.hpp"
#include "popops/Reduce.hpp"
#include "popops/Sort.hpp"
#include "popops/TopK.hpp"
#include "popx/Expr.hpp"
#include "popx/Reduce.hpp"
#include "popx/ReduceWindow.hpp"
#include "popx/SelectAndScatter.hpp"
#include "popx/Sort.hpp"

namespace {

void bindPopopsReduce(py::module_& m) {
  using popops::Operation;
  using popops::ReduceParams;
  py::native_enum<Operation>(m, "Operation", "enum.Enum")
      .value("ADD", Operation::ADD)
      .value("MUL", Operation::MUL)
      .value("MIN", Operation::MIN)
      .value("MAX", Operation::MAX)
      .value("LOGICAL_AND", Operation::LOGICAL_AND)
      .value("LOGICAL_OR", Operation::LOGICAL_OR)
      .value("SQUARE_ADD", Operation::SQUARE_ADD)
      .value("LOG_ADD", Operation::LOG_ADD)
      .finalize();
  py::class_<ReduceParams>(m, "ReduceParams")
      .def(py::init<Operation, bool>(), "op"_a, "update"_a = false)
      .def(py::init<Operation, bool, Tensor>(), "op"_a, "update"_a, "scale"_a);
  m.def(
      "reduce",
      [](Graph& graph, const Tensor& in, const Type& type, const Shape& dims,
         const ReduceParams& params, Sequence& prog, const DebugContext& debug) {
        return popops::reduce(graph, in, type, dims, params, prog, debug);
      },
      "graph"_a, "in_"_a, "out_type"_a, "dims"_a, "params"_a, "prog"_a, debugArg());
  m.def(
      "reduce",
      [](Graph& graph, const Tensor& in, const Shape& dims, const ReduceParams& params,
         Sequence& prog, const DebugContext& debug) {
        return popops::reduce(graph, in, dims, params, prog, debug);
      },
      "graph"_a, "in_"_a, "dims"_a, "params"_a, "prog"_a, debugArg());
  m.def(
      "reduceWithOutput",
      [](Graph& graph, const Tensor& in, const Tensor& out, const Shape& dims,
         const ReduceParams& params, Sequence& prog, const DebugContext& debug) {
        popops::reduceWithOutput(graph, in, out, dims, params, prog, debug);
      },
      "graph"_a, "in_"_a, "out"_a, "dims"_a, "params"_a, "prog"_a, debugArg());
}

void bindPopopsStatistics(py::module_& m) {
  m.def(
      "histogram",
      [](Graph& graph, const Tensor& input, const Tensor& levels, bool absolute, Sequence& prog,
         const DebugContext& debug, const OptionFlags& options) {
        return popops::histogram(graph, input, levels, absolute, prog, debug, options);
      },
      "graph"_a, "input"_a, "levels"_a, "absolute_of_input"_a, "prog"_a, debugArg(), optionsArg());
  m.def(
      "histogram",
      [](Graph& graph, const Tensor& input, Tensor& output, bool update, const Tensor& levels,
         bool absolute, Sequence& prog, const DebugContext& debug) {
        popops::histogram(graph, input, output, update, levels, absolute, prog, debug);
      },
      "graph"_a, "input"_a, "output"_a, "update_output"_a, "levels"_a, "absolute_of_input"_a,
      "prog"_a, debugArg());
  m.def("createNormaliseImageInput", &popops::createNormaliseImageInput, "graph"_a, "type"_a,
        "shape"_a, debugArg());
  m.def("normaliseImage", &popops::normaliseImage, "graph"_a, "seq"_a, "t_in"_a, "in_scale"_a,
        "offsets"_a, "scales"_a, debugArg());
}

void bindPopopsSort(py::module_& m) {
  using popops::SortOrder;
  using popops::TopKParams;
  py::native_enum<SortOrder>(m, "SortOrder", "enum.Enum")
      .value("NONE", SortOrder::NONE)
      .value("ASCENDING", SortOrder::ASCENDING)
      .value("DESCENDING", SortOrder::DESCENDING)
      .finalize();
  py::class_<TopKParams>(m, "TopKParams")
      .def(py::init<unsigned, bool, SortOrder, bool>(), "k"_a, "largest"_a, "sort_order"_a,
           "stable_sort"_a = false);
  m.def("topK", &popops::topK, "graph"_a, "prog"_a, "t"_a, "params"_a, debugArg());
  m.def("topKKeyValue", &popops::topKKeyValue, "graph"_a, "prog"_a, "keys"_a, "values"_a,
        "params"_a, debugArg());
  m.def("topKWithPermutation", &popops::topKWithPermutation, "graph"_a, "prog"_a, "t"_a, "params"_a,
        debugArg());
  m.def("sort", &popops::sort, "graph"_a, "t"_a, "dim"_a, "prog"_a, debugArg());
  m.def("sortKeyValue", &popops::sortKeyValue, "graph"_a, "k"_a, "v"_a, "dim"_a, "prog"_a,
        debugArg());
  m.def(
      "iota",
      [](Graph& graph, const Tensor& t, std::int64_t start, Sequence& prog,
         const DebugContext& debug) { popops::iota(graph, t, start, prog, debug); },
      "graph"_a, "t"_a, "start_integer"_a, "prog"_a, debugArg());
}

void bindPopx(py::module_& m) {
  using popx::FloatOrder;
  using popx::SortKey;
  using popx::Window;
  py::class_<Window>(m, "Window")
      .def(py::init<>())
      .def_static("of", &Window::of, "sizes"_a)
      .def_readwrite("sizes", &Window::sizes)
      .def_readwrite("strides", &Window::strides)
      .def_readwrite("base_dilations", &Window::base_dilations)
      .def_readwrite("window_dilations", &Window::window_dilations)
      .def_readwrite("padding_low", &Window::padding_low)
      .def_readwrite("padding_high", &Window::padding_high);
  m.def("reduce", &popx::reduce, "graph"_a, "ins"_a, "inits"_a, "body"_a, "dims"_a, "prog"_a,
        debugArg());
  m.def("reduceWindow", &popx::reduceWindow, "graph"_a, "ins"_a, "inits"_a, "body"_a, "window"_a,
        "prog"_a, debugArg());
  m.def("selectAndScatter", &popx::selectAndScatter, "graph"_a, "operand"_a, "source"_a, "init"_a,
        "select"_a, "scatter"_a, "window"_a, "prog"_a, debugArg());
  py::native_enum<FloatOrder>(m, "FloatOrder", "enum.Enum")
      .value("TOTAL", FloatOrder::kTotal)
      .value("CANONICAL", FloatOrder::kCanonical)
      .finalize();
  py::class_<SortKey>(m, "SortKey")
      .def(py::init<std::size_t, bool, FloatOrder>(), "operand"_a = 0, "descending"_a = false,
           "order"_a = FloatOrder::kCanonical);
  m.def(
      "sort",
      [](Graph& graph, const Tensors& operands, unsigned dim, const std::vector<SortKey>& keys,
         Sequence& prog,
         const DebugContext& debug) { return popx::sort(graph, operands, dim, keys, prog, debug); },
      "graph"_a, "operands"_a, "dim"_a, "keys"_a, "prog"_a, debugArg());
  m.def(
      "sort",
      [](Graph& graph, const Tensors& operands, unsigned dim, const popx::expr::Expr& comparator,
         bool stable, Sequence& prog, const DebugContext& debug) {
        return popx::sort(graph, operands, dim, comparator, stable, prog, debug);
      },
      "graph"_a, "operands"_a, "dim"_a, "comparator"_a, "stable"_a, "prog"_a, debugArg());
  // The argument order that the compiler's rules use.
  m.def(
      "sort",
      [](Graph& graph, const Tensors& operands, const popx::expr::Expr& comparator, unsigned dim,
         bool stable, Sequence& prog, const DebugContext& debug) {
        return popx::sort(graph, operands, dim, comparator, stable, prog, debug);
      },
      "graph"_a, "operands"_a, "comparator"_a, "dim"_a, "stable"_a, "prog"_a, debugArg());
}

void bindPopnn(py::module_& m) {
  using popnn::PoolingType;
  using popnn::pooling::PoolParams;
  py::native_enum<PoolingType>(m, "PoolingType", "enum.Enum")
      .value("MAX", PoolingType::MAX)
      .value("AVG", PoolingType::AVG)
      .value("SUM", PoolingType::SUM)
      .finalize();
  py::class_<PoolParams>(m, "PoolParams")
      .def(py::init<PoolingType, Shape, Shape, std::vector<unsigned>, std::vector<int>,
                    std::vector<int>, std::size_t, std::size_t, Type>(),
           "pooling_type"_a, "input_field_shape"_a, "kernel_shape"_a, "stride"_a, "padding_lower"_a,
           "padding_upper"_a, "num_channels"_a, "batch_size"_a, "type"_a);
  m.def(
      "pool",
      [](Graph& graph, const PoolParams& params, const Tensor& in, Sequence& prog,
         const DebugContext& debug) {
        return popnn::pooling::pool(graph, params, in, prog, debug);
      },
      "graph"_a, "params"_a, "in_"_a, "prog"_a, debugArg());
}

}  // namespace

void bindReduce(py::module_& m) {
  py::module_ popops = submodule(m, "popops");
  bindPopopsReduce(popops);
  bindPopopsStatistics(popops);
  bindPopopsSort(popops);
  py::module_ popx = submodule(m, "popx");
  bindPopx(popx);
  py::module_ popnn = submodule(m, "popnn");
  bindPopnn(popnn);
}
