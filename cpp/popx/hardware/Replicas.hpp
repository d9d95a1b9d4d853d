#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "popx/ReplicaGroups.hpp"

/// For the library: what replicas of one program do differently.
namespace popx {

/// Copies between replicas, and choices by a replica's number. All replicas run the same steps;
/// they differ in the source of a copy, and in the row of a table that each reads.
class Replicas {
 public:
  Replicas(poplar::Graph& graph, poplar::program::Sequence& prog,
           const poplar::DebugContext& debugContext);

  unsigned count() const { return count_; }

  /// Copies from each `first` to its `second`; each names a replica at most once. Replicas that no
  /// `second` names get undefined data.
  poplar::Tensor sent(const poplar::Tensor& t,
                      const std::vector<std::pair<unsigned, unsigned>>& pairs);

  /// The rows of `rows` [k, ...] that the table lists for a replica, one after another: [n, ...].
  poplar::Tensor chosen(const poplar::Tensor& rows,
                        const std::vector<std::vector<unsigned>>& table);
  /// One row for each replica.
  poplar::Tensor chosen(const poplar::Tensor& rows, const std::vector<unsigned>& table);

  /// [p, elements]: the arrays of a replica's group in the order of its members, for groups of
  /// p members at most; smaller ones are filled with `rest`, or repeat arrays of their members.
  poplar::Tensor gathered(const poplar::Tensor& t, const ReplicaGroups& groups,
                          const std::optional<poplar::Tensor>& rest = {});

  poplar::Tensor variable(const poplar::Type& type, const std::vector<std::size_t>& shape,
                          const std::string& name);
  /// Like `t`; each element is 0.
  poplar::Tensor zerosLike(const poplar::Tensor& t);
  poplar::Tensor copied(const poplar::Tensor& t, const std::string& name);

 private:
  poplar::Graph& graph_;
  poplar::program::Sequence& prog_;
  poplar::DebugContext debug_;
  unsigned count_;
};

/// The number of members of the largest group.
std::size_t largestOf(const ReplicaGroups& groups);

/// Each replica's place in its group; 0 if it is in none.
std::vector<unsigned> placesOf(const ReplicaGroups& groups, unsigned num_replicas);

/// The gcl::CommGroup of these groups, with their members in the same order, if there is one.
std::optional<gcl::CommGroup> commGroupOf(const ReplicaGroups& groups, unsigned num_replicas);

/// Throws unless the groups name each replica at most once, with `all` exactly once, and with
/// `equal` all are of one size.
void checkGroups(const char* where, const ReplicaGroups& groups, unsigned num_replicas, bool all,
                 bool equal);

}  // namespace popx
