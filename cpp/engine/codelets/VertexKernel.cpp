#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "engine/Errors.hpp"
#include "engine/Kernel.hpp"
#include "engine/codelets/Codelets.hpp"

// The kernel that runs vertices: see VertexLowering.cpp for its attributes.
namespace ipujax::engine {
namespace {

/// A pointer to write into a vertex before it runs: into an operand, or (operand kSelf) into the
/// vertex's own memory.
struct Patch {
  static constexpr std::int64_t kSelf = -2;
  static constexpr std::int64_t kNull = -1;
  std::uint32_t at;
  std::int64_t operand;
  std::int64_t bytes;
};

struct Instance {
  const IpujaxCodelet* codelet;
  std::vector<std::byte> image;  ///< the object, then its lists and vectors of state
  std::vector<Patch> patches;
};

constexpr std::size_t kAlign = 16;

/// Reads the integers of the step and makes the images.
class Decoder {
 public:
  Decoder(const StepDesc& step, const CodeletLibrary& library)
      : step_(step), integers_(step.attributes.integers("vertices")) {
    std::istringstream names(step.attributes.text("types"));
    for (std::string name; std::getline(names, name);) types_.push_back(&library.codelet(name));
  }

  bool done() const { return at_ == integers_.size(); }

  Instance next() {
    Instance instance;
    instance.codelet = types_.at(static_cast<std::size_t>(take()));
    instance.image.resize(instance.codelet->bytes);
    construct(instance);
    for (unsigned i = 0; i < instance.codelet->num_fields; ++i)
      field(instance, instance.codelet->fields[i]);
    return instance;
  }

 private:
  std::int64_t take() { return integers_.at(at_++); }

  static void construct(Instance& instance) {
    alignas(64) std::byte place[4096] = {};
    if (instance.codelet->bytes > sizeof(place)) {
      throw poplar_error("[vertices] needs a vertex of at most 4096 bytes of fields; got " +
                         std::string(instance.codelet->name) + ". Use tensors for data.");
    }
    instance.codelet->construct(place);
    std::memcpy(instance.image.data(), place, instance.codelet->bytes);
  }

