#include "poplar/Type.hpp"

#include <ostream>

namespace poplar {

std::string Type::toString() const { return ipujax::engine::nameOf(element_); }

std::ostream& operator<<(std::ostream& os, Type type) { return os << type.toString(); }

}  // namespace poplar
