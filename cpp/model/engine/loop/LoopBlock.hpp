#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/code/Encoder.hpp"
#include "engine/code/Strip.hpp"
#include "engine/code/StripPlacement.hpp"
#include "engine/loop/CodeOp.hpp"

namespace ipujax::engine::loop {

using Key = std::pair<std::uint32_t, std::int64_t>;
inline Key keyOf(const Place& place) { return {place.base, place.offset}; }

/// Consecutive operations on values of 32 bits and bools, as a program. Memory of its steps is
/// numbered by `places`.
struct Block {
  code::StripProgram program;
  std::vector<Place> places;
  std::set<Key> reads;  ///< before it writes them
};

/// Writes a block; lives for one.
class BlockWriter {
 public:
  /// `wanted`: slots that other blocks or operations read; null: all.
  BlockWriter(std::vector<std::int64_t>& constants, const std::set<Key>* wanted)
      : constants_(constants), wanted_(wanted) {}

  /// False if the operation cannot be part of a block.
  bool add(const CodeOp& op);
  Block take();

 private:
  using Value = code::StripBuilder::Value;
  struct Known {
    Value value;
    bool is_mask;
  };
  struct Pending {
    Place place;
    bool is_mask;
    Value value;
  };
  std::optional<std::uint32_t> constantAt(const Place& place) const;
  bool copy(const CodeOp& op);
  std::uint32_t numberOf(const Place& place);
  Value valueAt(const Place& place, bool is_mask);
  void addStore(const Pending& pending);
  void flush(const Place& place);
  void write(const Place& place, bool is_mask, Value value);
  code::StripProgram withoutNumbers(code::StripProgram program);

  std::vector<std::int64_t>& constants_;
  const std::set<Key>* wanted_;
  code::StripBuilder builder_;
  std::map<Key, Known> known_;
  std::vector<Pending> pending_;
  Block block_;
};

/// Gives the address of a place, by way of this register if its base has none.
using AddressOf = std::function<code::Address(const Place&, code::Gpr)>;
/// Code that runs a block once.
void emitBlock(code::Encoder& out, const Block& block, const code::StripPlacement& at,
               const AddressOf& address_of);

}  // namespace ipujax::engine::loop
