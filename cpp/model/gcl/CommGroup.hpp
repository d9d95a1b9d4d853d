#pragma once
#include <iosfwd>
#include <string>
#include <vector>

namespace gcl {

/// How a CommGroup divides replicas 0 .. N - 1 into groups of size k.
enum class CommGroupType {
  ALL,          ///< one group; the size is ignored
  CONSECUTIVE,  ///< {0 .. k - 1}, {k .. 2k - 1} ...
  ORTHOGONAL,   ///< with m = N / k: {0, m, 2m ...}, {1, m + 1 ...} ...
  NONE,         ///< every replica is a group of its own
};

/// Groups of replicas that run a collective together. With a stride s, members of an ORTHOGONAL
/// group are s apart, and the pattern repeats every k * s replicas.
class CommGroup {
 public:
  CommGroup() = default;
  CommGroup(CommGroupType type, unsigned replicaGroupSize, unsigned replicaGroupStride = 0)
      : type_(type), size_(replicaGroupSize), stride_(replicaGroupStride) {}

  CommGroupType type() const { return type_; }
  unsigned replicaGroupSize() const { return size_; }
  unsigned replicaGroupStride() const { return stride_; }  ///< 0: the type's default

  /// The members of each group, [group][member]. Throws poplar::poplar_error if the groups do not
  /// divide the replicas evenly.
  std::vector<std::vector<unsigned>> members(unsigned replicationFactor) const;
  friend std::ostream& operator<<(std::ostream& os, const CommGroup& group);

 private:
  CommGroupType type_ = CommGroupType::ALL;
  unsigned size_ = 0;
  unsigned stride_ = 0;
};

}  // namespace gcl
