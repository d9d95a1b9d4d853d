#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/RunSeeds.hpp"
#include "support/Signature.hpp"

namespace ipujax::runtime {

class HostCallbacks;

/// What running programs keep on one device between runs: each backend has its own kind.
class DeviceState {
 public:
  virtual ~DeviceState() = default;
};
using DeviceStates = std::vector<std::shared_ptr<DeviceState>>;

/// What a caller brings for one replica: row-major host arrays, 64-byte aligned, that outlive the
/// run. An aliased output may be the same pointer as its input (updated in place) or a different
/// one (the input is then left untouched).
struct Arrays {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  /// For sessions that tell contents: of each array a number that stands for its elements, and for
  /// no others in this process; of an output, for those that it has once the run has ended well.
  std::span<const std::uint64_t> input_contents{};
  std::span<const std::uint64_t> output_contents{};
};

/// A program made ready to run on its devices. Holding it takes no lock; the caller guarantees
/// that sessions that share a DeviceState do not run at one time.
class Session {
 public:
  virtual ~Session() = default;
  /// One element for each replica. Throws what a step or a callback throws. `seed`: of programs
  /// that take one, see Signature.
  virtual void run(std::span<const Arrays> replicas, HostCallbacks* callbacks,
                   const RunSeed& seed) = 0;
  /// Whether runs want the numbers of the arrays' contents.
  virtual bool tellsContents() const { return false; }
  /// Set from any thread: the run in progress ends early where it can, and throws.
  virtual void cancel() = 0;
  /// Between runs: forgets a cancellation that came when the last one had just ended.
  virtual void forgetCancel() = 0;
};

/// Bytes of memory that a program takes on one device.
struct ProgramBytes {
  std::uint64_t code = 0;
  std::uint64_t always_live = 0;  ///< parameters, results, constants
  std::uint64_t peak_live = 0;
  std::uint64_t streaming_temporary = 0;  ///< of the host's memory, in remote buffers
};

/// One op of a run, for a trace. Names are valid as long as the program.
struct OpTime {
  std::string_view name;
  std::string_view source;  ///< "train.py:31", or empty
  std::int64_t offset_picoseconds = 0;
  std::int64_t picoseconds = 0;
  double cycles = 0;
};

/// A compiled program. Immutable but for what runs counted; shared by sessions.
class Program {
 public:
  virtual ~Program() = default;
  virtual const Signature& signature() const = 0;
  /// The module as MLIR bytecode or text, for as_text().
  virtual const std::string& text() const = 0;
  virtual const std::string& fingerprint() const = 0;
  /// Sealed bytes that `openProgram` takes, for these devices, which are of this kind.
  virtual std::string serialise(std::vector<std::int32_t> device_ids, std::string target) const = 0;

  /// By name, with what runs have counted by now; empty where nothing is known.
  virtual std::map<std::string, float> costs() const { return {}; }
  virtual ProgramBytes bytes() const { return {}; }
  /// Small enough to run in the caller before it was ever timed.
  virtual bool looksShort() const { return false; }
  /// The ops of one run in order, and how long the run takes on the devices' clock; empty and 0
  /// where nothing is known.
  virtual std::vector<OpTime> ops() const { return {}; }
  virtual double cycles() const { return 0; }
  virtual double clockHz() const { return 0; }

  /// One device for each replica.
  virtual std::unique_ptr<Session> open(const DeviceStates& devices) const = 0;
  /// For a run inside a host callback of another program, which holds the devices. Throws
  /// NotSupportedError where devices run one program at a time.
  virtual std::unique_ptr<Session> openNested() const = 0;
  virtual bool nests() const { return true; }  ///< whether openNested gives a session
};

}  // namespace ipujax::runtime
