#include <map>

#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/MetadataCreation.hpp"
#include "poplar/TypeConversion.hpp"

// The parts of Graph and Tensor for quarters and metadata, and functions that the model refuses.
namespace poplar {
namespace {

void checkMetadata(const Tensor& metadata) {
  if (metadata.valid() && metadata.elementType() == QUARTER_METADATA && metadata.numElements() == 1)
    return;
  throw tensor_metadata_error(
      "[Graph] needs one element of QUARTER_METADATA for quarters; got " +
      (metadata.valid() ? metadata.elementType().toString() + " " + metadata.shapeToString()
                        : "an empty Tensor") +
      ". Make it with createVariableMetadataTensor.");
}

/// Reinterprets UNSIGNED_CHAR `bytes` as quarters with this metadata.
Tensor withMetadata(const Tensor& bytes, const Tensor& metadata) {
  checkMetadata(metadata);
  return bytes.asQuarters(metadata);
}

QuarterMetadata valueOf(const Graph& graph, const Tensor& metadata) {
  checkMetadata(metadata);
  unsigned char bits = 0;
  if (!graph.getConstantValue(metadata, &bits))
    throw tensor_metadata_error(
        "[Graph::addConstant] needs constant metadata for constant quarters; got a variable. Use "
        "createConstantMetadataTensor.");
  return QuarterMetadata(bits);
}

Tensor repeated(std::size_t n, const std::function<Tensor()>& clone) {
  if (n == 0)
    throw tensor_creation_error("[Graph::cloneN] needs at least one clone; got 0. Use 1 or more.");
  std::vector<Tensor> clones;
  for (std::size_t i = 0; i < n; ++i) clones.push_back(clone().expand({0}));
  return concat(clones);
}

}  // namespace

Tensor Graph::addVariable(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                          const DebugContext& debugContext) {
  if (!type.requiresMetadata()) return addVariable(type, shape, debugContext);
  return withMetadata(addVariable(UNSIGNED_CHAR, shape, debugContext), metadata);
}

Tensor Graph::addVariable(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                          VariableMappingMethod mapping, const DebugContext& debugContext) {
  if (!type.requiresMetadata()) return addVariable(type, shape, mapping, debugContext);
  return withMetadata(addVariable(UNSIGNED_CHAR, shape, mapping, debugContext), metadata);
}

Tensor Graph::clone(const Type& type, const Tensor& metadata, const Tensor& t,
                    const DebugContext& debugContext, TensorCloneMethod method) {
  if (!type.requiresMetadata()) return clone(type, t, debugContext, method);
  return withMetadata(clone(UNSIGNED_CHAR, t, debugContext, method), metadata);
}

Tensor Graph::clone(const Tensor& metadata, const Tensor& t, const DebugContext& debugContext,
                    TensorCloneMethod method) {
  return clone(t.elementType(), metadata, t, debugContext, method);
}

// All clones share one metadata tensor, so that they can be concatenated.
Tensor Graph::cloneN(const Type& type, const Tensor& t, std::size_t N,
                     const DebugContext& debugContext, TensorCloneMethod method,
                     TensorCloneDuplicationMethod duplicationMethod) {
  if (type.requiresMetadata()) {
    const auto metadata =
        t.hasMetadata() ? t.getMetadata() : addVariable(QUARTER, {0}, debugContext).getMetadata();
    return cloneN(type, metadata, t, N, debugContext, method, duplicationMethod);
  }
  return repeated(N, [&] { return clone(type, t, debugContext, method); });
}

Tensor Graph::cloneN(const Tensor& t, std::size_t N, const DebugContext& debugContext,
                     TensorCloneMethod method, TensorCloneDuplicationMethod duplicationMethod) {
  return cloneN(t.elementType(), t, N, debugContext, method, duplicationMethod);
}

Tensor Graph::cloneN(const Type& type, const Tensor& metadata, const Tensor& t, std::size_t N,
                     const DebugContext& debugContext, TensorCloneMethod method,
                     TensorCloneDuplicationMethod) {
  return repeated(N, [&] { return clone(type, metadata, t, debugContext, method); });
}

Tensor Graph::cloneN(const Tensor& metadata, const Tensor& t, std::size_t N,
                     const DebugContext& debugContext, TensorCloneMethod method,
                     TensorCloneDuplicationMethod duplicationMethod) {
  return cloneN(t.elementType(), metadata, t, N, debugContext, method, duplicationMethod);
}

Tensor Graph::addQuartersFrom(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                              const void* values, const TypeTraits& traits, std::size_t n,
                              const DebugContext& debugContext) {
  if (!type.requiresMetadata())
    return addConstantFrom(traits.type, values, n, type, shape, debugContext);
  const QuarterMetadata format = valueOf(*this, metadata);
  const Tensor floats = addConstantFrom(traits.type, values, n, FLOAT, {n}, debugContext);
  std::vector<float> rounded(n);
  getConstantValue(floats, rounded.data());
  std::vector<unsigned char> bits(n);
  convertToDeviceType<float>(QUARTER, format, rounded, bits.data());
  return withMetadata(
      addConstantFrom(UNSIGNED_CHAR, bits.data(), n, UNSIGNED_CHAR, shape, debugContext), metadata);
}

Tensor createConstantMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext) {
  const std::uint8_t bits = QuarterMetadata(fp8Format, fp8Scale).getBinary();
  const Tensor t = graph.addConstant(UNSIGNED_CHAR, {1}, bits, debugContext);
  graph.setTileMapping(t, 0);
  return t[0].asMetadata();
}

Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, int fp8Scale,
                                    const DebugContext& debugContext) {
  const std::uint8_t bits = QuarterMetadata(fp8Format, fp8Scale).getBinary();
  const Tensor t = graph.addVariable(UNSIGNED_CHAR, {}, debugContext);
  graph.setTileMapping(t, 0);
  graph.setInitialValue(t, bits);
  return t.asMetadata();
}

