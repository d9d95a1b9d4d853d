#include <sstream>

#include "bindings/bindings.hpp"
#include "poplin/Convolution.hpp"
#include "poplin/MatMul.hpp"
#include "poplin/MultiConvolution.hpp"

using poplin::ConvParams;
using poplin::PlanningCache;

namespace {

using AccumulateFn = void (*)(Graph&, const Tensor&, float, const Tensor&, const Tensor&, Sequence&,
                              const DebugContext&, const OptionFlags&, PlanningCache*);

void bindAccumulate(py::module_& m, const char* name, AccumulateFn accumulate) {
  m.def(name, accumulate, "graph"_a, "c"_a, "k"_a, "a"_a, "b"_a, "prog"_a, debugArg(), optionsArg(),
        cacheArg());
}

void bindMatMul(py::module_& m) {
  m.def("matMul",
        py::overload_cast<Graph&, const Tensor&, const Tensor&, Sequence&, const Type&,
                          const DebugContext&, const OptionFlags&, PlanningCache*>(&poplin::matMul),
        "graph"_a, "a"_a, "b"_a, "prog"_a, "output_type"_a, debugArg(), optionsArg(), cacheArg());
  m.def("matMulGrouped", &poplin::matMulGrouped, "graph"_a, "a"_a, "b"_a, "prog"_a, "output_type"_a,
        debugArg(), optionsArg(), cacheArg());
  bindAccumulate(m, "matMulAcc", &poplin::matMulAcc);
  bindAccumulate(m, "matMulGroupedAcc", &poplin::matMulGroupedAcc);
}

using CreateFn = Tensor (*)(Graph&, const Type&, const Type&, const Shape&, const Shape&,
                            const DebugContext&, const OptionFlags&, PlanningCache*);

void bindCreate(py::module_& m, const char* name, CreateFn create) {
  m.def(name, create, "graph"_a, "input_type"_a, "output_type"_a, "a_shape"_a, "b_shape"_a,
        debugArg(), optionsArg(), cacheArg());
}

void bindConvParams(py::module_& m) {
  using Unsigned = std::vector<unsigned>;
  using In = ConvParams::InputTransform;
  using Out = ConvParams::OutputTransform;
  py::class_<In>(m, "InputTransform")
      .def(py::init<std::size_t>())
      .def(py::init<Unsigned, Unsigned, Unsigned, Unsigned, Unsigned, std::vector<bool>>(),
           "truncation_lower"_a, "truncation_upper"_a, "dilation"_a, "padding_lower"_a,
           "padding_upper"_a, "flip"_a);
  py::class_<Out>(m, "OutputTransform")
      .def(py::init<std::size_t>())
      .def(py::init<Unsigned, Unsigned, Unsigned, Unsigned, Unsigned>(), "truncation_lower"_a,
           "truncation_upper"_a, "stride"_a, "padding_lower"_a, "padding_upper"_a);
  py::class_<ConvParams>(m, "ConvParams")
      .def(py::init<Type, Type, std::size_t, Shape, Shape, std::size_t, std::size_t, std::size_t,
                    In, In, Out>(),
           "input_type"_a, "output_type"_a, "batch_size"_a, "input_field_shape"_a, "kernel_shape"_a,
           "input_channels_per_group"_a, "output_channels_per_group"_a, "num_groups"_a,
           "input_transform"_a, "kernel_transform"_a, "output_transform"_a)
      .def("getOutputFieldShape", &ConvParams::getOutputFieldShape)
      .def("__repr__", [](const ConvParams& params) {
        std::ostringstream os;
        os << params;
        return os.str();
      });
}

void bindConvolution(py::module_& m) {
  m.def("createWeights", &poplin::createWeights, "graph"_a, "params"_a, debugArg(), optionsArg(),
        cacheArg());
  m.def("createInput", &poplin::createInput, "graph"_a, "params"_a, debugArg(), optionsArg(),
        cacheArg());
  m.def("convolution", &poplin::convolution, "graph"_a, "in_"_a, "weights"_a, "params"_a,
        "transpose_and_flip_weights"_a, "prog"_a, debugArg(), optionsArg(), cacheArg());
  m.def("calculateWeightDeltas", &poplin::calculateWeightDeltas, "graph"_a, "deltas"_a,
        "activations"_a, "params"_a, "prog"_a, debugArg(), optionsArg(), cacheArg());
  m.def("getGradientParams", &poplin::getGradientParams, "params"_a);
  m.def("getWeightUpdateParams", &poplin::getWeightUpdateParams, "params"_a);
}

void bindMultiConvolution(py::module_ m) {
  using poplin::multiconv::ConvolutionArgs;
  py::class_<ConvolutionArgs>(m, "ConvolutionArgs")
      .def(py::init([](const Tensor& inputs, const Tensor& weights, const ConvParams& params,
                       const OptionFlags& options) {
             return ConvolutionArgs{inputs, weights, params, options};
           }),
           "inputs"_a, "weights"_a, "params"_a, "options"_a);
  // The overload with options for all convolutions; that of SDK 1.3 has none.
  using Convolution = std::vector<Tensor> (*)(
      poplar::Graph&, const std::vector<ConvolutionArgs>&, bool, poplar::program::Sequence&,
      const poplar::DebugContext&, const OptionFlags&, PlanningCache*);
  m.def("convolution", static_cast<Convolution>(&poplin::multiconv::convolution), "graph"_a,
        "args"_a, "transpose_and_flip_weights"_a, "prog"_a, debugArg(), optionsArg(), cacheArg());
}

}  // namespace

void bindPoplin(py::module_& m) {
  py::module_ poplin = m.def_submodule("poplin");
  py::class_<PlanningCache>(poplin, "PlanningCache")
      .def(py::init<>())
      .def("__len__", &PlanningCache::size);
  bindMatMul(poplin);
  bindCreate(poplin, "createMatMulInputLHS", &poplin::createMatMulInputLHS);
  bindCreate(poplin, "createMatMulInputRHS", &poplin::createMatMulInputRHS);
  bindCreate(poplin, "createMatMulGroupedInputLHS", &poplin::createMatMulGroupedInputLHS);
  bindCreate(poplin, "createMatMulGroupedInputRHS", &poplin::createMatMulGroupedInputRHS);
  bindConvParams(poplin);
  bindConvolution(poplin);
  bindMultiConvolution(poplin.def_submodule("multiconv"));
}
