#pragma once
#include <cstddef>
#include <cstdint>

/// Interface of compiled codelet libraries to the model: plain structures, the same on both sides.
extern "C" {

/// Changes with the structures below and with the meaning of codelets' headers.
constexpr unsigned kIpujaxCodeletAbi = 7;

/// Workers per tile, on all machines (Machine.cpp). Each calls compute() of a MultiVertex.
constexpr unsigned kIpujaxWorkers = 6;

enum IpujaxFieldKind : std::uint32_t {
  kIpujaxValue,          ///< a number: `element` in place
  kIpujaxScalarEdge,     ///< element*
  kIpujaxVectorEdge,     ///< element*, size_t, then a pointer to metadata if it has any
  kIpujaxListOfVectors,  ///< {element*, size_t, the same}*, size_t
  kIpujaxListOfScalars,  ///< element**, size_t
  kIpujaxStateVector,    ///< element*, size_t, memory of the vertex
};

enum IpujaxDirection : std::uint32_t { kIpujaxIn, kIpujaxOut, kIpujaxInOut, kIpujaxNone };

struct IpujaxField {
  const char* name;
  std::uint32_t kind;
  std::uint32_t direction;
  std::uint32_t element;  ///< ElementType
  std::uint32_t element_bytes;
  std::uint32_t offset;
  std::uint32_t ipu_bytes;  ///< of the field in a vertex's state on the IPU
  /// Set for vectors of quarters: the edge points to the format and scale of its tensor.
  std::uint32_t has_metadata;
};

/// Bytes of the pointers of a vector on an edge.
inline std::size_t ipujaxVectorBytes(const IpujaxField* field) {
  return (field->has_metadata ? 3 : 2) * sizeof(void*);
}

struct IpujaxCodelet {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t is_multi;
  std::uint32_t num_fields;
  const IpujaxField* fields;
  void (*construct)(void*);                ///< sets default member initialisers
  int (*compute)(void*, unsigned worker);  ///< 0: the codelet returned false
  /// Cycles, computed from sizes and values alone: edges need not point to memory. Null if the
  /// codelet has no estimate.
  std::uint64_t (*estimate)(const void*);
};

/// Called before compute() of a vertex on a tile, for each worker; `seed` is the run's.
using IpujaxEnter = void (*)(void* vertex, std::uint32_t tile, std::uint32_t worker,
                             std::uint64_t seed);

/// The two words of random generator state of this thread's worker; null where the codelets use no
/// registers.
using IpujaxRandom = std::uint64_t* (*)();

/// Bytes [begin, end).
struct IpujaxRange {
  const void* begin;
  const void* end;
};

/// Counter of workers' issue slots in a library, for the calling thread.
struct IpujaxCounter {
  /// Starts from 0 on a tile whose clock reads `cycles`; more than `limit` slots throw.
  void (*begin)(std::uint64_t cycles, std::uint64_t limit);
  std::uint64_t (*slots)();
  /// Limits loads and stores by intrinsics to these ranges, which must stay valid; null: no limit.
  void (*allow)(const IpujaxRange* ranges, std::size_t count);
};

/// Result of IpujaxStatics::acquire.
enum IpujaxStatic : int { kIpujaxDone, kIpujaxConstruct, kIpujaxWait };

/// Functions that the model gives a library to guard the static variables in its functions.
struct IpujaxStatics {
  int (*acquire)(void* guard);  ///< an IpujaxStatic: kIpujaxWait while another worker constructs it
  void (*release)(void* guard);  ///< it is constructed
  void (*abort)(void* guard);    ///< its constructor threw
};

/// Functions that the model gives a library whose workers may wait for one another.
struct IpujaxTurns {
  /// Called at a block of codelet code with the processor's registers and the caller's frame.
  /// Returns the number of blocks to run before the next call.
  std::uint64_t (*poll)(const void* registers, std::size_t bytes, const void* frame);
  /// Runs all workers of a supervisor; returns 0 if none can run.
  int (*run_all)(void (*worker)(void* context, unsigned number), void* context);
};
}
