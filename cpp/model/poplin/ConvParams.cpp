#include "poplin/ConvParams.hpp"

#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

using Unsigned = std::vector<unsigned>;

std::size_t truncatedSize(const ConvParams::InputTransform& t, std::size_t dim, std::size_t size) {
  return size - t.truncationLower[dim] - t.truncationUpper[dim];
}

std::size_t transformedSize(const ConvParams::InputTransform& t, std::size_t dim,
                            std::size_t size) {
  const std::size_t kept = truncatedSize(t, dim, size);
  const std::size_t dilated = kept == 0 ? 0 : (kept - 1) * t.dilation[dim] + 1;
  return dilated + t.paddingLower[dim] + t.paddingUpper[dim];
}

[[noreturn]] void refuse(const ConvParams& params, const std::string& needs) {
  std::ostringstream os;
  os << "[poplin::ConvParams] needs " << needs << "; got " << params << ".";
  throw poputil::poplibs_error(os.str());
}

template <class T>
void list(std::ostream& os, const char* name, const std::vector<T>& values) {
  os << ", " << name << " [";
  for (std::size_t i = 0; i < values.size(); ++i) os << (i ? ", " : "") << values[i];
  os << "]";
}

void write(std::ostream& os, const std::string& name, const ConvParams::InputTransform& t) {
  if (t == ConvParams::InputTransform(t.dilation.size())) return;
  list(os, (name + " truncation lower").c_str(), t.truncationLower);
  list(os, "upper", t.truncationUpper);
  list(os, "dilation", t.dilation);
  list(os, "padding lower", t.paddingLower);
  list(os, "upper", t.paddingUpper);
  list(os, "flip", t.flip);
}

}  // namespace

ConvParams::InputTransform::InputTransform(std::size_t size)
    : InputTransform(Unsigned(size), Unsigned(size), Unsigned(size, 1), Unsigned(size),
                     Unsigned(size), std::vector<bool>(size)) {}

ConvParams::InputTransform::InputTransform(Unsigned truncation_lower, Unsigned truncation_upper,
                                           Unsigned dilations, Unsigned padding_lower,
                                           Unsigned padding_upper, std::vector<bool> flips)
    : truncationLower(std::move(truncation_lower)),
      truncationUpper(std::move(truncation_upper)),
      dilation(std::move(dilations)),
      paddingLower(std::move(padding_lower)),
      paddingUpper(std::move(padding_upper)),
      flip(std::move(flips)) {}

ConvParams::OutputTransform::OutputTransform(std::size_t size)
    : OutputTransform(Unsigned(size), Unsigned(size), Unsigned(size, 1), Unsigned(size),
                      Unsigned(size)) {}

ConvParams::OutputTransform::OutputTransform(Unsigned truncation_lower, Unsigned truncation_upper,
                                             Unsigned strides, Unsigned padding_lower,
                                             Unsigned padding_upper)
    : truncationLower(std::move(truncation_lower)),
      truncationUpper(std::move(truncation_upper)),
      stride(std::move(strides)),
      paddingLower(std::move(padding_lower)),
      paddingUpper(std::move(padding_upper)) {}

ConvParams::ConvParams(poplar::Type dataType, std::size_t batch, std::vector<std::size_t> field,
                       std::vector<std::size_t> kernel, std::size_t inputChannels,
                       std::size_t outputChannels, std::size_t groups)
    : ConvParams(dataType, dataType, batch, std::move(field), std::move(kernel), inputChannels,
                 outputChannels, groups) {}

ConvParams::ConvParams(poplar::Type in, poplar::Type out, std::size_t batch,
                       std::vector<std::size_t> field, std::vector<std::size_t> kernel,
                       std::size_t inputChannels, std::size_t outputChannels, std::size_t groups)
    : ConvParams(in, out, batch, field, std::move(kernel), inputChannels, outputChannels, groups,
                 InputTransform(field.size()), InputTransform(field.size()),
                 OutputTransform(field.size())) {}

ConvParams::ConvParams(poplar::Type in, poplar::Type out, std::size_t batch,
                       std::vector<std::size_t> field, std::vector<std::size_t> kernel,
                       std::size_t inputChannels, std::size_t outputChannels, std::size_t groups,
                       InputTransform input_transform, InputTransform kernel_transform,
                       OutputTransform output_transform)
    : inputType(in),
      outputType(out),
      batchSize(batch),
      inputFieldShape(std::move(field)),
      kernelShape(std::move(kernel)),
      inputChannelsPerConvGroup(inputChannels),
      outputChannelsPerConvGroup(outputChannels),
      numConvGroups(groups),
      inputTransform(std::move(input_transform)),
      kernelTransform(std::move(kernel_transform)),
      outputTransform(std::move(output_transform)) {
  validate();
}

std::size_t ConvParams::getTruncatedInputSize(std::size_t dim) const {
  return truncatedSize(inputTransform, dim, inputFieldShape[dim]);
}

std::size_t ConvParams::getTruncatedKernelSize(std::size_t dim) const {
  return truncatedSize(kernelTransform, dim, kernelShape[dim]);
}

std::size_t ConvParams::getTransformedInputSize(std::size_t dim) const {
  return transformedSize(inputTransform, dim, inputFieldShape[dim]);
}

