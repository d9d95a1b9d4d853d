#include <optional>

#include "bindings/bindings.hpp"
#include "popnn/CTCInference.hpp"
#include "popnn/CTCLoss.hpp"
#include "popnn/Gru.hpp"
#include "popnn/Lstm.hpp"
#include "popx/CtcLoss.hpp"

using poplin::PlanningCache;
using popnn::NonLinearityType;
using popnn::gru::GruParams;
using popnn::gru::GruWeights;
using popnn::lstm::LstmParams;
using popnn::lstm::LstmState;
using popnn::lstm::LstmWeights;

namespace {

using OptionalTensor = std::optional<Tensor>;

const Tensor* pointerOf(const OptionalTensor& t) { return t ? &*t : nullptr; }

/// Sets the order of the units in dimension 0 of the weights, by popnn's numbers.
template <class Params, class Unit>
void setCellOrder(Params& params, const std::vector<unsigned>& units) {
  params.cellOrder.clear();
  for (const unsigned unit : units) params.cellOrder.push_back(static_cast<Unit>(unit));
}

template <class Params>
py::class_<Params> bindParams(py::module_& m, const char* name) {
  return py::class_<Params>(m, name)
      .def(py::init<Type, std::size_t, std::size_t, Shape, NonLinearityType, NonLinearityType>(),
           "data_type"_a, "batch_size"_a, "time_steps"_a, "layer_sizes"_a, "activation"_a,
           "recurrent_activation"_a)
      .def(py::init<Type, std::size_t, std::size_t, const Tensor&, Shape, NonLinearityType,
                    NonLinearityType>(),
           "data_type"_a, "batch_size"_a, "max_time_steps"_a, "time_steps"_a, "layer_sizes"_a,
           "activation"_a, "recurrent_activation"_a)
      .def_readwrite("outputFullSequence", &Params::outputFullSequence)
      .def_readwrite("calcInputGradients", &Params::calcInputGradients);
}

template <class Weights>
void bindWeights(py::module_& m, const char* name) {
  py::class_<Weights>(m, name)
      .def(py::init<Tensor, Tensor, Tensor>(), "input_weights"_a, "output_weights"_a, "biases"_a)
      .def_readwrite("inputWeights", &Weights::inputWeights)
      .def_readwrite("outputWeights", &Weights::outputWeights)
      .def_readwrite("biases", &Weights::biases);
}

/// The functions of popnn::lstm; functions that fill tensors return them here.
void bindLstm(py::module_ m) {
  bindParams<LstmParams>(m, "LstmParams")
      .def("setCellOrder", &setCellOrder<LstmParams, BasicLstmCellUnit>, "units"_a);
  bindWeights<LstmWeights>(m, "LstmWeights");
  py::class_<LstmState>(m, "LstmState")
      .def(py::init<Tensor, Tensor>(), "output"_a, "cell_state"_a)
      .def_readwrite("output", &LstmState::output)
      .def_readwrite("cellState", &LstmState::cellState);
  m.def("createWeights", &popnn::lstm::createWeights, "graph"_a, "params"_a, debugArg(),
        optionsArg(), cacheArg());
  m.def(
      "lstmFwd",
      [](Graph& graph, const LstmParams& params, const LstmState& state, const Tensor& in,
         const LstmWeights& weights, bool keep, Sequence& prog, const DebugContext& debug,
         const OptionFlags& options, PlanningCache* cache) {
        Tensor kept;
        const auto [output, cell] = popnn::lstm::lstmFwd(
            graph, params, state, in, weights, keep ? &kept : nullptr, prog, debug, options, cache);
        Tensors made{output, cell};
        if (keep) made.push_back(kept);
        return made;
      },
      "graph"_a, "params"_a, "state_init"_a, "in_"_a, "weights"_a, "keep"_a, "prog"_a, debugArg(),
      optionsArg(), cacheArg(),
      "The output, the last cell state and, with `keep`, what the backward pass needs.");
  m.def(
      "lstmBwdWithWU",
      [](Graph& graph, const LstmParams& params, Sequence& prog, const LstmState& state,
         const Tensor& kept, const LstmWeights& weights, const Tensor& in, const Tensor& output,
         const Tensor& output_grad, const OptionalTensor& cell_grad, const DebugContext& debug,
         const OptionFlags& options, PlanningCache* cache) {
        Tensor input_grad;
        LstmWeights grads;
        const LstmState first = popnn::lstm::lstmBwdWithWU(
            graph, params, prog, state, kept, weights, in, output, output_grad,
            pointerOf(cell_grad), &input_grad, grads, debug, options, cache);
        return Tensors{input_grad,   grads.inputWeights, grads.outputWeights,
                       grads.biases, first.output,       first.cellState};
      },
      "graph"_a, "params"_a, "prog"_a, "state_init"_a, "kept"_a, "weights"_a, "in_"_a, "output"_a,
      "output_grad"_a, "last_cell_state_grad"_a, debugArg(), optionsArg(), cacheArg(),
      "Gradients of the input, both weights, the biases, the initial output and cell state.");
}

void bindGru(py::module_ m) {
  bindParams<GruParams>(m, "GruParams")
      .def_readwrite("resetAfter", &GruParams::resetAfter)
      .def("setCellOrder", &setCellOrder<GruParams, BasicGruCellUnit>, "units"_a);
  bindWeights<GruWeights>(m, "GruWeights");
  m.def("createWeights", &popnn::gru::createWeights, "graph"_a, "params"_a, debugArg(),
        optionsArg(), cacheArg());
  m.def(
      "gruFwd",
      [](Graph& graph, const GruParams& params, const Tensor& state, const Tensor& in,
         const GruWeights& weights, bool keep, const OptionalTensor& attention, Sequence& prog,
         const DebugContext& debug, const OptionFlags& options, PlanningCache* cache) {
        Tensor kept;
        Tensor* to = keep ? &kept : nullptr;
        Tensors made{attention ? popnn::gru::auGruFwd(graph, params, state, in, weights, to,
                                                      *attention, prog, debug, options, cache)
                               : popnn::gru::gruFwd(graph, params, state, in, weights, to, prog,
                                                    debug, options, cache)};
        if (keep) made.push_back(kept);
        return made;
      },
      "graph"_a, "params"_a, "state_init"_a, "in_"_a, "weights"_a, "keep"_a, "attention"_a,
      "prog"_a, debugArg(), optionsArg(), cacheArg(),
      "gruFwd, or auGruFwd: the output and, with `keep`, what the backward pass needs.");
  m.def(
      "gruBwdWithWU",
      [](Graph& graph, const GruParams& params, Sequence& prog, const Tensor& state,
         const Tensor& kept, const GruWeights& weights, const Tensor& in, const Tensor& output,
         const Tensor& output_grad, const OptionalTensor& attention, const DebugContext& debug,
         const OptionFlags& options, PlanningCache* cache) {
        Tensor input_grad, attention_grad;
        GruWeights grads;
        const Tensor first =
            attention
                ? popnn::gru::auGruBwdWithWU(graph, params, prog, state, kept, weights, in, output,
                                             output_grad, &input_grad, grads, *attention,
                                             &attention_grad, debug, options, cache)
                : popnn::gru::gruBwdWithWU(graph, params, prog, state, kept, weights, in, output,
                                           output_grad, &input_grad, grads, debug, options, cache);
        Tensors made{input_grad, grads.inputWeights, grads.outputWeights, grads.biases, first};
        if (attention) made.push_back(attention_grad);
        return made;
      },
      "graph"_a, "params"_a, "prog"_a, "state_init"_a, "kept"_a, "weights"_a, "in_"_a, "output"_a,
      "output_grad"_a, "attention"_a, debugArg(), optionsArg(), cacheArg(),
      "Gradients of the input, both weights, the biases, the initial state and the attention.");
}

void bindCtc(py::module_ popx, py::module_ loss, py::module_ infer) {
  py::class_<popnn::ctc::Plan>(loss, "Plan");
  loss.def("plan", &popnn::ctc::plan, "graph"_a, "in_type"_a, "out_type"_a, "batch_size"_a,
           "max_time"_a, "max_label_length"_a, "num_classes"_a, optionsArg());
  loss.def("calcLossAndGradientLogProbabilities", &popnn::ctc::calcLossAndGradientLogProbabilities,
           "graph"_a, "out_type"_a, "log_probs"_a, "labels"_a, "data_lengths"_a, "label_lengths"_a,
           "prog"_a, "blank_class"_a, "plan"_a, debugArg(), optionsArg());
  loss.def("calcLossAndGradientLogits", &popnn::ctc::calcLossAndGradientLogits, "graph"_a,
           "out_type"_a, "logits"_a, "labels"_a, "data_lengths"_a, "label_lengths"_a, "prog"_a,
           "blank_class"_a, "plan"_a, debugArg(), optionsArg());
  popx.def("ctcLoss", &popx::ctcLoss, "graph"_a, "out_type"_a, "data"_a, "labels"_a,
           "data_lengths"_a, "label_lengths"_a, "prog"_a, "blank_class"_a, "plan"_a, "are_logits"_a,
           debugArg(), "The losses of ctc, without a gradient.");
  infer.def("plan", &popnn::ctc_infer::plan, "graph"_a, "in_type"_a, "batch_size"_a, "max_time"_a,
            "num_classes"_a, "beamwidth"_a, optionsArg());
  infer.def("beamSearchDecoderLogProbabilities",
            &popnn::ctc_infer::beamSearchDecoderLogProbabilities, "graph"_a, "log_probs"_a,
            "data_lengths"_a, "prog"_a, "blank_class"_a, "beamwidth"_a, "top_paths"_a, "plan"_a,
            debugArg(), optionsArg());
  infer.def("beamSearchDecoderLogits", &popnn::ctc_infer::beamSearchDecoderLogits, "graph"_a,
            "logits"_a, "data_lengths"_a, "prog"_a, "blank_class"_a, "beamwidth"_a, "top_paths"_a,
            "plan"_a, debugArg(), optionsArg());
}

}  // namespace

void bindRecurrent(py::module_& m) {
  py::module_ popnn = submodule(m, "popnn");
  bindLstm(submodule(popnn, "lstm"));
  bindGru(submodule(popnn, "gru"));
  bindCtc(submodule(m, "popx"), submodule(popnn, "ctc"), submodule(popnn, "ctc_infer"));
}
