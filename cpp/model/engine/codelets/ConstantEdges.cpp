#include "engine/codelets/ConstantEdges.hpp"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/Half.hpp"

namespace ipujax::engine {
namespace {

using Bytes = std::vector<std::byte>;

bool isFloating(ElementType type) {
  return type == ElementType::kHalf || type == ElementType::kFloat || type == ElementType::kDouble;
}

template <class T>
T at(const Bytes& bytes, std::size_t i) {
  T value{};
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void append(Bytes& bytes, T value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

double floatAt(const Bytes& bytes, ElementType type, std::size_t i) {
  if (type == ElementType::kHalf) return halfToFloat(at<std::uint16_t>(bytes, i));
  return type == ElementType::kFloat ? at<float>(bytes, i) : at<double>(bytes, i);
}

Bytes floatsAs(const Variable& from, ElementType type) {
  Bytes made;
  for (std::size_t i = 0; i < from.elements; ++i) {
    const double value = floatAt(from.values, from.type, i);
    if (type == ElementType::kHalf)
      append(made, floatToHalf(static_cast<float>(value)));
    else if (type == ElementType::kFloat)
      append(made, static_cast<float>(value));
    else
      append(made, value);
  }
  return made;
}

std::optional<Bytes> integersAs(const Variable& from, ElementType type) {
  Bytes made;
  bool all = true;
  withInteger(from.type, [&]<class From>(From) {
    withInteger(type, [&]<class To>(To) {
      for (std::size_t i = 0; i < from.elements; ++i) {
        const From value = at<From>(from.values, i);
        all = all && std::in_range<To>(value) && (type != ElementType::kBool || value <= 1);
        append(made, static_cast<To>(value));
      }
    });
  });
  return all ? std::optional(made) : std::nullopt;
}

}  // namespace

ViewPtr constantOfType(GraphImpl& graph, const View& constant, ElementType type) {
  const Variable from = graph.variables[constant.variable];
  if (isFloating(from.type) != isFloating(type)) return nullptr;
  std::optional<Bytes> values = isFloating(type) ? floatsAs(from, type) : integersAs(from, type);
  if (!values) return nullptr;
  const std::uint32_t id = graph.addVariable(type, from.elements, from.map, from.debug);
  Variable& made = graph.variables[id];
  made.is_constant = true;
  made.parts = from.parts;
  made.values = std::move(*values);
  return share(wholeVariable(id, type, constant.shape));
}

}  // namespace ipujax::engine
