#include "popops/ExprOpUtils.hpp"

#include <ostream>
#include <sstream>

#include "popops/ElementWise.hpp"

namespace popops::expr::ostream_ext {
namespace {

/// The name of an enumerator, from the table of operations.
template <class Type>
const char* nameOf(Type type);

template <>
const char* nameOf(UnaryOpType type) {
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (type == UnaryOpType::TYPE) return #TYPE;
#include "engine/ops/ElementwiseOps.def"
  return "?";
}
template <>
const char* nameOf(BinaryOpType type) {
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (type == BinaryOpType::TYPE) return #TYPE;
#include "engine/ops/ElementwiseOps.def"
  return "?";
}
template <>
const char* nameOf(TernaryOpType type) {
#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) \
  if (type == TernaryOpType::TYPE) return #TYPE;
#include "engine/ops/ElementwiseOps.def"
  return "?";
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const UnaryOpType& t) { return os << nameOf(t); }
std::ostream& operator<<(std::ostream& os, const BinaryOpType& t) { return os << nameOf(t); }
std::ostream& operator<<(std::ostream& os, const TernaryOpType& t) { return os << nameOf(t); }

}  // namespace popops::expr::ostream_ext

namespace popops::expr {

std::string vertexTemplateToString(const UnaryOpType& type) {
  return std::string("popops::expr::UnaryOpType::") + ostream_ext::nameOf(type);
}
std::string vertexTemplateToString(const BinaryOpType& type) {
  return std::string("popops::expr::BinaryOpType::") + ostream_ext::nameOf(type);
}
std::string vertexTemplateToString(const TernaryOpType& type) {
  return std::string("popops::expr::TernaryOpType::") + ostream_ext::nameOf(type);
}

}  // namespace popops::expr

namespace poputil {
namespace {

template <class Type>
poplar::ProfileValue nameValue(const Type& op) {
  using namespace popops::expr::ostream_ext;
  std::ostringstream text;
  text << op;
  return poplar::ProfileValue(text.str());
}

}  // namespace

template <>
poplar::ProfileValue toProfileValue(const popops::expr::UnaryOpType& op) {
  return nameValue(op);
}
template <>
poplar::ProfileValue toProfileValue(const popops::expr::BinaryOpType& op) {
  return nameValue(op);
}
template <>
poplar::ProfileValue toProfileValue(const popops::expr::TernaryOpType& op) {
  return nameValue(op);
}

}  // namespace poputil
