#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/simd/ScalarOps.hpp"

/// The operations of loops on single elements: what they do, and to which memory.
namespace ipujax::engine::loop {

/// A byte whose address only a run knows.
struct Place {
  std::uint32_t base = 0;
  std::int64_t offset = 0;  ///< bytes
  Place at(std::int64_t bytes) const { return {base, offset + bytes}; }
  friend bool operator==(const Place&, const Place&) = default;
};

struct CodeOperands {
  Place a{}, b{}, c{}, out{};
};

/// What an operation does, for machine code (LoopCode.hpp).
struct Meaning {
  enum class Kind : std::uint8_t {
    kCall,  ///< whatever its function does
    kEnd,
    kRepeat,
    kRepeatWhile,
    kBranch,
    kChoose,
    kCopy,         ///< of `bytes`
    kValue,        ///< the operation of `key`
    kLoadElement,  ///< of `bytes`, by an index of `index`
    kLocate,       ///< clamped; b holds the address if `from_address`
    kLoadAt,
    kStoreAt,
  };
  Kind kind = Kind::kCall;
  std::size_t bytes = 0;
  simd::MapKey key{};
  ElementType index = ElementType::kInt32;
  bool from_address = false;
};

struct CodeOp {
  simd::ScalarOp::Function function;
  CodeOperands operands;
  std::int64_t immediate;
  Meaning meaning;
};

}  // namespace ipujax::engine::loop