  void field(Instance& v, const IpujaxField& f) {
    switch (f.kind) {
      case kIpujaxValue: {
        const bool set = take() != 0;
        const std::int64_t bits = take();
        if (set) std::memcpy(v.image.data() + f.offset, &bits, f.element_bytes);
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

  static void need(bool good, const char* what) {
    if (good) return;
    throw poplar_error(std::string("[vertices] needs ") + what +
                       "; got a step without. Compile the program again.");
  }

  /// A count of what takes at least one integer each.
  std::size_t count() {
    const std::int64_t n = take();
    need(n >= 0 && static_cast<std::size_t>(n) <= integers_.size() - at_, "fields as long as said");
    return static_cast<std::size_t>(n);
  }

  void edge(Instance& v, const IpujaxField& f, std::size_t at) {
    const std::int64_t operand = take();
    connect(v, f, at, operand, take(), 1);
  }

  void vectorEdge(Instance& v, const IpujaxField& f, std::size_t at) {
    const std::int64_t operand = take();
    const std::int64_t offset = take();
    const std::int64_t n = take();
    connect(v, f, at, operand, offset, n);
    size(v, at + sizeof(void*), n);
  }

  /// Elements [offset, offset + n) of an operand; of none where n is 0.
  void connect(Instance& v, const IpujaxField& f, std::size_t at, std::int64_t operand,
               std::int64_t offset, std::int64_t n) {
    if (operand == Patch::kNull) {
      need(n == 0, "edges with a tensor");
      return v.patches.push_back({static_cast<std::uint32_t>(at), operand, 0});
    }
    need(operand >= 0, "edges with a tensor");
    const auto& desc = step_.operands.at(static_cast<std::size_t>(operand));
    const std::int64_t elements = desc.numElements();
    need(n >= 0 && n <= elements && offset >= 0 && offset <= elements - n,
         "edges inside their tensor");
    need(static_cast<std::uint32_t>(desc.type) == f.element, "edges of their field's type");
    need(f.direction == kIpujaxIn || desc.access != Access::kRead, "outputs that may be written");
    const auto bytes = offset * static_cast<std::int64_t>(sizeOf(desc.type));
    v.patches.push_back({static_cast<std::uint32_t>(at), operand, bytes});
  }

  static void size(Instance& v, std::size_t at, std::int64_t n) {
    std::memcpy(v.image.data() + at, &n, sizeof(n));
  }

  static std::size_t extend(Instance& v, std::size_t bytes) {
    const std::size_t begin = (v.image.size() + kAlign - 1) / kAlign * kAlign;
    v.image.resize(begin + bytes);
    return begin;
  }

  void list(Instance& v, const IpujaxField& f) {
    const std::size_t n = count();
    const bool vectors = f.kind == kIpujaxListOfVectors;
    const std::size_t each = vectors ? 2 * sizeof(void*) : sizeof(void*);
    const std::size_t begin = extend(v, n * each);
    v.patches.push_back({f.offset, Patch::kSelf, static_cast<std::int64_t>(begin)});
    size(v, f.offset + sizeof(void*), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i)
      vectors ? vectorEdge(v, f, begin + i * each) : edge(v, f, begin + i * each);
  }

  void state(Instance& v, const IpujaxField& f) {
    const std::size_t n = count();
    const std::size_t begin = extend(v, n * f.element_bytes);
    v.patches.push_back({f.offset, Patch::kSelf, static_cast<std::int64_t>(begin)});
    size(v, f.offset + sizeof(void*), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t bits = take();
      std::memcpy(v.image.data() + begin + i * f.element_bytes, &bits, f.element_bytes);
    }
  }

  const StepDesc& step_;
  const Attributes::Integers& integers_;
  std::vector<const IpujaxCodelet*> types_;
  std::size_t at_ = 0;
};

/// A vertex's fields are set anew for every run: what a codelet writes to its own fields is not
/// kept for the next.
class VertexKernel final : public Kernel {
 public:
  explicit VertexKernel(const StepDesc& step)
      : library_(
            CodeletLibrary::find(step.attributes.text("unit"), step.attributes.text("flags"))) {
    Decoder decoder(step, *library_);
    while (!decoder.done()) {
      instances_.push_back(decoder.next());
      largest_ = std::max(largest_, instances_.back().image.size());
    }
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto n = static_cast<std::int64_t>(instances_.size());
    context.pool.parallelFor(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      const std::size_t bytes = (largest_ + 63) / 64 * 64;
      const std::unique_ptr<std::byte, decltype(&std::free)> place(
          static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))),
          std::free);
      if (!place) throw std::bad_alloc();
      for (std::int64_t i = begin; i < end; ++i)
        runOne(instances_[static_cast<std::size_t>(i)], place.get(), p);
    });
  }

 private:
  static constexpr std::int64_t kGrain = 16;

  static void runOne(const Instance& v, std::byte* place, std::span<std::byte* const> p) {
    std::memcpy(place, v.image.data(), v.image.size());
    for (const Patch& patch : v.patches) {
      std::byte* pointer = nullptr;
      if (patch.operand == Patch::kSelf) {
        pointer = place + patch.bytes;
      } else if (patch.operand != Patch::kNull) {
        pointer = p[static_cast<std::size_t>(patch.operand)] + patch.bytes;
      }
      std::memcpy(place + patch.at, &pointer, sizeof(pointer));
    }
    for (unsigned worker = 0; worker < (v.codelet->is_multi ? kIpujaxWorkers : 1); ++worker) {
      if (v.codelet->compute(place, worker) == 0) {
        throw application_runtime_error(
            "[Execute] needs codelets whose compute() returns true; a " +
            std::string(v.codelet->name) + " returned false. Return true at its end.");
      }
    }
  }

  std::shared_ptr<const CodeletLibrary> library_;
  std::vector<Instance> instances_;
  std::size_t largest_ = 0;
};

std::unique_ptr<Kernel> makeVertices(const StepDesc& step) {
  return std::make_unique<VertexKernel>(step);
}

/// What the integers mean only the codelets' table tells: the Decoder holds them to it.
void checkVertices(StepCheck& check) {
  for (const char* name : {"unit", "flags", "types"}) check.text(name);
  check.integers("vertices");
  for (std::size_t i = 0; i < check.numOperands(); ++i) {
    const auto operand = check.anyAccess(i).isContiguous();
    check.need(operand->access != Access::kWrite, "operands that keep their values");
  }
}

const RegisterKernel kVertices{"engine.vertices", makeVertices, checkVertices};

}  // namespace
}  // namespace ipujax::engine
