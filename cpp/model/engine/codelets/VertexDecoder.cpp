#include "engine/codelets/VertexDecoder.hpp"

#include <cstring>
#include <limits>
#include <sstream>
#include <string>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletGuard.hpp"

namespace ipujax::engine {
namespace {

void construct(VertexImage& instance) {
  alignas(64) std::byte place[4096] = {};
  if (instance.codelet->bytes > sizeof(place)) {
    throw poplar_error("[vertices] needs a vertex of at most 4096 bytes of fields; got " +
                       std::string(instance.codelet->name) + ". Use tensors for data.");
  }
  try {
    guarded([&] { instance.codelet->construct(place); });
  } catch (const CodeletFault& e) {
    throw poplar_error("[vertices] needs a " + std::string(instance.codelet->name) +
                       " that can be constructed; it " + e.what() +
                       ". Correct its constructor and the initialisers of its members.");
  }
  std::memcpy(instance.image.data(), place, instance.codelet->bytes);
}

void need(bool good, const char* what) {
  if (good) return;
  throw poplar_error(std::string("[vertices] needs ") + what +
                     "; got a step without. Compile the program again.");
}

void point(VertexImage& v, std::size_t at, std::uint32_t base, std::int64_t bytes) {
  v.patches.push_back({static_cast<std::uint32_t>(at), base});
  std::memcpy(v.image.data() + at, &bytes, sizeof(bytes));
}

void size(VertexImage& v, std::size_t at, std::int64_t n) {
  need(n <= std::numeric_limits<std::uint32_t>::max(), "fields of fewer than 2^32 elements");
  std::memcpy(v.image.data() + at, &n, sizeof(n));
}

std::size_t extend(VertexImage& v, std::size_t bytes) {
  const std::size_t begin = padded(v.image.size());
  v.image.resize(begin + bytes);
  return begin;
}

}  // namespace

VertexDecoder::VertexDecoder(const StepDesc& step, const CodeletLibrary& library)
    : step_(step),
      integers_(step.attributes.integers("vertices")),
      kept_(step.attributes.has(kKept) ? &step.attributes.integers(kKept) : nullptr) {
  std::istringstream names(step.attributes.text("types"));
  for (std::string name; std::getline(names, name);) types_.push_back(&library.codelet(name));
  number_ = static_cast<std::uint64_t>(take());
}

VertexImage VertexDecoder::next() {
  VertexImage instance;
  instance.codelet = types_.at(static_cast<std::size_t>(take()));
  instance.tile = static_cast<std::uint32_t>(take());
  instance.image.resize(instance.codelet->bytes);
  construct(instance);
  for (unsigned i = 0; i < instance.codelet->num_fields; ++i)
    field(instance, instance.codelet->fields[i]);
  if (kept_) keep(instance);
  ++vertex_;
  return instance;
}

void VertexDecoder::field(VertexImage& v, const IpujaxField& f) {
  switch (f.kind) {
    case kIpujaxValue: {
      const bool set = take() != 0;
      const std::int64_t bits = take();
      if (set) std::memcpy(v.image.data() + f.offset, &bits, f.element_bytes);
      v.fields.push_back({f.offset, f.element_bytes});
      return;
    }
    case kIpujaxScalarEdge:
      return edge(v, f, f.offset);
    case kIpujaxVectorEdge:
      return vectorEdge(v, f, f.offset);
    case kIpujaxListOfVectors:
    case kIpujaxListOfScalars:
      return list(v, f);
    default:
      return state(v, f);
  }
}

/// A count of things that take at least one integer each.
std::size_t VertexDecoder::count() {
  const std::int64_t n = take();
  need(n >= 0 && static_cast<std::size_t>(n) <= integers_.size() - at_, "fields as long as said");
  return static_cast<std::size_t>(n);
}

void VertexDecoder::edge(VertexImage& v, const IpujaxField& f, std::size_t at) {
  const std::int64_t operand = take();
  connect(v, f, at, operand, take(), 1);
}

void VertexDecoder::vectorEdge(VertexImage& v, const IpujaxField& f, std::size_t at) {
  const std::int64_t operand = take();
  const std::int64_t offset = take();
  const std::int64_t n = take();
  connect(v, f, at, operand, offset, n);
  size(v, at + sizeof(void*), n);
  if (!f.has_metadata) return;
  IpujaxField byte = f;
  byte.direction = kIpujaxIn;
  byte.element = static_cast<std::uint32_t>(ElementType::kUInt8);
  const std::int64_t metadata = take();
  connect(v, byte, at + 2 * sizeof(void*), metadata, take(), metadata == kNoOperand ? 0 : 1);
}

/// Connects elements [offset, offset + n) of an operand; there may be no operand if n is 0.
void VertexDecoder::connect(VertexImage& v, const IpujaxField& f, std::size_t at,
                            std::int64_t operand, std::int64_t offset, std::int64_t n) {
  if (operand == kNoOperand) {
    need(n == 0, "edges with a tensor");
    return point(v, at, numOperands() + 1, 0);
  }
  need(operand >= 0, "edges with a tensor");
  const auto& desc = step_.operands.at(static_cast<std::size_t>(operand));
  const std::int64_t elements = desc.numElements();
  need(n >= 0 && n <= elements && offset >= 0 && offset <= elements - n,
       "edges inside their tensor");
  // Types may differ: Tensor::reinterpret gives a variable's elements another of the same size.
  need(sizeOf(desc.type) == f.element_bytes, "edges of elements as large as their field's");
  need(f.direction == kIpujaxIn || desc.access != Access::kRead, "outputs that may be written");
  point(v, at, static_cast<std::uint32_t>(operand),
        offset * static_cast<std::int64_t>(sizeOf(desc.type)));
}

void VertexDecoder::list(VertexImage& v, const IpujaxField& f) {
  const std::size_t n = count();
  const bool vectors = f.kind == kIpujaxListOfVectors;
  const std::size_t each = vectors ? ipujaxVectorBytes(&f) : sizeof(void*);
  const std::size_t begin = extend(v, n * each);
  point(v, f.offset, numOperands(), static_cast<std::int64_t>(begin));
  size(v, f.offset + sizeof(void*), static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i)
    vectors ? vectorEdge(v, f, begin + i * each) : edge(v, f, begin + i * each);
}

void VertexDecoder::state(VertexImage& v, const IpujaxField& f) {
  const std::size_t n = count();
  const std::size_t begin = extend(v, n * f.element_bytes);
  point(v, f.offset, numOperands(), static_cast<std::int64_t>(begin));
  size(v, f.offset + sizeof(void*), static_cast<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t bits = take();
    std::memcpy(v.image.data() + begin + i * f.element_bytes, &bits, f.element_bytes);
  }
  v.fields.push_back(
      {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(n * f.element_bytes)});
}

void VertexDecoder::keep(VertexImage& v) const {
  need(2 * vertex_ + 2 <= kept_->size(), "what each vertex keeps");
  v.kept_in = (*kept_)[2 * vertex_];
  v.kept_at = (*kept_)[2 * vertex_ + 1];
  if (v.kept_in == kNoOperand) return;
  need(v.kept_in >= 0 && v.kept_in < static_cast<std::int64_t>(numOperands()),
       "an operand for kept fields");
  const auto& desc = step_.operands[static_cast<std::size_t>(v.kept_in)];
  std::int64_t bytes = 1;
  for (const FieldBytes& f : v.fields) bytes += f.bytes;
  need(desc.type == ElementType::kUInt8 && desc.access == Access::kReadWrite && v.kept_at >= 0 &&
           v.kept_at <= desc.numElements() - bytes,
       "bytes for kept fields");
}

}  // namespace ipujax::engine
