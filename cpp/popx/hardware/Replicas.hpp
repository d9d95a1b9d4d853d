#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "popx/ReplicaGroups.hpp"

/// For the library: what replicas of one program do differently.
namespace popx {

/// Copies between replicas, and choices by a replica's number. All replicas run the same steps:
/// what differs is where a copy comes from, and a table of which each reads its own row.
class Replicas {
 public:
  Replicas(poplar::Graph& graph, poplar::program::Sequence& prog,
           const poplar::DebugContext& debugContext);

  unsigned count() const { return count_; }

  /// A copy from each `first` to its `second`; each names a replica at most once. What replicas get
  /// that nothing names is left open.
  poplar::Tensor sent(const poplar::Tensor& t,
                      const std::vector<std::pair<unsigned, unsigned>>& pairs);

  /// Of `rows` [k, ...], those that the table has for a replica, one after another: [n, ...].
  poplar::Tensor chosen(const poplar::Tensor& rows,
                        const std::vector<std::vector<unsigned>>& table);
  /// One row.
  poplar::Tensor chosen(const poplar::Tensor& rows, const std::vector<unsigned>& table);

  /// [p, elements]: the arrays of a replica's group in the order of its members, for groups of
  /// p members at most; smaller ones get `rest`, or arrays of their members again.
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

/// The members of the largest group.
std::size_t largestOf(const ReplicaGroups& groups);

/// Of each replica, its place in its group; 0 where it is in none.
std::vector<unsigned> placesOf(const ReplicaGroups& groups, unsigned num_replicas);

/// The gcl::CommGroup of these groups, with their members in the same order, if there is one.
std::optional<gcl::CommGroup> commGroupOf(const ReplicaGroups& groups, unsigned num_replicas);

/// Throws unless the groups name each replica at most once, with `all` exactly once, and with
/// `equal` all are of one size.
void checkGroups(const char* where, const ReplicaGroups& groups, unsigned num_replicas, bool all,
                 bool equal);

}  // namespace popx
