#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <tuple>

#include "engine/Errors.hpp"
#include "engine/Kernel.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/VertexStep.hpp"
#include "engine/codelets/WorkerTurns.hpp"
#include "engine/codelets/WritableMemory.hpp"

// The kernel that runs vertices: see VertexLowering.cpp for its attributes.
namespace ipujax::engine {
namespace {

constexpr std::int64_t kNoOperand = -1;
constexpr std::size_t kAlign = 16;
constexpr std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

/// Where a pointer is in a vertex's image, and what its offset, which is there, counts from.
struct Patch {
  std::uint32_t at;
  std::uint32_t base;  ///< an operand, or behind them the vertex itself, or null
  friend bool operator<(const Patch& a, const Patch& b) {
    return std::tie(a.at, a.base) < std::tie(b.at, b.base);
  }
};
using Patches = std::vector<Patch>;

/// Bytes of an image that are a field's value.
struct FieldBytes {
  std::uint32_t at;
  std::uint32_t bytes;
  friend bool operator<(const FieldBytes& a, const FieldBytes& b) {
    return std::tie(a.at, a.bytes) < std::tie(b.at, b.bytes);
  }
};
using Fields = std::vector<FieldBytes>;

struct Instance {
  const IpujaxCodelet* codelet = nullptr;
  std::uint32_t tile = 0;
  std::vector<std::byte> image;  ///< the object, then its lists and vectors of state
  Patches patches;
  Fields fields;
  std::int64_t kept_in = kNoOperand;  ///< the operand that keeps the fields
  std::int64_t kept_at = 0;
};

/// The number of an equal element of `list`, which is added where there is none.
template <class T>
std::uint32_t numberOf(std::map<T, std::uint32_t>& known, std::vector<T>& list, const T& value) {
  const auto [it, added] = known.try_emplace(value, static_cast<std::uint32_t>(list.size()));
  if (added) list.push_back(value);
  return it->second;
}

/// Reads the integers of the step and makes the images.
class Decoder {
 public:
  Decoder(const StepDesc& step, const CodeletLibrary& library)
      : step_(step),
        integers_(step.attributes.integers("vertices")),
        kept_(step.attributes.has(kKept) ? &step.attributes.integers(kKept) : nullptr) {
    std::istringstream names(step.attributes.text("types"));
    for (std::string name; std::getline(names, name);) types_.push_back(&library.codelet(name));
    number_ = static_cast<std::uint64_t>(take());
  }

  std::uint64_t stepNumber() const { return number_; }

  bool done() const { return at_ == integers_.size(); }

