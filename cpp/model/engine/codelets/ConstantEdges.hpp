#pragma once
#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine {

/// A new constant with the values of `constant`, a whole variable, in the type of the field that
/// they were given to as numbers. Null where one is of integers and the other of floats, or where
/// the type cannot hold one of the integers.
ViewPtr constantOfType(GraphImpl& graph, const View& constant, ElementType type);

}  // namespace ipujax::engine
