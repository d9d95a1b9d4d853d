#pragma once
#include <cstddef>
#include <deque>
#include <vector>

#include "engine/codelets/VertexStore.hpp"

namespace ipujax::engine {

/// The object of a vertex with its values and sizes, for uses without data. Its edges point
/// nowhere or, `with_memory`, to zeros.
class HollowVertex {
 public:
  /// Throws CodeletFault from the codelet's constructor.
  HollowVertex(const VertexRecord& vertex, const IpujaxCodelet& codelet, bool with_memory = false);
  void* place() const { return place_; }
  /// Its memory, and that of its edges.
  const std::vector<IpujaxRange>& ranges() const { return ranges_; }

 private:
  void field(const IpujaxField& f);
  void value(const IpujaxField& f);
  void state(const IpujaxField& f);
  void list(const IpujaxField& f, const Connection& connected);
  std::byte* zeros(const IpujaxField& f, std::size_t elements);
  std::byte* memory(std::size_t bytes);

  const VertexRecord& vertex_;
  bool with_memory_;
  std::vector<std::byte> object_;
  std::byte* place_ = nullptr;
  std::deque<std::vector<std::byte>> rows_;
  std::vector<IpujaxRange> ranges_;
};

}  // namespace ipujax::engine
