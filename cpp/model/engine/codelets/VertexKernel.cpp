#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <tuple>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/Codelets.hpp"
#include "engine/codelets/Interruptible.hpp"
#include "engine/codelets/VertexDecoder.hpp"
#include "engine/codelets/VertexStep.hpp"
#include "engine/codelets/WorkerTurns.hpp"
#include "engine/codelets/WritableMemory.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/random/WorkerSeeds.hpp"

// The kernel that runs vertices: see VertexLowering.cpp for its attributes.
namespace ipujax::engine {
namespace {

/// Returns the index of an equal element of `list`, to which it adds the value if needed.
template <class T>
std::uint32_t numberOf(std::map<T, std::uint32_t>& known, std::vector<T>& list, const T& value) {
  const auto [it, added] = known.try_emplace(value, static_cast<std::uint32_t>(list.size()));
  if (added) list.push_back(value);
  return it->second;
}

/// A vertex's fields are set for every run: if they are kept, to the values that its codelet left,
/// see VertexState.hpp. All images lie one after the other, with offsets in place of pointers.
class VertexKernel final : public Kernel {
 public:
  explicit VertexKernel(const StepDesc& step)
      : library_(
            CodeletLibrary::find(step.attributes.text("unit"), step.attributes.text("flags"))) {
    library_->giveTurns(WorkerTurns::entries());
    for (const OperandDesc& o : step.operands)
      operand_bytes_.push_back(static_cast<std::size_t>(o.numElements()) * sizeOf(o.type));
    VertexDecoder decoder(step, *library_);
    number_ = decoder.stepNumber();
    gathers_ = step.attributes.integer(kGathers);
    if (library_->enter() != nullptr && step.attributes.has(kSeeds))
      seeds_ = step.attributes.integer(kSeeds);
    if (step.attributes.has(kSeededFrom))
      seeded_from_ = static_cast<std::uint32_t>(step.attributes.integer(kSeededFrom));
    std::map<VertexPatches, std::uint32_t> known;
    std::map<VertexFields, std::uint32_t> known_fields;
    while (!decoder.done()) {
      const VertexImage v = decoder.next();
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
    if (seeds_ != kNoOperand) orderByTiles();
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    const auto n = static_cast<std::int64_t>(vertices_.size());
    Run run{p, numberOfRun(context.replica),
            static_cast<std::uint64_t>(std::llround(context.cycles))};
    context.pool.parallelFor(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      runVertices(run, firstOfTile(begin), firstOfTile(end));
    });
    if (gathers_ == 1 || (gathers_ == 2 && !run.all))
      *p.back() = static_cast<std::byte>(run.all.load());
  }

 private:
  static constexpr std::int64_t kGrain = 64;
  static constexpr std::size_t kSeedBytes = seeds::kWords * sizeof(std::uint32_t);

  /// While it lives, intrinsics of a library that counts must stay in the vertices' memory.
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

    /// Begins on this thread, which must end before the ranges do.
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
    std::uint32_t worker = 0;  ///< of the tile that runs it, unless it is a MultiVertex
  };

  /// The number of a replica's next run: far from those of others, since each vertex adds its own.
  std::uint64_t numberOfRun(std::uint32_t replica) const {
    const std::lock_guard lock(runs_mutex_);
    if (runs_.size() <= replica) runs_.resize(replica + 1);
    const std::uint64_t run = ((number_ << 20) + runs_[replica]++) << 24;
    return run ^ replica * 0x9e3779b97f4a7c15u;
  }

  struct Run {
    std::span<std::byte* const> operands;
    std::uint64_t number, cycles;
    std::atomic<bool> all{true};  ///< vertices returned true
  };

  /// Workers draw from the state that the last vertex on them left, so one thread runs the vertices
  /// of a tile, in their order.
  void orderByTiles() {
    std::stable_sort(vertices_.begin(), vertices_.end(),
                     [](const Placed& a, const Placed& b) { return a.tile < b.tile; });
    const std::size_t tiles =
        operand_bytes_[static_cast<std::size_t>(seeds_)] / (kIpujaxWorkers * kSeedBytes);
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      if (vertices_[i].tile < seeded_from_ || vertices_[i].tile - seeded_from_ >= tiles)
        throw poplar_error(
            "[vertices] needs generators of every tile with a vertex; got a step without. Compile "
            "the program again.");
      const bool follows = i > 0 && vertices_[i].tile == vertices_[i - 1].tile;
      vertices_[i].worker = follows ? (vertices_[i - 1].worker + 1) % kIpujaxWorkers : 0;
    }
  }

  /// The first vertex from this one on that is the first of its tile: where a thread begins.
  std::int64_t firstOfTile(std::int64_t vertex) const {
    if (seeds_ == kNoOperand) return vertex;
    auto i = static_cast<std::size_t>(vertex);
    while (i > 0 && i < vertices_.size() && vertices_[i].tile == vertices_[i - 1].tile) ++i;
    return static_cast<std::int64_t>(i);
  }

