#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/Allocate.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/image/Image.hpp"

/// How a graph and its programs become an Image: flatten, find live ranges, drop copies, account,
/// fuse, place.
namespace ipujax::engine::build {

/// Memory that the program uses: at first one storage for each variable of the graph, later one for
/// several variables that may share memory. Operands name storages while a Draft is built.
struct Storage {
  std::uint32_t variable = 0;
  std::uint64_t bytes = 0;
  std::int32_t input = -1;   ///< signature input it is bound to
  std::int32_t output = -1;  ///< signature output it is bound to
  bool constant = false;
  bool persistent = false;  ///< keeps its value between runs
};

/// When steps run, as a tree. Positions number the step occurrences of the whole program in order;
/// a predicate has its own position. The node spans [begin, end).
struct Span {
  enum class Kind : std::uint8_t { kLeaf, kSequence, kRepeat, kWhile, kBranches };
  Kind kind = Kind::kSequence;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool runs_at_least_once = true;  ///< of a kRepeat
  std::vector<Span> children;      ///< kWhile: condition with predicate, body
};

enum class AccessKind : std::uint8_t { kRead, kWriteAll, kWriteSome };

struct StorageAccess {
  std::uint32_t position = 0;
  AccessKind kind = AccessKind::kRead;
};

/// A variable of a storage in tile memory, and when it is live. A storage has one for each IPU: if
/// the host drops a copy between IPUs, both sides remain on their tiles.
struct Resident {
  std::uint32_t variable = 0;
  VariableUse use = VariableUse::kTemporary;  ///< the greatest of the variables it stands for
  std::vector<Segment> live;                  ///< sorted
};

struct Occurrence {
  std::int64_t step = -1;  ///< index into the image's steps; -1: a predicate, or no step at all
};

/// The user's options for streams between the host and the tiles.
struct HostOptions {
  unsigned io_tiles = 0;  ///< of each IPU; the graph's target has the rest
  bool overlaps = false;  ///< streams run while the tiles do other work
  unsigned prefetch_depth = 1;
  bool rearranges_on_host = false;
};

struct Draft {
  const GraphImpl* graph = nullptr;
  Image image;
  std::vector<Storage> storages;
  std::vector<Occurrence> occurrences;  ///< by position
  Span root;
  std::vector<std::vector<StorageAccess>> accesses;  ///< by storage, sorted by position
  std::vector<std::vector<Segment>> live;            ///< by storage, sorted
  std::vector<std::uint32_t> merged_into;            ///< by storage; itself if it is not merged
  std::vector<std::vector<Resident>> residents;      ///< by storage; empty: never live
  std::vector<bool> step_removed;
  std::vector<std::uint64_t> step_ipus;  ///< by step: the IPUs that take part, see takesPart

  HostOptions host;
  std::uint64_t inter_ipu_copies_bytes = 1 << 26;  ///< limit of one exchange between IPUs

  std::uint32_t find(std::uint32_t storage) const {
    while (merged_into[storage] != storage) storage = merged_into[storage];
    return storage;
  }
  /// Whether an operand is all of its storage, in order.
  bool isWhole(const OperandDesc& o) const {
    return o.offset == 0 && o.isContiguous() &&
           static_cast<std::uint64_t>(o.numElements()) * sizeOf(o.type) ==
               storages[find(o.buffer)].bytes;
  }
};

/// Whether an IPU is in a set made by ipusOf: IPUs from the 64th on share the last bit. An empty
/// set stands for IPU 0.
inline bool takesPart(std::uint64_t ipus, std::size_t ipu) {
  return (std::max<std::uint64_t>(ipus, 1) >> std::min<std::size_t>(ipu, 63) & 1) != 0;
}

struct FlattenOptions {
  bool bind_streams = true;      ///< host streams become inputs and outputs, in order
  std::vector<bool> persistent;  ///< by variable; may be shorter
  std::int32_t selector = -1;    ///< variable that is bound to input 0
  std::int64_t float_traps = 0;  ///< of all steps, see FloatTraps.hpp
};

void flatten(Draft& draft, GraphImpl& graph, const ProgramNode& root,
             const FlattenOptions& options);
/// Cost of streaming all of a tensor; `asks` marks the first of an exchange with the host. May add
/// a variable to the graph.
Cost hostIoCost(const HostOptions& options, GraphImpl& graph, const ViewPtr& view, bool to_device,
                bool asks);
void findLiveRanges(Draft& draft);
/// Gives each live storage its one resident.
void findResidents(Draft& draft);
void removeCopies(Draft& draft);
/// Lets FIFOs exchange memory with their operands and results instead of copying; after the account
/// is made.
void turnFifos(Draft& draft);
/// Gives every storage its buffer, arena offsets included, and renames operands to buffers.
void placeStorages(Draft& draft);
void accountMemory(Draft& draft);
/// What each tile of an IPU always holds besides variables.
std::vector<TileParts> alwaysThere(const Draft& draft);
/// Gives each IPU its clock: see Image::ipus.
void accountTime(Draft& draft);
/// Runs adjacent steps that work on the same rows together, a few rows at a time; after the account
/// is made.
void fuseRows(Draft& draft);
/// Runs elementwise steps inside the reductions that are their only readers; after the account is
/// made.
void fuseReductions(Draft& draft);
/// Lets steps write where their results would only be copied to; after the account is made.
void makePieces(Draft& draft);

}  // namespace ipujax::engine::build