std::size_t ConvParams::getTransformedKernelSize(std::size_t dim) const {
  return transformedSize(kernelTransform, dim, kernelShape[dim]);
}

std::size_t ConvParams::getUntransformedOutputSize(std::size_t dim) const {
  const std::size_t in = getTransformedInputSize(dim), kernel = getTransformedKernelSize(dim);
  return in + 1 < kernel ? 0 : in + 1 - kernel;
}

std::size_t ConvParams::getOutputSize(std::size_t dim) const {
  const auto& t = outputTransform;
  const std::size_t full = getUntransformedOutputSize(dim);
  const std::size_t cut = t.truncationLower[dim] + t.truncationUpper[dim];
  const std::size_t kept = full <= cut ? 0 : (full - cut + t.stride[dim] - 1) / t.stride[dim];
  return kept + t.paddingLower[dim] + t.paddingUpper[dim];
}

std::vector<std::size_t> ConvParams::getOutputFieldShape() const {
  std::vector<std::size_t> shape;
  for (std::size_t dim = 0; dim < getNumFieldDims(); ++dim) shape.push_back(getOutputSize(dim));
  return shape;
}

void ConvParams::validate() const {
  const std::size_t dims = inputFieldShape.size();
  const auto fit = [dims](const auto&... lists) { return ((lists.size() == dims) && ...); };
  bool sizes = fit(kernelShape);
  for (const auto* t : {&inputTransform, &kernelTransform})
    sizes = sizes && fit(t->truncationLower, t->truncationUpper, t->dilation, t->paddingLower,
                         t->paddingUpper, t->flip);
  const auto& o = outputTransform;
  sizes =
      sizes && fit(o.truncationLower, o.truncationUpper, o.stride, o.paddingLower, o.paddingUpper);
  if (!sizes) refuse(*this, "every list to have one entry per spatial dimension");
  for (std::size_t d = 0; d < dims; ++d) {
    if (inputTransform.dilation[d] == 0 || kernelTransform.dilation[d] == 0 || o.stride[d] == 0)
      refuse(*this, "dilations and strides of at least 1");
    if (inputTransform.truncationLower[d] + inputTransform.truncationUpper[d] >
            inputFieldShape[d] ||
        kernelTransform.truncationLower[d] + kernelTransform.truncationUpper[d] > kernelShape[d])
      refuse(*this, "truncation within the dimension");
  }
}

std::ostream& operator<<(std::ostream& os, const ConvParams& p) {
  os << "types " << p.inputType << " -> " << p.outputType << ", batch " << p.batchSize
     << ", groups " << p.numConvGroups << ", channels " << p.inputChannelsPerConvGroup << " -> "
     << p.outputChannelsPerConvGroup;
  list(os, "field", p.inputFieldShape);
  list(os, "kernel", p.kernelShape);
  write(os, "input", p.inputTransform);
  write(os, "kernel", p.kernelTransform);
  list(os, "stride", p.outputTransform.stride);
  list(os, "output truncation lower", p.outputTransform.truncationLower);
  list(os, "upper", p.outputTransform.truncationUpper);
  list(os, "output padding lower", p.outputTransform.paddingLower);
  list(os, "upper", p.outputTransform.paddingUpper);
  return os;
}

ConvParams ConvParams::canonicalize() const {
  validate();
  ConvParams params = *this;
  const auto simplify = [](InputTransform& t, const std::vector<std::size_t>& shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (truncatedSize(t, d, shape[d]) <= 1) t.dilation[d] = 1;
      if (transformedSize(t, d, shape[d]) <= 1) t.flip[d] = false;
    }
  };
  simplify(params.inputTransform, params.inputFieldShape);
  simplify(params.kernelTransform, params.kernelShape);
  auto& out = params.outputTransform;
  for (std::size_t d = 0; d < out.stride.size(); ++d) {
    const std::size_t kept =
        params.getUntransformedOutputSize(d) - out.truncationLower[d] - out.truncationUpper[d];
    if (kept <= 1) out.stride[d] = 1;
  }
  return params;
}

namespace {

/// Hashes the text of the numbers, so that equal params have equal hashes.
template <class... Lists>
std::size_t hashOf(const Lists&... lists) {
  std::ostringstream text;
  (list(text, "", lists), ...);
  return std::hash<std::string>()(text.str());
}

}  // namespace

std::size_t hash_value(const ConvParams::InputTransform& it) {
  return hashOf(it.truncationLower, it.truncationUpper, it.dilation, it.paddingLower,
                it.paddingUpper, it.flip);
}
std::size_t hash_value(const ConvParams::OutputTransform& ot) {
  return hashOf(ot.truncationLower, ot.truncationUpper, ot.stride, ot.paddingLower,
                ot.paddingUpper);
}
std::size_t hash_value(const ConvParams& p) {
  const std::vector<std::size_t> sizes = {
      p.inputType.hash(),           p.outputType.hash(),           p.batchSize,
      p.inputChannelsPerConvGroup,  p.outputChannelsPerConvGroup,  p.numConvGroups,
      hash_value(p.inputTransform), hash_value(p.kernelTransform), hash_value(p.outputTransform)};
  return hashOf(sizes, p.inputFieldShape, p.kernelShape);
}

}  // namespace poplin