  /// The state of a worker's generator in the program's memory; null where it keeps none.
  std::byte* seedOf(const Run& run, const Placed& v, unsigned worker) const {
    if (seeds_ == kNoOperand) return nullptr;
    const std::size_t tile = v.tile - seeded_from_;
    const std::size_t number = tile * kIpujaxWorkers + (v.codelet->is_multi ? worker : v.worker);
    return run.operands[static_cast<std::size_t>(seeds_)] + number * kSeedBytes;
  }

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
      if (!runWorker(*vertex, place.get(), worker, {seed, seedOf(run, *vertex, worker)},
                     run.cycles))
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
        seed = run.number + static_cast<std::uint64_t>(i);
        fill(*vertex, bases.data(), place.get());
        if (vertex->kept) restore(*vertex->kept, run.operands, place.get());
        runVertex(*vertex, turns ? &*turns : nullptr, run_worker);
        if (vertex->kept) keep(*vertex->kept, run.operands, place.get());
      }
    };
    try {
      guarded(run_all);
    } catch (const CodeletFault& e) {
      Interruptible::left();
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

  /// A worker that takes turns may wait with locks held: it is not left on Ctrl-C.
  bool succeeds(const Placed& v, std::byte* place, unsigned worker) const {
    const Interruptible interruptible(!library_->takesTurns());
    try {
      return v.codelet->compute(place, worker) != 0;
    } catch (const std::exception& e) {
      fail(v, nameOf(v, worker), std::string("said: ") + e.what());
    } catch (...) {
      fail(v, nameOf(v, worker), "threw what is no std::exception");
    }
  }

  /// Runs the last worker first, as the first one may wait for the others.
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

  /// The memory that the vertex's workers share.
  std::vector<IpujaxRange> shared(const Placed& v, const std::byte* place) const {
    std::vector<IpujaxRange> memory = writableMemory(*v.codelet, place, v.bytes);
    memory.insert(memory.end(), library_->variables().begin(), library_->variables().end());
    return memory;
  }

  void fill(const Placed& v, std::byte* const* bases, std::byte* place) const {
    const std::byte* image = images_.data() + v.begin;
    for (std::size_t i = 0; i < v.bytes; i += kVertexAlign)
      std::memcpy(place + i, image + i, kVertexAlign);
    for (const VertexPatch& patch : patches_[v.patches]) {
      std::int64_t offset = 0;
      std::memcpy(&offset, place + patch.at, sizeof(offset));
      std::byte* const pointer = bases[patch.base] + offset;
      std::memcpy(place + patch.at, &pointer, sizeof(pointer));
    }
  }

  /// The source of a worker's random numbers.
  struct Seed {
    std::uint64_t number;
    std::byte* state;  ///< of its generator, which is used instead; or null
  };

  /// Runs a worker; returns whether its compute() returned true.
  bool runWorker(const Placed& v, std::byte* place, unsigned worker, const Seed& seed,
                 std::uint64_t cycles) const {
    if (library_->enter() != nullptr) library_->enter()(place, v.tile, worker, seed.number);
    if (library_->counter() != nullptr) library_->counter()->begin(cycles, ~std::uint64_t{0});
    if (seed.state) std::memcpy(library_->random(), seed.state, kSeedBytes);
    const bool good = succeeds(v, place, worker);
    if (seed.state) std::memcpy(seed.state, library_->random(), kSeedBytes);
    if (good) return true;
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
  std::vector<VertexPatches> patches_;
  std::vector<VertexFields> fields_;
  std::vector<std::size_t> operand_bytes_;
  std::size_t largest_ = 0;
  std::int64_t gathers_ = 0;         ///< kGathers
  std::int64_t seeds_ = kNoOperand;  ///< kSeeds
  std::uint32_t seeded_from_ = 0;    ///< kSeededFrom
  std::uint64_t number_ = 0;
  mutable std::mutex runs_mutex_;
  mutable std::vector<std::uint64_t> runs_;  ///< of each replica: seed a run's random numbers
};

std::unique_ptr<Kernel> makeVertices(const StepDesc& step) {
  return std::make_unique<VertexKernel>(step);
}

/// Checks that each vertex has a number, the index of a type, and a tile.
void checkPlaced(StepCheck& check) {
  const auto& placed = check.integers(kPlacedVertices);
  const auto& types = check.text("types");
  const auto num_types = std::count(types.begin(), types.end(), '\n');
  bool holds = placed.size() % 3 == 0;
  for (std::size_t i = 0; holds && i < placed.size(); i += 3)
    holds = placed[i + 1] >= 0 && placed[i + 1] < num_types && placed[i + 2] >= 0;
  check.need(holds, "vertices of its types on tiles");
  if (!check.step().attributes.has(kStateBytes)) return;
  const auto& bytes = check.integers(kStateBytes);
  const bool fits = std::ranges::all_of(bytes, [](auto b) { return b >= 0; });
  check.need(fits && bytes.size() == placed.size() / 3, "the bytes of each vertex");
}

/// Only the codelets' table tells what the integers mean: VertexDecoder checks them against it.
void checkVertices(StepCheck& check) {
  for (const char* name : {"unit", "flags", "types"}) check.text(name);
  check.integers("vertices");
  checkPlaced(check);
  if (check.integer(kGathers, 0, 2) != 0) {
    check.need(check.numOperands() > 0, "an operand for what vertices return");
    check.updated(check.numOperands() - 1).isOf(ElementType::kBool).isOne();
  }
  if (check.step().attributes.has(kSeeds)) {
    const auto last = static_cast<std::int64_t>(check.numOperands()) - 1;
    const auto at = static_cast<std::size_t>(check.integer(kSeeds, 0, last));
    check.updated(at).isOf(ElementType::kUInt32);
    if (check.step().attributes.has(kSeededFrom))
      check.integer(kSeededFrom, 0, std::numeric_limits<std::uint32_t>::max());
  }
  for (std::size_t i = 0; i < check.numOperands(); ++i) {
    const auto operand = check.anyAccess(i).isContiguous();
    check.need(operand->access != Access::kWrite, "operands that keep their values");
  }
}

const RegisterKernel kVertices{"engine.vertices", makeVertices, checkVertices};

}  // namespace
}  // namespace ipujax::engine
