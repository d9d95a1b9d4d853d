#pragma once
#include <cstddef>
#include <cstdint>

/// What a compiled library of codelets tells the model: plain structures, the same on both sides.
extern "C" {

/// Changes with the structures below and with what codelets' headers mean.
constexpr unsigned kIpujaxCodeletAbi = 7;

/// The workers of a tile, of all machines (Machine.cpp): each calls compute() of a MultiVertex.
constexpr unsigned kIpujaxWorkers = 6;

enum IpujaxFieldKind : std::uint32_t {
  kIpujaxValue,          ///< a number: `element` in place
  kIpujaxScalarEdge,     ///< element*
  kIpujaxVectorEdge,     ///< element*, size_t, and behind them a pointer to metadata if it has any
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
  /// Of edges of vectors of quarters: they point to the format and scale of their tensor.
  std::uint32_t has_metadata;
};

/// Of a vector on an edge: pointers that it takes.
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
  /// Cycles, from sizes and values alone: edges may point nowhere. Null: the codelet has no
  /// estimate.
  std::uint64_t (*estimate)(const void*);
};

/// Called before compute() of a vertex on a tile, for each worker; `seed` is the run's.
using IpujaxEnter = void (*)(void* vertex, std::uint32_t tile, std::uint32_t worker,
                             std::uint64_t seed);

/// The two words of the generator of the worker that this thread runs; null where the codelets use
/// no registers.
using IpujaxRandom = std::uint64_t* (*)();

/// Bytes [begin, end).
struct IpujaxRange {
  const void* begin;
  const void* end;
};

/// Of a library that counts the issue slots of its workers: on this thread.
struct IpujaxCounter {
  /// From 0, on a tile whose clock has `cycles`; more than `limit` slots are an exception.
  void (*begin)(std::uint64_t cycles, std::uint64_t limit);
  std::uint64_t (*slots)();
  /// From now on intrinsics load and store in these alone, which must stay; null: anywhere.
  void (*allow)(const IpujaxRange* ranges, std::size_t count);
};

/// What IpujaxStatics::acquire answers.
enum IpujaxStatic : int { kIpujaxDone, kIpujaxConstruct, kIpujaxWait };

/// What the model gives to a library for static variables in its functions: each has a guard.
struct IpujaxStatics {
  int (*acquire)(void* guard);  ///< an IpujaxStatic: kIpujaxWait where another worker constructs it
  void (*release)(void* guard);  ///< it is constructed
  void (*abort)(void* guard);    ///< its constructor threw
};

/// What the model gives to a library whose workers may wait for one another.
struct IpujaxTurns {
  /// At a block of the codelets' code: the processor's registers, and the frame of its caller.
  /// Returns the number of blocks that pass before the next call.
  std::uint64_t (*poll)(const void* registers, std::size_t bytes, const void* frame);
  /// Runs all workers of a supervisor; 0 where none can run.
  int (*run_all)(void (*worker)(void* context, unsigned number), void* context);
};
}
