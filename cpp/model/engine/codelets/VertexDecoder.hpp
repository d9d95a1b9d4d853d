#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/VertexStep.hpp"

namespace ipujax::engine {

constexpr std::int64_t kNoOperand = -1;

constexpr std::size_t kVertexAlign = 16;
/// The padded size of an image; images lie one after the other.
constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + kVertexAlign - 1) / kVertexAlign * kVertexAlign;
}

/// The place of a pointer in a vertex's image, and the base of the offset that is stored there.
struct VertexPatch {
  std::uint32_t at;
  std::uint32_t base;  ///< an operand or, numbered after those, the vertex itself, or null
  friend bool operator<(const VertexPatch& a, const VertexPatch& b) {
    return std::tie(a.at, a.base) < std::tie(b.at, b.base);
  }
};
using VertexPatches = std::vector<VertexPatch>;

/// Bytes of an image that are a field's value.
struct FieldBytes {
  std::uint32_t at;
  std::uint32_t bytes;
  friend bool operator<(const FieldBytes& a, const FieldBytes& b) {
    return std::tie(a.at, a.bytes) < std::tie(b.at, b.bytes);
  }
};
using VertexFields = std::vector<FieldBytes>;

struct VertexImage {
  const IpujaxCodelet* codelet = nullptr;
  std::uint32_t tile = 0;
  std::vector<std::byte> image;  ///< the object, then its lists and vectors of state
  VertexPatches patches;
  VertexFields fields;
  std::int64_t kept_in = kNoOperand;  ///< the operand that keeps the fields
  std::int64_t kept_at = 0;
};

/// Reads the integers of a step of vertices (VertexLowering.cpp) and makes the images of its
/// vertices, one after the other. Throws poplar_error if they do not describe vertices of the
/// library.
class VertexDecoder {
 public:
  VertexDecoder(const StepDesc& step, const CodeletLibrary& library);

  std::uint64_t stepNumber() const { return number_; }
  bool done() const { return at_ == integers_.size(); }
  VertexImage next();

 private:
  std::int64_t take() { return integers_.at(at_++); }
  std::size_t count();
  std::uint32_t numOperands() const { return static_cast<std::uint32_t>(step_.operands.size()); }

  void field(VertexImage& v, const IpujaxField& f);
  void edge(VertexImage& v, const IpujaxField& f, std::size_t at);
  void vectorEdge(VertexImage& v, const IpujaxField& f, std::size_t at);
  void connect(VertexImage& v, const IpujaxField& f, std::size_t at, std::int64_t operand,
               std::int64_t offset, std::int64_t n);
  void list(VertexImage& v, const IpujaxField& f);
  void state(VertexImage& v, const IpujaxField& f);
  void keep(VertexImage& v) const;

  const StepDesc& step_;
  const Attributes::Integers& integers_;
  std::vector<const IpujaxCodelet*> types_;
  const Attributes::Integers* kept_;  ///< null where no vertex keeps its fields
  std::size_t at_ = 0;
  std::size_t vertex_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace ipujax::engine
