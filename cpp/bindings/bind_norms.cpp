#include "bindings/bindings.hpp"
#include "popnn/GroupNorm.hpp"

namespace gn = popnn::gn;

/// Statistics in FLOAT. Gradients are those of whitened activations.
void bindNorms(py::module_& m) {
  py::module_ popnn = submodule(m, "popnn");
  popnn.def(
      "groupNormStatistics",
      [](Graph& graph, const Tensor& acts, float eps, Sequence& prog, unsigned groups,
         bool unbiased, bool stable, const DebugContext& debug, const OptionFlags& options) {
        return gn::groupNormStatistics(graph, acts, eps, prog, groups, unbiased, stable,
                                       poplar::FLOAT, debug, options);
      },
      "graph"_a, "acts"_a, "eps"_a, "prog"_a, "num_groups"_a, "unbiased_var_estimate"_a,
      "stable_algo"_a, debugArg(), optionsArg());
  popnn.def("groupNormWhiten", &gn::groupNormWhiten, "graph"_a, "acts"_a, "mean"_a, "inv_std_dev"_a,
            "prog"_a, debugArg(), optionsArg());
  popnn.def("groupNormalise", &gn::groupNormalise, "graph"_a, "acts"_a, "gamma"_a, "beta"_a,
            "mean"_a, "inv_std_dev"_a, "prog"_a, debugArg(), optionsArg());
  popnn.def(
      "groupNormParamGradients",
      [](Graph& graph, const Tensor& whitened, const Tensor& grads, Sequence& prog,
         const DebugContext& debug, const OptionFlags& options) {
        return gn::groupNormParamGradients(graph, whitened, grads, prog, poplar::FLOAT, debug,
                                           options);
      },
      "graph"_a, "acts_whitened"_a, "grads_in"_a, "prog"_a, debugArg(), optionsArg());
  popnn.def(
      "groupNormGradients",
      [](Graph& graph, const Tensor& whitened, const Tensor& grads, const Tensor& inverse,
         const Tensor& gamma, Sequence& prog, const DebugContext& debug,
         const OptionFlags& options) {
        return gn::groupNormGradients(graph, whitened, grads, inverse, gamma, prog, poplar::FLOAT,
                                      debug, options);
      },
      "graph"_a, "acts_whitened"_a, "grads_in"_a, "inv_std_dev"_a, "gamma"_a, "prog"_a, debugArg(),
      optionsArg());
}
