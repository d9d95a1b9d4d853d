#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/Mechanisms.hpp"
#include "engine/TileParts.hpp"
#include "engine/image/Profile.hpp"
#include "engine/image/Step.hpp"
#include "support/Signature.hpp"

namespace ipujax::engine {

using runtime::kMemoryKindNames;
using runtime::MemoryKind;
using runtime::memoryKindByName;
using runtime::nameOf;
using runtime::Signature;
using runtime::TensorSpec;
using ImageError = runtime::ExecutableError;

enum class BufferKind : std::uint8_t {
  kArena,        ///< at `offset` of the session's arena
  kConstant,     ///< at `offset` of the image's constants, never written
  kInput,        ///< the caller's input `input`, never written
  kOutput,       ///< the caller's output `output`
  kInputOutput,  ///< starts as input `input`, ends as output `output`
};

struct BufferDesc {
  BufferKind kind = BufferKind::kArena;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  std::uint32_t input = 0;
  std::uint32_t output = 0;
};

enum class NodeKind : std::uint8_t {
  kSequence,     ///< children in order; its name is debug[value - 1], none if `value` is 0
  kStep,         ///< steps[value]
  kRepeat,       ///< child 0, `value` times
  kRepeatWhile,  ///< child 0 = condition, then predicate, child 1 = body; `value` = 1 while true
  kIf,           ///< predicate; child 0 = then, child 1 = else
  kSwitch,       ///< predicate = selector; cases in `selectors`; last child = default
  kError,        ///< predicate (optional): throw debug's text when it is true
};

/// The program tree, flattened: node 0 is the root, children are indices.
struct Node {
  NodeKind kind = NodeKind::kSequence;
  std::uint64_t value = 0;
  std::vector<std::uint32_t> children;
  std::vector<std::int64_t> selectors;
  OperandDesc predicate;
};

struct DebugEntry {
  std::string name;    ///< "jit(f)/dot_general"
  std::string source;  ///< "train.py:31", or empty
};

/// Size and placement of a tensor on the tiles, for the memory account.
struct TensorAccount {
  std::uint32_t debug = 0;
  std::uint32_t count = 1;  ///< tensors of one name, source line and size
  std::uint64_t bytes = 0;
  std::uint64_t worst_tile_bytes = 0;
};

/// The memory account of the whole program, in bytes of tile memory.
struct MemoryAccount {
  std::uint64_t tile_capacity = 0;
  std::uint32_t worst_tile = 0;
  std::uint64_t worst_tile_bytes = 0;   ///< peak over the program, everything counted
  std::uint64_t always_live_bytes = 0;  ///< all tiles: parameters, results, constants
  std::uint64_t peak_live_bytes = 0;    ///< all tiles: most that is live at one time
  std::uint64_t vertex_state_bytes = 0;
  std::uint64_t code_bytes = 0;  ///< most that is on one tile
  std::uint64_t code_capacity = 0;
  std::vector<TensorAccount> largest;  ///< at the peak, on the worst tile, largest first
  bool codeFits() const { return code_bytes <= code_capacity; }
  bool fits() const { return worst_tile_bytes <= tile_capacity && codeFits(); }
};

/// The host's memory ("streaming memory") that remote buffers take, in bytes for one device.
struct StreamingAccount {
  std::uint64_t capacity = 0;
  std::uint64_t bytes = 0;            ///< all remote buffers
  std::uint64_t temporary_bytes = 0;  ///< those that are neither a parameter nor a result
  bool fits() const { return bytes <= capacity; }
};

/// How one IPU of a device spends a run, in cycles.
struct IpuAccount {
  double compute_cycles = 0;
  double exchange_cycles = 0;   ///< on the chip, syncs included
  double link_cycles = 0;       ///< copies from and to other IPUs
  double host_cycles = 0;       ///< copies from and to streaming memory
  double io_cycles = 0;         ///< streams and callbacks that the tiles wait for
  double hidden_io_cycles = 0;  ///< streams that run while the tiles do other work
  double idle_cycles = 0;       ///< while others work, or before a copy that both take part in
  std::uint64_t worst_tile_bytes = 0;  ///< as in MemoryAccount, for the tiles of this IPU
  TileParts worst_tile;                ///< the same bytes, by their use
  double cycles() const {
    return compute_cycles + exchange_cycles + link_cycles + host_cycles + io_cycles + idle_cycles;
  }
};

/// A host stream that was not bound to an input or output.
struct StreamSpec {
  std::string handle;
  std::uint64_t bytes = 0;  ///< moved by one copy in one replica
  bool to_device = true;
  bool broadcasts = false;  ///< all replicas read the same blocks; else each has its own stream
  std::uint32_t parts = 1;  ///< replicas within one: a block has the parts of all of them
};

/// A compiled program: flat, immutable, serialisable, free of Python. Shared by sessions.
struct Image {
  Signature signature;
  std::vector<BufferDesc> buffers;
  std::vector<StepDesc> steps;
  std::vector<Node> nodes;
  std::vector<DebugEntry> debug;
  std::vector<StreamSpec> streams;
  std::vector<std::string> entry_points;  ///< cases of a root Switch over input 0, if any
  std::uint64_t arena_bytes = 0;
  std::vector<std::byte> constants;
  MemoryAccount memory;
  std::vector<IpuAccount> ipus;  ///< one for each IPU of a device
  double clock_hz = 0;
  std::uint32_t num_tiles = 0;
  double cycles_without_host = 0;  ///< from beginning to end if streams and callbacks took no time
  /// Iterations that the account assumes for loops whose count only a run knows.
  std::uint64_t assumed_trip_count = 1;
  Mechanisms mechanisms;  ///< what the build did, and what a session may do
  std::string stablehlo;  ///< the module as MLIR bytecode or text, for as_text()
  std::string fingerprint;
  StreamingAccount streaming;
  std::optional<Profile> profile;  ///< if requested from the build

  /// From the beginning to the end of a run: steps of different IPUs run at the same time.
  double elapsedCycles() const;
  /// The account of one run: the sum over the steps, loops multiplied by their counts. This and
  /// the next two are in account/ImageCost.cpp.
  Cost cost() const;
  /// The same for one run of a node of the tree and all below it.
  Cost costOf(std::uint32_t node) const;
  /// Loops whose count only a run knows, and the sum of the cycles of one iteration of each.
  struct UnknownLoops {
    std::uint64_t count = 0;
    double iteration_cycles = 0;
  };
  UnknownLoops unknownLoops() const;

  /// Sealed bytes: magic, format and ipujax version, checksum, contents. This and the next two are
  /// in verify/ImageFile.cpp.
  std::string serialise() const;
  /// Contents as `serialise` writes them, with a seal that fits, for callers that alter them.
  static std::string seal(const std::string& contents);
  /// Throws ImageError (cut short, altered, another version) and never reads out of bounds.
  static std::shared_ptr<const Image> deserialise(std::span<const std::byte> bytes);
};

}  // namespace ipujax::engine