  Instance next() {
    Instance instance;
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

 private:
  std::int64_t take() { return integers_.at(at_++); }

  static void construct(Instance& instance) {
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

  void field(Instance& v, const IpujaxField& f) {
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
    if (operand == kNoOperand) {
      need(n == 0, "edges with a tensor");
      return point(v, at, numOperands() + 1, 0);
    }
    need(operand >= 0, "edges with a tensor");
    const auto& desc = step_.operands.at(static_cast<std::size_t>(operand));
    const std::int64_t elements = desc.numElements();
    need(n >= 0 && n <= elements && offset >= 0 && offset <= elements - n,
         "edges inside their tensor");
    need(static_cast<std::uint32_t>(desc.type) == f.element, "edges of their field's type");
    need(f.direction == kIpujaxIn || desc.access != Access::kRead, "outputs that may be written");
    point(v, at, static_cast<std::uint32_t>(operand),
          offset * static_cast<std::int64_t>(sizeOf(desc.type)));
  }

  std::uint32_t numOperands() const { return static_cast<std::uint32_t>(step_.operands.size()); }

  static void point(Instance& v, std::size_t at, std::uint32_t base, std::int64_t bytes) {
    v.patches.push_back({static_cast<std::uint32_t>(at), base});
    std::memcpy(v.image.data() + at, &bytes, sizeof(bytes));
  }

  static void size(Instance& v, std::size_t at, std::int64_t n) {
    need(n <= std::numeric_limits<std::uint32_t>::max(), "fields of fewer than 2^32 elements");
    std::memcpy(v.image.data() + at, &n, sizeof(n));
  }

  static std::size_t extend(Instance& v, std::size_t bytes) {
    const std::size_t begin = padded(v.image.size());
    v.image.resize(begin + bytes);
    return begin;
  }

  void list(Instance& v, const IpujaxField& f) {
    const std::size_t n = count();
    const bool vectors = f.kind == kIpujaxListOfVectors;
    const std::size_t each = vectors ? 2 * sizeof(void*) : sizeof(void*);
    const std::size_t begin = extend(v, n * each);
    point(v, f.offset, numOperands(), static_cast<std::int64_t>(begin));
    size(v, f.offset + sizeof(void*), static_cast<std::int64_t>(n));
    for (std::size_t i = 0; i < n; ++i)
      vectors ? vectorEdge(v, f, begin + i * each) : edge(v, f, begin + i * each);
  }

  void state(Instance& v, const IpujaxField& f) {
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

  void keep(Instance& v) const {
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

  const StepDesc& step_;
  const Attributes::Integers& integers_;
  std::vector<const IpujaxCodelet*> types_;
  const Attributes::Integers* kept_;  ///< null where no vertex keeps its fields
  std::size_t at_ = 0;
  std::size_t vertex_ = 0;
  std::uint64_t number_ = 0;
};

/// A vertex's fields are set for every run: to what its codelet left there where they are kept, see
/// VertexState.hpp. All images lie one behind the other, with offsets in the place of pointers.
class VertexKernel final : public Kernel {
 public:
  explicit VertexKernel(const StepDesc& step)
      : library_(
            CodeletLibrary::find(step.attributes.text("unit"), step.attributes.text("flags"))) {
    library_->giveTurns(WorkerTurns::entries());
    for (const OperandDesc& o : step.operands)
      operand_bytes_.push_back(static_cast<std::size_t>(o.numElements()) * sizeOf(o.type));
    Decoder decoder(step, *library_);
    number_ = decoder.stepNumber();
    gathers_ = step.attributes.integer(kGathers);
    std::map<Patches, std::uint32_t> known;
    std::map<Fields, std::uint32_t> known_fields;
    while (!decoder.done()) {
      const Instance v = decoder.next();
      Placed placed{v.codelet, images_.size(), padded(v.image.size()),
                    numberOf(known, patches_, v.patches), v.tile};
      if (v.kept_in != kNoOperand)
        placed.kept = Kept{static_cast<std::size_t>(v.kept_in), static_cast<std::size_t>(v.kept_at),
                           numberOf(known_fields, fields_, v.fields)};
      vertices_.push_back(placed);
      images_.insert(images_.end(), v.image.begin(), v.image.end());
      images_.resize(padded(images_.size()));
      largest_ = std::max(largest_, v.image.size());
    }
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto n = static_cast<std::int64_t>(vertices_.size());
    Run run{p, runs_.fetch_add(1, std::memory_order_relaxed),
            static_cast<std::uint64_t>(std::llround(context.cycles))};
    context.pool.parallelFor(
        n, kGrain, [&](std::int64_t begin, std::int64_t end) { runVertices(run, begin, end); });
    if (gathers_ == 1 || (gathers_ == 2 && !run.all))
      *p.back() = static_cast<std::byte>(run.all.load());
  }

 private:
  static constexpr std::int64_t kGrain = 64;

  /// While it lives, intrinsics of a library that counts stay in the vertices' memory.
  class Watch {
   public:
    Watch(const CodeletLibrary& library, const std::vector<IpujaxRange>& ranges)
        : library_(library) {
      begin(library, ranges);
    }
    ~Watch() {
      if (library_.counter()) library_.counter()->allow(nullptr, 0);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// On this thread, which ends before the ranges do.
    static void begin(const CodeletLibrary& library, const std::vector<IpujaxRange>& ranges) {
      if (library.counter()) library.counter()->allow(ranges.data(), ranges.size());
    }

   private:
    const CodeletLibrary& library_;
  };

  std::vector<IpujaxRange> memory(std::span<std::byte* const> p, std::byte* place) const {
    if (library_->counter() == nullptr) return {};
    std::vector<IpujaxRange> ranges{{place, place + largest_}};
    for (std::size_t i = 0; i < p.size(); ++i) ranges.push_back({p[i], p[i] + operand_bytes_[i]});
    return ranges;
  }

  /// Where fields are kept: a byte that tells whether they are, then their values.
  struct Kept {
    std::size_t operand, at;
    std::uint32_t fields;
  };
  struct Placed {
    const IpujaxCodelet* codelet;
    std::size_t begin, bytes;  ///< of its image, padded
    std::uint32_t patches;
    std::uint32_t tile;
    std::optional<Kept> kept = std::nullopt;
  };

  struct Run {
    std::span<std::byte* const> operands;
    std::uint64_t number, cycles;
    std::atomic<bool> all{true};  ///< vertices returned true
  };

  void runVertices(Run& run, std::int64_t begin, std::int64_t end) const {
    const std::size_t bytes = (largest_ + 63) / 64 * 64;
    const std::unique_ptr<std::byte, decltype(&std::free)> place(
        static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))),
        std::free);
    if (!place) throw std::bad_alloc();
    std::vector<std::byte*> bases(run.operands.begin(), run.operands.end());
    bases.insert(bases.end(), {place.get(), nullptr});
    const std::vector<IpujaxRange> ranges = memory(run.operands, place.get());
    const Watch watch(*library_, ranges);
    const Placed* vertex = nullptr;
    std::uint64_t seed = 0;
    unsigned worker_now = 0;
    const WorkerTurns::Call run_worker = [&](unsigned worker) {
      worker_now = worker;
      if (!runWorker(*vertex, place.get(), worker, seed, run.cycles))
        run.all.store(false, std::memory_order_relaxed);
    };
    std::optional<WorkerTurns> turns;
    if (library_->takesTurns()) {
      WorkerTurns::Vertex view;
      view.memory = [&] { return shared(*vertex, place.get()); };
      view.registers = [&] { return library_->registers(); };
      view.unseen = [&]() -> std::uint64_t& { return library_->unseen(); };
      turns.emplace(std::move(view), [&] { Watch::begin(*library_, ranges); });
    }
    const auto run_all = [&] {
      for (std::int64_t i = begin; i < end; ++i) {
        vertex = &vertices_[static_cast<std::size_t>(i)];
        seed = (((number_ << 20) + run.number) << 24) + static_cast<std::uint64_t>(i);
        fill(*vertex, bases.data(), place.get());
        if (vertex->kept) restore(*vertex->kept, run.operands, place.get());
        runVertex(*vertex, turns ? &*turns : nullptr, run_worker);
        if (vertex->kept) keep(*vertex->kept, run.operands, place.get());
      }
    };
    try {
      guarded(run_all);
    } catch (const CodeletFault& e) {
      fail(*vertex, nameOf(*vertex, worker_now), e.what());
    }
  }

  void restore(const Kept& kept, std::span<std::byte* const> operands, std::byte* place) const {
    const std::byte* from = operands[kept.operand] + kept.at;
    if (*from++ == std::byte{0}) return;
    for (const FieldBytes& f : fields_[kept.fields]) {
      std::memcpy(place + f.at, from, f.bytes);
      from += f.bytes;
    }
  }
  void keep(const Kept& kept, std::span<std::byte* const> operands, const std::byte* place) const {
    std::byte* to = operands[kept.operand] + kept.at;
    *to++ = std::byte{1};
    for (const FieldBytes& f : fields_[kept.fields]) {
      std::memcpy(to, place + f.at, f.bytes);
      to += f.bytes;
    }
  }

  [[noreturn]] static void fail(const Placed& v, const std::string& worker,
                                const std::string& does) {
    throw application_runtime_error("[Execute] needs codelets that do not fail; a " +
                                    std::string(v.codelet->name) + " on tile " +
                                    std::to_string(v.tile) + worker + " " + does +
                                    ". Correct its data or its code.");
  }

  static std::string nameOf(const Placed& v, unsigned worker) {
    return v.codelet->is_multi ? ", worker " + std::to_string(worker) : "";
  }

  static bool succeeds(const Placed& v, std::byte* place, unsigned worker) {
    try {
      return v.codelet->compute(place, worker) != 0;
    } catch (const std::exception& e) {
      fail(v, nameOf(v, worker), std::string("said: ") + e.what());
    } catch (...) {
      fail(v, nameOf(v, worker), "threw what is no std::exception");
    }
  }

  /// The last worker first, as the first one may wait for the others.
  static void runVertex(const Placed& v, WorkerTurns* turns, const WorkerTurns::Call& run_worker) {
    if (!v.codelet->is_multi) return run_worker(0);
    if (!turns) {
      for (unsigned worker = kIpujaxWorkers; worker-- > 0;) run_worker(worker);
      return;
    }
    try {
      turns->run(run_worker);
    } catch (const WorkersWait& e) {
      fail(v, "", std::string("said: ") + e.what());
    } catch (const WorkerFault& e) {
      fail(v, nameOf(v, e.worker), e.what());
    }
  }

  /// What the vertex's workers share.
  std::vector<IpujaxRange> shared(const Placed& v, const std::byte* place) const {
    std::vector<IpujaxRange> memory = writableMemory(*v.codelet, place, v.bytes);
    memory.insert(memory.end(), library_->variables().begin(), library_->variables().end());
    return memory;
  }

  void fill(const Placed& v, std::byte* const* bases, std::byte* place) const {
    const std::byte* image = images_.data() + v.begin;
    for (std::size_t i = 0; i < v.bytes; i += kAlign) std::memcpy(place + i, image + i, kAlign);
    for (const Patch& patch : patches_[v.patches]) {
      std::int64_t offset = 0;
      std::memcpy(&offset, place + patch.at, sizeof(offset));
      std::byte* const pointer = bases[patch.base] + offset;
      std::memcpy(place + patch.at, &pointer, sizeof(pointer));
    }
  }

  /// Whether it returned true.
  bool runWorker(const Placed& v, std::byte* place, unsigned worker, std::uint64_t seed,
                 std::uint64_t cycles) const {
    if (library_->enter() != nullptr) library_->enter()(place, v.tile, worker, seed);
    if (library_->counter() != nullptr) library_->counter()->begin(cycles, ~std::uint64_t{0});
    if (succeeds(v, place, worker)) return true;
    if (gathers_ == 0) {
      throw application_runtime_error("[Execute] needs codelets whose compute() returns true; a " +
                                      std::string(v.codelet->name) + " on tile " +
                                      std::to_string(v.tile) + nameOf(v, worker) +
                                      " returned false. Return true at its end.");
    }
    return false;
  }

  std::shared_ptr<const CodeletLibrary> library_;
  std::vector<Placed> vertices_;
  std::vector<std::byte> images_;
  std::vector<Patches> patches_;
  std::vector<Fields> fields_;
  std::vector<std::size_t> operand_bytes_;
  std::size_t largest_ = 0;
  std::int64_t gathers_ = 0;  ///< kGathers
  std::uint64_t number_ = 0;
  mutable std::atomic<std::uint64_t> runs_{0};  ///< makes the random numbers of a run
};                                              // namespace ipujax::engine

std::unique_ptr<Kernel> makeVertices(const StepDesc& step) {
  return std::make_unique<VertexKernel>(step);
}

/// Of each vertex a number, the index of a type, and a tile.
void checkPlaced(StepCheck& check) {
  const auto& placed = check.integers(kPlacedVertices);
  const auto& types = check.text("types");
  const auto num_types = std::count(types.begin(), types.end(), '\n');
  bool holds = placed.size() % 3 == 0;
  for (std::size_t i = 0; holds && i < placed.size(); i += 3)
    holds = placed[i + 1] >= 0 && placed[i + 1] < num_types && placed[i + 2] >= 0;
  check.need(holds, "vertices of its types on tiles");
}

/// What the integers mean only the codelets' table tells: the Decoder holds them to it.
void checkVertices(StepCheck& check) {
  for (const char* name : {"unit", "flags", "types"}) check.text(name);
  check.integers("vertices");
  checkPlaced(check);
  if (check.integer(kGathers, 0, 2) != 0) {
    check.need(check.numOperands() > 0, "an operand for what vertices return");
    check.updated(check.numOperands() - 1).isOf(ElementType::kBool).isOne();
  }
  for (std::size_t i = 0; i < check.numOperands(); ++i) {
    const auto operand = check.anyAccess(i).isContiguous();
    check.need(operand->access != Access::kWrite, "operands that keep their values");
  }
}

const RegisterKernel kVertices{"engine.vertices", makeVertices, checkVertices};

}  // namespace
}  // namespace ipujax::engine
