#include "engine/loop/ScalarCode.hpp"

#include <algorithm>

#include "engine/Workspace.hpp"

namespace ipujax::engine::loop {

Place ScalarCode::placeAt(const Base& base) {
  auto found = std::ranges::find(bases_, base);
  if (found == bases_.end()) found = bases_.insert(found, base);
  return {static_cast<std::uint32_t>(found - bases_.begin()), 0};
}

Place ScalarCode::operand(std::uint64_t step, std::size_t number) {
  return placeAt({Kind::kOperand, step, number});
}
Place ScalarCode::operands(std::uint64_t step) { return placeAt({Kind::kOperands, step, 0}); }
Place ScalarCode::predicate(std::uint32_t node) { return placeAt({Kind::kPredicate, node, 0}); }
Place ScalarCode::fixed(const void* address) {
  return placeAt({Kind::kFixed, reinterpret_cast<std::uintptr_t>(address), 0});
}

Place ScalarCode::record(std::initializer_list<std::int64_t> values) {
  const std::size_t at = constants_.size();
  constants_.insert(constants_.end(), values);
  return {0, static_cast<std::int64_t>(at * 8)};
}

Place ScalarCode::slot() {
  const auto at = static_cast<std::int64_t>(8 * num_used_slots_++);
  num_slots_ = std::max(num_slots_, num_used_slots_);
  return {1, at};
}

std::size_t ScalarCode::add(Function function, const Operands& operands, std::int64_t immediate) {
  ops_.push_back({function, operands, immediate});
  return ops_.size() - 1;
}

std::byte* ScalarCode::addressOf(const Base& base, const ReplicaBindings& bindings) {
  switch (base.kind) {
    case Kind::kOperand:
      return bindings.operands(base.of)[base.number];
    case Kind::kOperands:
      return const_cast<std::byte*>(
          reinterpret_cast<const std::byte*>(bindings.operands(base.of).data()));
    case Kind::kPredicate:
      return bindings.predicatePlace(static_cast<std::uint32_t>(base.of));
    default:
      return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(base.of));  // NOLINT
  }
}

void ScalarCode::run(LoopRun& run) const {
  Workspace workspace;
  auto** bases = workspace.get<std::byte*>(static_cast<std::int64_t>(bases_.size()));
  // Constants are only read.
  bases[0] = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(constants_.data()));
  bases[1] = workspace.get(static_cast<std::int64_t>(8 * num_slots_));
  for (std::size_t b = 2; b < bases_.size(); ++b) bases[b] = addressOf(bases_[b], run.bindings);
  auto* ops = workspace.get<simd::ScalarOp>(static_cast<std::int64_t>(ops_.size()));
  const auto address = [&](const Place& place) { return bases[place.base] + place.offset; };
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const auto& [a, b, c, out] = ops_[i].operands;
    ops[i] = {ops_[i].function, address(a),   address(b),
              address(c),       address(out), ops_[i].immediate};
  }
  ops[0].function(ops, &run);
}

}  // namespace ipujax::engine::loop
