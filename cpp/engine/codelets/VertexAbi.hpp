#pragma once
#include <cstdint>

/// What a compiled library of codelets tells the model: plain structures, the same on both sides.
extern "C" {

/// The workers of a tile, of all machines (Machine.cpp): each calls compute() of a MultiVertex.
constexpr unsigned kIpujaxWorkers = 6;

enum IpujaxFieldKind : std::uint32_t {
  kIpujaxValue,          ///< a number: `element` in place
  kIpujaxScalarEdge,     ///< element*
  kIpujaxVectorEdge,     ///< element*, size_t
  kIpujaxListOfVectors,  ///< {element*, size_t}*, size_t
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
};

struct IpujaxCodelet {
  const char* name;
  std::uint32_t bytes;
  std::uint32_t is_multi;
  std::uint32_t num_fields;
  const IpujaxField* fields;
  void (*construct)(void*);                ///< sets default member initialisers
  int (*compute)(void*, unsigned worker);  ///< 0: the codelet returned false
};
}
