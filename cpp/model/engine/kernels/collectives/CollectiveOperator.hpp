#pragma once
#include <iosfwd>

namespace ipujax::engine::collective {

/// How a collective combines the replicas' elements. The numbers are part of the executable format.
enum class CollectiveOperator {
  ADD,
  MEAN,  ///< the sum divided by the size of the group; floating point only
  MUL,
  MIN,
  MAX,
  LOGICAL_AND,  ///< BOOL only
  LOGICAL_OR,   ///< BOOL only
  SQUARE_ADD,   ///< the squares are added
  LOCAL,        ///< nothing is combined: each replica keeps its own
};

std::ostream& operator<<(std::ostream& os, const CollectiveOperator& op);
/// Reads such a name; sets failbit for another word.
std::istream& operator>>(std::istream& is, CollectiveOperator& op);

}  // namespace ipujax::engine::collective
