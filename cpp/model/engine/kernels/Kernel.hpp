#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/image/Step.hpp"
#include "engine/image/StepCheck.hpp"
#include "support/RunSeeds.hpp"

namespace ipujax::runtime {
class Peers;
}

namespace ipujax::engine {

class HostCallbacks;
class PeerExchange;

/// How the replicas of a program copy their streams.
enum class StreamThreads : std::uint8_t {
  kPool,        ///< concurrently, each from a thread of the pool; no copy waits
  kOne,         ///< one after another, on the thread that runs the program
  kEachReplica  ///< concurrently, on a thread for each: a copy may wait for another replica's
};

/// The host's end of a program's streams; each copy of a stream moves the next block of a replica.
class HostStreams {
 public:
  virtual ~HostStreams() = default;
  virtual void read(std::uint32_t stream, std::uint32_t replica, void* device,
                    std::uint64_t bytes) = 0;
  virtual void write(std::uint32_t stream, std::uint32_t replica, const void* device,
                     std::uint64_t bytes) = 0;
  virtual StreamThreads threads() const { return StreamThreads::kPool; }
  /// Prints one line of a program; to stderr unless overridden.
  virtual void print(const std::string& line);
};

/// What a kernel may use while it runs; owned by the session, one per run.
struct RunContext {
  ThreadPool& pool;
  HostCallbacks* callbacks = nullptr;  ///< null if the program is run without a host
  HostStreams* streams = nullptr;
  std::uint32_t replica = 0;  ///< which of the program's replicas runs this step
  double cycles = 0;  ///< of the modelled IPU before this step, if the program has cycle stamps
  runtime::RunSeed seed{};
};

/// The host implementation of one step, made once when a session loads an executable and then run
/// many times. `run` must be const and re-entrant. pointers[i] is operand i's element at index 0.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(RunContext& context, std::span<std::byte* const> pointers) const = 0;
  /// Whether it calls back into the host: then replicas run it concurrently, on a thread each.
  virtual bool callsHost() const { return false; }
  /// Whether it needs the host's end of the streams.
  virtual bool usesStreams() const { return false; }
};

using ReplicaPointers = std::span<const std::span<std::byte* const>>;

/// A collective step of a program whose replicas run in several processes.
class PeerStep {
 public:
  virtual ~PeerStep() = default;
  /// replicas[r][i] is operand i of replica r; empty for those of other processes.
  virtual void meet(RunContext& context, PeerExchange& peers, ReplicaPointers replicas) const = 0;
};

/// A step at which all replicas of a program meet. A program with one replica meets itself.
class CollectiveKernel : public Kernel {
 public:
  /// replicas[r][i] is operand i of replica r. Runs once for all of them, on one thread that may
  /// use the pool.
  virtual void meet(RunContext& context, ReplicaPointers replicas) const = 0;
  /// The same step where not all replicas run in this process. The kernel outlives it.
  virtual std::unique_ptr<PeerStep> amongProcesses(const runtime::Peers& peers) const = 0;
  void run(RunContext& context, std::span<std::byte* const> pointers) const final {
    meet(context, {&pointers, 1});
  }
};

using KernelFactory = std::unique_ptr<Kernel> (*)(const StepDesc& step);

/// What a kernel's steps mean to code that fuses steps. The attributes that come with a role are
/// the kernel's; see where it is registered.
enum class KernelRole : std::uint8_t {
  kOther,
  kElementwise,         ///< "expr" of all operands but the last ones, which it writes
  kReduction,           ///< a named reducer over "dims" of operand 0
  kReductionByProgram,  ///< "expr" over "dims"
  kSliceOfRow,          ///< one slice at run-time offsets is read
  kUpdateOfRow,         ///< one slice at run-time offsets is written
  kSlices,              ///< any number of slices is read
  kUpdates,             ///< any number of slices is written
  kPad,                 ///< operand 0 and a value around it, at "start" with "step"
  kCycleStamp,          ///< reads RunContext::cycles
  kCollective,          ///< a CollectiveKernel, "groups" of the replicas
  kHostCallback,        ///< calls the function of the host whose "id" it has
};
constexpr bool isReduction(KernelRole role) {
  return role == KernelRole::kReduction || role == KernelRole::kReductionByProgram;
}

/// Registers a kernel under a name that is part of the executable format ("popops.reduce").
/// A second registration of a name throws.
class KernelRegistry {
 public:
  static KernelRegistry& instance();
  void add(std::string name, KernelFactory factory, KernelCheck check, KernelRole role);
  /// Throws for an unknown name. The step must be one that `check` accepted.
  std::unique_ptr<Kernel> make(const StepDesc& step) const;
  /// Throws if the step does not meet the needs that its kernel declares.
  void check(StepCheck& step) const;
  std::vector<std::string> names() const;
  /// The role of a kernel by name; kOther for an unknown name.
  KernelRole roleOf(const std::string& kernel) const;

 private:
  struct Entry {
    KernelFactory make;
    KernelCheck check;
    KernelRole role;
  };
  KernelRegistry() = default;
  const Entry& find(const std::string& kernel) const;

  std::map<std::string, Entry> entries_;
};

/// At namespace scope: `const RegisterKernel kReduce{"popops.reduce", makeReduce, checkReduce};`
struct RegisterKernel {
  RegisterKernel(const char* name, KernelFactory factory, KernelCheck check,
                 KernelRole role = KernelRole::kOther) {
    KernelRegistry::instance().add(name, factory, check, role);
  }
};

inline KernelRole roleOf(const StepDesc& step) {
  return KernelRegistry::instance().roleOf(step.kernel);
}

/// The factory of a kernel that is constructed from its step alone.
template <class K>
std::unique_ptr<Kernel> makeKernel(const StepDesc& step) {
  return std::make_unique<K>(step);
}

/// Wraps a lambda `void(RunContext&, std::span<std::byte* const>)` as a kernel.
template <typename F>
std::unique_ptr<Kernel> kernelOf(F f) {
  struct Lambda final : Kernel {
    explicit Lambda(F g) : fn(std::move(g)) {}
    void run(RunContext& context, std::span<std::byte* const> pointers) const override {
      fn(context, pointers);
    }
    F fn;
  };
  return std::make_unique<Lambda>(std::move(f));
}

}  // namespace ipujax::engine
