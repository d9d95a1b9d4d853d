#pragma once
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// A new constant with the values of `constant`, a whole variable, converted to the type of the
/// field to which they were given as numbers. Null if one type is integer and the other floating,
/// or if the type cannot hold one of the integers.
ViewPtr constantOfType(GraphImpl& graph, const View& constant, ElementType type);

}  // namespace ipujax::engine
