#include "bindings/bindings.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Gather.hpp"
#include "popops/OneHot.hpp"
#include "popops/SelectScalarFromRows.hpp"
#include "popops/SequenceSlice.hpp"
#include "poprand/RandomGen.hpp"
#include "popx/Dropout.hpp"
#include "popx/DynamicSlice.hpp"
#include "popx/Expr.hpp"
#include "popx/Gather.hpp"
#include "popx/HostCallback.hpp"
#include "popx/Pad.hpp"
#include "popx/Random.hpp"
#include "popx/RemoteBuffer.hpp"
#include "popx/Scatter.hpp"

using poplar::RemoteBuffer;

namespace {

void bindSlices(py::module_ m) {
  m.def(
      "dynamicSlice",
      [](Graph& graph, const Tensor& t, const Tensor& offset, const Shape& dims, const Shape& sizes,
         Sequence& prog, const DebugContext& debug) {
        return popops::dynamicSlice(graph, t, offset, dims, sizes, prog, debug);
      },
      "graph"_a, "t"_a, "offset"_a, "dims"_a, "sizes"_a, "prog"_a, debugArg());
  m.def(
      "dynamicUpdate",
      [](Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offset, const Shape& dims,
         const Shape& sizes, Sequence& prog, const DebugContext& debug) {
        popops::dynamicUpdate(graph, t, s, offset, dims, sizes, prog, debug);
      },
      "graph"_a, "t"_a, "s"_a, "offset"_a, "dims"_a, "sizes"_a, "prog"_a, debugArg());
  m.def(
      "multiSlice",
      [](Graph& graph, const Tensor& t, const Tensor& offsets, const Shape& dims,
         const Shape& sizes, Sequence& prog, const DebugContext& debug) {
        return popops::multiSlice(graph, t, offsets, dims, sizes, prog, {}, {}, debug);
      },
      "graph"_a, "t"_a, "offsets"_a, "dims"_a, "sizes"_a, "prog"_a, debugArg());
  m.def(
      "multiUpdate",
      [](Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets, const Shape& dims,
         const Shape& sizes, Sequence& prog, const DebugContext& debug) {
        popops::multiUpdate(graph, t, s, offsets, dims, sizes, prog, {}, {}, debug);
      },
      "graph"_a, "t"_a, "s"_a, "offsets"_a, "dims"_a, "sizes"_a, "prog"_a, debugArg());
  m.def(
      "multiUpdateAdd",
      [](Graph& graph, const Tensor& t, const Tensor& s, const Tensor& offsets, const Tensor& scale,
         const Shape& dims, const Shape& sizes, Sequence& prog, const DebugContext& debug) {
        popops::multiUpdateAdd(graph, t, s, offsets, scale, dims, sizes, prog, {}, {}, debug);
      },
      "graph"_a, "t"_a, "s"_a, "offsets"_a, "scale"_a, "dims"_a, "sizes"_a, "prog"_a, debugArg());
  m.def(
      "createSliceableTensor",
      [](Graph& graph, const Type& type, const Shape& shape, const Shape& dims, const Shape& sizes,
         std::size_t grain, const DebugContext& debug) {
        return popops::createSliceableTensor(graph, type, shape, dims, sizes, grain, debug);
      },
      "graph"_a, "type"_a, "shape"_a, "dims"_a, "sizes"_a, "min_grain_size"_a = 0, debugArg());
  m.def("sequenceSlice", &popops::sequenceSlice, "graph"_a, "in_"_a, "out"_a, "n"_a, "in_offset"_a,
        "out_offset"_a, "zero_unused"_a, "prog"_a, debugArg());
  m.def("selectScalarFromRows", &popops::selectScalarFromRows, "graph"_a, "params"_a, "indices"_a,
        "prog"_a, debugArg());
  m.def(
      "encodeOneHot",
      [](Graph& graph, const Tensor& indices, const Tensor& encoded, Sequence& prog,
         const DebugContext& debug) { popops::encodeOneHot(graph, indices, encoded, prog, debug); },
      "graph"_a, "indices"_a, "encoded"_a, "prog"_a, debugArg());
}

void bindGather(py::module_ m) {
  using popx::GatherDims;
  py::class_<GatherDims>(m, "GatherDims")
      .def(py::init<>())
      .def_readwrite("offset_dims", &GatherDims::offset_dims)
      .def_readwrite("collapsed_slice_dims", &GatherDims::collapsed_slice_dims)
      .def_readwrite("operand_batching_dims", &GatherDims::operand_batching_dims)
      .def_readwrite("start_indices_batching_dims", &GatherDims::start_indices_batching_dims)
      .def_readwrite("start_index_map", &GatherDims::start_index_map)
      .def_readwrite("index_vector_dim", &GatherDims::index_vector_dim)
      .def_readwrite("slice_sizes", &GatherDims::slice_sizes);
  m.def("gather", &popx::gather, "graph"_a, "operand"_a, "indices"_a, "dims"_a, "prog"_a,
        debugArg());
}

void bindScatter(py::module_ m) {
  using popx::ScatterDims;
  py::class_<ScatterDims>(m, "ScatterDims")
      .def(py::init<>())
      .def_readwrite("update_window_dims", &ScatterDims::update_window_dims)
      .def_readwrite("inserted_window_dims", &ScatterDims::inserted_window_dims)
      .def_readwrite("input_batching_dims", &ScatterDims::input_batching_dims)
      .def_readwrite("scatter_indices_batching_dims", &ScatterDims::scatter_indices_batching_dims)
      .def_readwrite("scatter_dims_to_operand_dims", &ScatterDims::scatter_dims_to_operand_dims)
      .def_readwrite("index_vector_dim", &ScatterDims::index_vector_dim)
      .def_readwrite("unique_indices", &ScatterDims::unique_indices)
      .def_readwrite("indices_are_sorted", &ScatterDims::indices_are_sorted);
  m.def(
      "scatter",
      [](Graph& graph, const Tensors& operands, const Tensor& indices, const Tensors& updates,
         const ScatterDims& dims, const std::string& body, Sequence& prog,
         const DebugContext& debug) {
        popx::scatter(graph, operands, indices, updates, dims, body, prog, debug);
      },
      "graph"_a, "operands"_a, "indices"_a, "updates"_a, "dims"_a, "body"_a, "prog"_a, debugArg());
  m.def(
      "scatter",
      [](Graph& graph, const Tensors& operands, const Tensor& indices, const Tensors& updates,
         const ScatterDims& dims, const std::vector<popx::expr::Expr>& body, Sequence& prog,
         const DebugContext& debug) {
        popx::scatter(graph, operands, indices, updates, dims, body, prog, debug);
      },
      "graph"_a, "operands"_a, "indices"_a, "updates"_a, "dims"_a, "body"_a, "prog"_a, debugArg());
}

void bindOthers(py::module_ m) {
  m.def("dynamicSlice", &popx::dynamicSlice, "graph"_a, "t"_a, "offset"_a, "dims"_a, "sizes"_a,
        "prog"_a, debugArg());
  m.def("dynamicUpdate", &popx::dynamicUpdate, "graph"_a, "t"_a, "s"_a, "offset"_a, "dims"_a,
        "sizes"_a, "prog"_a, debugArg());
  m.def("pad", &popx::pad, "graph"_a, "t"_a, "value"_a, "low"_a, "high"_a, "interior"_a, "prog"_a,
        debugArg());
  m.def("dropoutBlock", &popx::dropoutBlock, "graph"_a, "seed"_a, "input"_a, "starts"_a,
        "mask_shape"_a, "keep_probability"_a, "scale"_a, "prog"_a, debugArg());
  m.def("rngBitGenerator", &popx::rngBitGenerator, "graph"_a, "state"_a, "algorithm"_a, "shape"_a,
        "type"_a, "prog"_a, debugArg());
  m.def(
      "hostCallback",
      [](Graph& graph, const std::string& id, const Tensors& operands,
         const std::vector<std::string>& dtypes,
         const std::vector<std::pair<std::string, Shape>>& results, Sequence& prog,
         const DebugContext& debug) {
        std::vector<popx::CallbackResult> wanted;
        for (const auto& [dtype, shape] : results) wanted.push_back({dtype, shape});
        return popx::hostCallback(graph, id, operands, dtypes, wanted, prog, debug);
      },
      "graph"_a, "id"_a, "operands"_a, "dtypes"_a, "results"_a, "prog"_a, debugArg());
}

/// The overload of readEntry or writeEntry from one kind of memory to another.
template <class From, class To>
auto entryCopy(void (*copy)(Graph&, const From&, const To&, const Tensor&, Sequence&,
                            const DebugContext&)) {
  return copy;
}

void bindRemoteBuffers(py::module_ m) {
  m.def("copyRemoteBuffer", &popx::copyRemoteBuffer, "graph"_a, "src"_a, "dst"_a, "prog"_a,
        debugArg());
  m.def("readEntry", entryCopy<RemoteBuffer, RemoteBuffer>(&popx::readEntry), "graph"_a, "src"_a,
        "dst"_a, "offset"_a, "prog"_a, debugArg());
  m.def("writeEntry", entryCopy<RemoteBuffer, RemoteBuffer>(&popx::writeEntry), "graph"_a, "src"_a,
        "dst"_a, "offset"_a, "prog"_a, debugArg());
  m.def("readEntry", entryCopy<RemoteBuffer, Tensor>(&popx::readEntry), "graph"_a, "src"_a, "dst"_a,
        "offset"_a, "prog"_a, debugArg());
  m.def("writeEntry", entryCopy<Tensor, RemoteBuffer>(&popx::writeEntry), "graph"_a, "src"_a,
        "dst"_a, "offset"_a, "prog"_a, debugArg());
  m.def("withRepeats", &popx::withRepeats, "graph"_a, "buffer"_a, "repeats"_a, "handle"_a, "prog"_a,
        debugArg());
  m.def("fillFromHost", &popx::fillFromHost, "stream"_a, "buffer"_a, "prog"_a, debugArg());
  m.def("giveToHost", &popx::giveToHost, "buffer"_a, "stream"_a, "prog"_a, debugArg());
}

/// Wraps a function whose seed may be nullptr as one whose seed may be None.
template <class... Rest>
auto withSeed(Tensor (*function)(Graph&, const Tensor*, Rest...)) {
  return [function](Graph& graph, const std::optional<Tensor>& seed, Rest... rest) {
    return function(graph, seed ? &*seed : nullptr, rest...);
  };
}

void bindRandom(py::module_ m) {
  m.def("uniform", withSeed(&poprand::uniform), "graph"_a, "seed"_a, "seed_modifier"_a,
        "reference"_a, "type"_a, "min_val"_a, "max_val"_a, "prog"_a, debugArg());
  m.def("normal", withSeed(&poprand::normal), "graph"_a, "seed"_a, "seed_modifier"_a, "reference"_a,
        "type"_a, "mean"_a, "std_dev"_a, "prog"_a, debugArg());
  m.def("truncatedNormal", withSeed(&poprand::truncatedNormal), "graph"_a, "seed"_a,
        "seed_modifier"_a, "reference"_a, "type"_a, "mean"_a, "std_dev"_a, "alpha"_a, "prog"_a,
        debugArg());
  m.def("bernoulli", withSeed(&poprand::bernoulli), "graph"_a, "seed"_a, "seed_modifier"_a,
        "reference"_a, "type"_a, "prob"_a, "prog"_a, debugArg());
  m.def("dropout",
        withSeed(
            py::overload_cast<Graph&, const Tensor*, std::uint32_t, const Tensor&, const Tensor&,
                              double, double, Sequence&, const DebugContext&>(&poprand::dropout)),
        "graph"_a, "seed"_a, "seed_modifier"_a, "input"_a, "reference"_a, "keep_probability"_a,
        "scale"_a, "prog"_a, debugArg());
  m.def("shapedDropout", withSeed(&poprand::shapedDropout), "graph"_a, "seed"_a, "seed_modifier"_a,
        "input"_a, "reference"_a, "keep_probability"_a, "scale"_a, "prog"_a, debugArg());
  m.def("setSeed", &poprand::setSeed, "graph"_a, "master_seed"_a, "seed_modifier"_a, "prog"_a,
        debugArg());
}

}  // namespace

void bindMove(py::module_& m) {
  bindSlices(submodule(m, "popops"));
  const py::module_ popx = submodule(m, "popx");
  bindGather(popx);
  bindScatter(popx);
  bindOthers(popx);
  bindRemoteBuffers(popx);
  bindRandom(submodule(m, "poprand"));
}
