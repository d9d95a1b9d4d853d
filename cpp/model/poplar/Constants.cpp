#include <bit>
#include <cmath>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/internal/Held.hpp"

// The part of Graph that handles host values: constants and initial values.
namespace poplar {
namespace {

using ipujax::engine::elementsOf;
using ipujax::engine::ElementType;
using ipujax::engine::forEachRun;
using ipujax::engine::sizeOf;
using ipujax::engine::View;

/// One host value; an integer keeps all its 64 bits.
struct HostValue {
  double real = 0;
  std::int64_t integer = 0;
};

HostValue readHost(Type host, const void* values, std::size_t i) {
  const std::size_t bytes = sizeOf(host.element());
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(values) + i * bytes, bytes);
  const auto real = [](float v) {
    return HostValue{v, std::isfinite(v) ? static_cast<std::int64_t>(v) : 0};
  };
  switch (host.element()) {
    case ElementType::kFloat:
      return real(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case ElementType::kHalf:
      return real(ipujax::engine::halfToFloat(static_cast<std::uint16_t>(bits)));
    case ElementType::kDouble: {
      const auto v = std::bit_cast<double>(bits);
      return {v, std::abs(v) < 0x1p63 ? static_cast<std::int64_t>(v) : 0};
    }
    case ElementType::kBool:
      bits = bits != 0;
      [[fallthrough]];
    case ElementType::kUInt8:
    case ElementType::kUInt16:
    case ElementType::kUInt32:
    case ElementType::kUInt64:
      return {static_cast<double>(bits), static_cast<std::int64_t>(bits)};
    default:
      const std::size_t unused = 64 - 8 * bytes;
      const std::int64_t v = static_cast<std::int64_t>(bits << unused) >> unused;
      return {static_cast<double>(v), v};
  }
}

void writeDevice(Type type, std::byte* p, std::size_t i, const HostValue& v) {
  const auto real = static_cast<float>(v.real);
  std::int64_t bits = v.integer;
  if (type == BOOL) bits = v.real != 0;
  if (type == FLOAT) bits = std::bit_cast<std::uint32_t>(real);
  if (type == HALF) bits = ipujax::engine::floatToHalf(real);
  if (type.element() == ElementType::kDouble)
    throw type_error("[Graph::addConstant] needs a type that constants can have; got " +
                     type.toString() + ". Cast the values.");
  const std::size_t bytes = sizeOf(type.element());
  std::memcpy(p + i * bytes, &bits, bytes);
}

void writeHost(Type host, std::byte* p, std::size_t i, const HostValue& v) {
  if (host.element() != ElementType::kDouble) return writeDevice(host, p, i, v);
  std::memcpy(p + i * sizeof v.real, &v.real, sizeof v.real);
}

}  // namespace

Tensor Graph::addConstantFrom(Type host, const void* values, std::size_t n, Type type,
                              ArrayRef<std::size_t> shape, const DebugContext& debugContext) {
  Tensor t = addVariable(type, shape, VariableMappingMethod::LINEAR, debugContext);
  setInitialFrom(host, values, n, t);
  internal::held(impl_, "Graph").variables[t.view()->variable].is_constant = true;
  return t;
}

Tensor Graph::addConstant(const Type& type, ArrayRef<std::size_t> shape, const void* values,
                          const TypeTraits& traits, bool broadcast,
                          const DebugContext& debugContext) {
  return addConstantFrom(traits.type, values, broadcast ? 1 : elementsOf(shape), type, shape,
                         debugContext);
}

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                              const DebugContext& debugContext) {
  return addConstantFrom(HALF, &value, 1, type, shape, debugContext);
}

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape,
                              const std::uint16_t* values, const DebugContext& debugContext) {
  return addConstantFrom(HALF, values, elementsOf(shape), type, shape, debugContext);
}

void Graph::setInitialFrom(Type host, const void* values, std::size_t n, const Tensor& t) {
  const View& view = *t.view();
  const std::size_t elements = t.numElements();
  if (n != 1 && n != elements) {
    throw tensor_creation_error("[Graph] needs 1 or " + std::to_string(elements) +
                                " initial values for shape " + t.shapeToString() + "; got " +
                                std::to_string(n) + ". Pass one value, or one for each element.");
  }
  if (values == nullptr && n > 0)
    throw tensor_creation_error("[Graph] needs initial values for shape " + t.shapeToString() +
                                "; got a null pointer. Pass the address of the first value.");
  const auto stored = [&](std::uint32_t id) -> auto& {
    auto& variable = internal::held(impl_, "Graph").variables[id];
    if (variable.values.empty()) variable.values.resize(variable.elements * sizeOf(variable.type));
    return variable;
  };
  const Type type(view.type);
  if (n == elements && host.element() == view.type && view.isContiguous()) {
    const std::size_t bytes = sizeOf(view.type);
    auto& first = stored(view.variable).values;
    if (n > 0)
      std::memcpy(first.data() + view.offset * static_cast<std::int64_t>(bytes), values, n * bytes);
    return;
  }
  std::size_t i = 0;
  forEachRun(view, [&](std::uint32_t id, std::int64_t begin, std::size_t length) {
    auto& variable = stored(id);
    for (std::size_t k = 0; k < length; ++k, ++i) {
      writeDevice(type, variable.values.data(), static_cast<std::size_t>(begin) + k,
                  readHost(host, values, n == 1 ? 0 : i));
    }
  });
}

void Graph::setInitialValueHalf(const Tensor& t, ArrayRef<std::uint16_t> values) {
  setInitialFrom(HALF, values.data(), values.size(), t);
}

bool Graph::readConstant(Type host, void* values, const Tensor& t) const {
  if (!t.containsConstant()) return false;
  bool known = true;
  std::size_t i = 0;
  forEachRun(*t.view(), [&](std::uint32_t id, std::int64_t begin, std::size_t length) {
    const auto& variable = internal::held(impl_, "Graph").variables[id];
    known = known && variable.is_constant;
    for (std::size_t k = 0; known && k < length; ++k, ++i) {
      const auto v = readHost(Type(t.view()->type), variable.values.data(),
                              static_cast<std::size_t>(begin) + k);
      writeHost(host, static_cast<std::byte*>(values), i, v);
    }
  });
  return known;
}

}  // namespace poplar