Tensor createVariableMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format,
                                    const Tensor& fp8Scale, program::Sequence& prog,
                                    const DebugContext& debugContext) {
  const Tensor t = createVariableMetadataTensor(graph, fp8Format, 0, debugContext);
  setMetadataTensor(graph, fp8Format, fp8Scale, t, prog, debugContext);
  return t;
}

void setMetadataTensor(Graph& graph, QuarterMetadata::Format fp8Format, const Tensor& fp8Scale,
                       const Tensor& metadataOut, program::Sequence& prog,
                       const DebugContext& debugContext) {
  checkMetadata(metadataOut);
  if (fp8Scale.elementType() != INT || fp8Scale.numElements() != 1)
    throw tensor_metadata_error("[setMetadataTensor] needs one INT as scale; got " +
                                fp8Scale.elementType().toString() + " " + fp8Scale.shapeToString() +
                                ". Cast or slice it.");
  // A scale in [-32, 31] is stored in the lowest six bits: one constant for each value.
  std::vector<std::pair<std::int32_t, program::Program>> cases;
  for (int scale = -32; scale < 32; ++scale) {
    const std::uint8_t bits = QuarterMetadata(fp8Format, scale).getBinary();
    const Tensor value = graph.addConstant(UNSIGNED_CHAR, {1}, bits, debugContext);
    graph.setTileMapping(value, 0);
    cases.emplace_back(scale, program::Copy(value, metadataOut.reinterpret(UNSIGNED_CHAR).flatten(),
                                            false, debugContext));
  }
  prog.add(program::Switch(fp8Scale.reshape({}), cases,
                           program::ErrorProgram("[setMetadataTensor] needs a scale in [-32, 31]; "
                                                 "got another. Scale the values first.",
                                                 fp8Scale, debugContext),
                           debugContext));
}

namespace {

[[noreturn]] void refuse(const char* where, const char* needs) {
  throw poplar_error(std::string("[Graph::") + where + "] needs " + needs);
}

}  // namespace

Tensor Graph::addExternalVariable(const Type&, ArrayRef<std::size_t>, StringRef,
                                  const DebugContext&) {
  refuse("addExternalVariable",
         "a device that several programs share; got the model, which has one program at a time. "
         "Use addVariable and createHostWrite.");
}

VertexRef Graph::addExternalExchangeVertex(ComputeSet, StringRef, unsigned, bool, bool) {
  refuse("addExternalExchangeVertex",
         "exchange code that vertices write; got the model, which plans exchanges itself. Use Copy "
         "between tiles.");
}

void Graph::addCodeletPlaceholder(std::istream&, StringRef) {
  refuse("addCodeletPlaceholder",
         "a codelet's source; got its description, which the model makes itself. Use addCodelets.");
}

void Graph::setInitialValue(const Tensor& t, const std::map<unsigned, unsigned>& values) {
  // The model stores one initial value for all replicas.
  for (const auto& [replica, value] : values) {
    if (value != values.begin()->second)
      refuse("setInitialValue",
             "one value for all replicas; got several. Use addReplicationIndexConstant and a "
             "program that makes the value from it.");
  }
  if (!values.empty()) setInitialValue(t, values.begin()->second);
}

Tensor Tensor::asQuarters(const Tensor& metadata) const {
  Tensor result(graph_, view_);
  result.metadata_ = std::make_shared<const Tensor>(metadata);
  return result;
}

Tensor Tensor::asMetadata() const {
  Tensor result(graph_, view_);
  result.is_metadata_ = true;
  return result;
}

Tensor Tensor::getMetadata() const {
  if (metadata_) return *metadata_;
  throw tensor_metadata_error("[Tensor::getMetadata] needs a tensor of QUARTER; got " +
                              elementType().toString() + ". Ask hasMetadata first.");
}

}  // namespace poplar
