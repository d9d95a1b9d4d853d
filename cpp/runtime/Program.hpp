#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/Peers.hpp"
#include "support/RunSeeds.hpp"
#include "support/Signature.hpp"

namespace ipujax::runtime {

class HostCallbacks;

/// What programs keep on one device between runs; each backend derives its own.
class DeviceState {
 public:
  virtual ~DeviceState() = default;
};
using DeviceStates = std::vector<std::shared_ptr<DeviceState>>;

/// The caller's arrays for one replica: row-major host arrays, 64-byte aligned, that outlive the
/// run. An aliased output may be the same pointer as its input (updated in place) or a different
/// one (the input is then left untouched).
struct Arrays {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  /// For sessions that tell contents: a number that identifies each array's elements and no others
  /// in this process; for an output, the elements that it has after a successful run.
  std::span<const std::uint64_t> input_contents{};
  std::span<const std::uint64_t> output_contents{};
};

/// A program made ready to run on its devices. Holding it takes no lock; the caller guarantees
/// that sessions that share a DeviceState do not run at the same time.
class Session {
 public:
  virtual ~Session() = default;
  /// `replicas` has one element for each replica in this process. Rethrows exceptions of steps and
  /// callbacks. `seed` is for programs that take one; see Signature.
  virtual void run(std::span<const Arrays> replicas, HostCallbacks* callbacks,
                   const RunSeed& seed) = 0;
  /// Whether runs need the numbers of the arrays' contents.
  virtual bool tellsContents() const { return false; }
  /// Any thread may call this: the run in progress ends early if it can, and throws.
  virtual void cancel() = 0;
  /// Called between runs: forgets a cancellation that came just after the last run ended.
  virtual void forgetCancel() = 0;
};

/// Memory that a program uses on one device, in bytes.
struct ProgramBytes {
  std::uint64_t code = 0;
  std::uint64_t always_live = 0;  ///< parameters, results, constants
  std::uint64_t peak_live = 0;
  std::uint64_t streaming_temporary = 0;  ///< host memory, in remote buffers
};

/// One op of a run, for a trace. Names are valid as long as the program.
struct OpTime {
  std::string_view name;
  std::string_view source;  ///< "train.py:31", or empty
  std::int64_t offset_picoseconds = 0;
  std::int64_t picoseconds = 0;
  double cycles = 0;
};

/// A compiled program. Immutable except for the counts of its runs; shared by sessions.
class Program {
 public:
  virtual ~Program() = default;
  virtual const Signature& signature() const = 0;
  /// The module as MLIR bytecode or text, for as_text().
  virtual const std::string& text() const = 0;
  virtual const std::string& fingerprint() const = 0;
  /// Identifies what the program computes: the same in all processes that compiled it, wherever
  /// their source files lie.
  virtual std::uint64_t meaning() const = 0;
  /// Returns sealed bytes for `openProgram`. `target` describes the devices.
  virtual std::string serialise(std::vector<std::int32_t> device_ids, std::string target) const = 0;

  /// Costs by name, with the counts of all runs so far; empty if unknown.
  virtual std::map<std::string, float> costs() const { return {}; }
  virtual ProgramBytes bytes() const { return {}; }
  /// Whether it is small enough to run in the caller before it was ever timed.
  virtual bool looksShort() const { return false; }
  /// The ops of one run in order, and how long the run takes on the devices' clock; empty and 0 if
  /// unknown.
  virtual std::vector<OpTime> ops() const { return {}; }
  virtual double cycles() const { return 0; }
  virtual double clockHz() const { return 0; }

  /// `devices` has one element for each replica in this process, in the order of their numbers;
  /// `peers` is null where that is all replicas.
  virtual std::unique_ptr<Session> open(const DeviceStates& devices,
                                        std::shared_ptr<Peers> peers) const = 0;
  /// For a run inside a host callback of another program, which holds the devices. Throws
  /// NotSupportedError if devices run only one program at a time.
  virtual std::unique_ptr<Session> openNested() const = 0;
  virtual bool nests() const { return true; }  ///< whether openNested gives a session
};

}  // namespace ipujax::runtime
