#include "gcl/CommGroup.hpp"

#include <ostream>

#include "poplar/exceptions.hpp"

namespace gcl {
namespace {

const char* nameOf(CommGroupType type) {
  switch (type) {
    case CommGroupType::ALL:
      return "ALL";
    case CommGroupType::CONSECUTIVE:
      return "CONSECUTIVE";
    case CommGroupType::ORTHOGONAL:
      return "ORTHOGONAL";
    case CommGroupType::NONE:
      return "NONE";
  }
  return "?";
}

}  // namespace

std::vector<std::vector<unsigned>> CommGroup::members(unsigned replicationFactor) const {
  const unsigned n = replicationFactor;
  unsigned size = size_;
  if (type_ == CommGroupType::ALL) size = n;
  if (type_ == CommGroupType::NONE) size = 1;
  unsigned stride = 1;
  if (type_ == CommGroupType::ORTHOGONAL && size != 0) stride = stride_ != 0 ? stride_ : n / size;
  const std::size_t block = std::size_t{size} * stride;
  if (size == 0 || n % size != 0 || block == 0 || n % block != 0) {
    throw poplar::poplar_error("[gcl::CommGroup] needs groups that divide the " +
                               std::to_string(n) + " replicas; got " + nameOf(type_) + " of size " +
                               std::to_string(size_) +
                               (stride_ != 0 ? " with stride " + std::to_string(stride_) : "") +
                               ". Use a size that divides them.");
  }
  std::vector<std::vector<unsigned>> groups;
  for (unsigned begin = 0; begin < n; begin += static_cast<unsigned>(block)) {
    for (unsigned offset = 0; offset < stride; ++offset) {
      auto& group = groups.emplace_back();
      for (unsigned i = 0; i < size; ++i) group.push_back(begin + offset + i * stride);
    }
  }
  return groups;
}

std::ostream& operator<<(std::ostream& os, const CommGroup& group) {
  return os << "CommGroup(" << nameOf(group.type()) << ", size " << group.replicaGroupSize()
            << ", stride " << group.replicaGroupStride() << ")";
}

}  // namespace gcl
