#include "engine/loop/ScalarCode.hpp"

#include <algorithm>

#include "engine/Workspace.hpp"
#include "engine/loop/LoopCode.hpp"
#include "engine/loop/ScalarControl.hpp"

namespace ipujax::engine::loop {

Place ScalarCode::placeAt(const Base& base) {
  const auto isIt = [&](const Base& b) { return b.kind == base.kind && b.of == base.of; };
  auto found = std::ranges::find_if(bases_, isIt);
  if (found == bases_.end()) found = bases_.insert(found, base);
  return {static_cast<std::uint32_t>(found - bases_.begin()), 0};
}

Place ScalarCode::operand(std::uint64_t step, std::size_t number) {
  const OperandDesc& operand = image_->steps[step].operands[number];
  const std::int64_t before = operand.offset * static_cast<std::int64_t>(sizeOf(operand.type));
  return placeAt({Kind::kOperand, operand.buffer, step, number, before}).at(before);
}
Place ScalarCode::operands(std::uint64_t step) { return placeAt({Kind::kOperands, step}); }
Place ScalarCode::predicate(std::uint32_t node) { return placeAt({Kind::kPredicate, node}); }
Place ScalarCode::fixed(const void* address) {
  return placeAt({Kind::kFixed, reinterpret_cast<std::uintptr_t>(address)});
}

Place ScalarCode::record(std::span<const std::int64_t> values) {
  const std::size_t at = constants_.size();
  constants_.insert(constants_.end(), values.begin(), values.end());
  return {0, static_cast<std::int64_t>(at * 8)};
}

Place ScalarCode::slot() {
  const auto at = static_cast<std::int64_t>(8 * num_used_slots_++);
  num_slots_ = std::max(num_slots_, num_used_slots_);
  return {1, at};
}

std::size_t ScalarCode::add(Function function, const Operands& operands, std::int64_t immediate,
                            const Meaning& meaning) {
  for (auto& held : held_) held.reset();
  ops_.push_back({function, operands, immediate, meaning});
  return ops_.size() - 1;
}

void ScalarCode::addCopy(const Place& a, const Place& out, std::size_t bytes) {
  forget(out, static_cast<std::int64_t>(bytes));
  ops_.push_back({scalar::copyOf(bytes),
                  {.a = a, .out = out},
                  static_cast<std::int64_t>(bytes),
                  {.kind = Meaning::Kind::kCopy, .bytes = bytes}});
}

void ScalarCode::addValue(const simd::MapKey& key, const Operands& operands) {
  const bool is_select = key.op == expr::Op::kSelect;
  unsigned held = isHeld(key.operand, operands.a) ? 1u : 0u;
  if (expr::numOperands(key.op) > 1 && isHeld(key.operand, operands.b)) held |= 2u;
  const ElementType third = is_select ? ElementType::kBool : key.operand;
  if (expr::numOperands(key.op) > 2 && isHeld(third, operands.c)) held |= 4u;
  Function function = simd::findScalar(key, held);
  if (!function) function = simd::findScalar(key);
  setHeld(key.result, operands.out);
  ops_.push_back({function, operands, 0, {.kind = Meaning::Kind::kValue, .key = key}});
}

void ScalarCode::setHeld(ElementType type, const Place& place) {
  forget(place, static_cast<std::int64_t>(sizeOf(simd::blockType(type))));
  held_[simd::isHeldAsNumber(type)] = place;
}

void ScalarCode::forget(const Place& place, std::int64_t bytes) {
  for (auto& held : held_)
    if (held && held->base == place.base && held->offset < place.offset + bytes &&
        place.offset < held->offset + 8)
      held.reset();
}

std::byte* ScalarCode::addressOf(const Base& base, const ReplicaBindings& bindings) {
  switch (base.kind) {
    case Kind::kOperand:
      return bindings.operands(base.step)[base.number] - base.before;
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
  code_.code ? runCode(run, bases) : runFunctions(run, bases);
}

namespace {

simd::ScalarOp withAddresses(const CodeOp& op, std::byte* const* bases) {
  const auto address = [&](const Place& place) { return bases[place.base] + place.offset; };
  const auto& [a, b, c, out] = op.operands;
  return {op.function, address(a), address(b), address(c), address(out), op.immediate};
}

}  // namespace

void ScalarCode::runFunctions(LoopRun& run, std::byte* const* bases) const {
  Workspace workspace;
  auto* ops = workspace.get<simd::ScalarOp>(static_cast<std::int64_t>(ops_.size()));
  for (std::size_t i = 0; i < ops_.size(); ++i) ops[i] = withAddresses(ops_[i], bases);
  ops[0].function(ops, &run, 0, 0.0f);
}

void ScalarCode::runCode(LoopRun& run, std::byte* const* bases) const {
  Workspace workspace;
  auto* ops = workspace.get<simd::ScalarOp>(static_cast<std::int64_t>(2 * code_.called.size()));
  for (std::size_t i = 0; i < code_.called.size(); ++i) {
    const CodeOp& op = ops_[code_.called[i]];
    ops[2 * i] = withAddresses(op, bases);
    // Not the one that takes operands from registers.
    if (op.meaning.kind == Meaning::Kind::kValue)
      ops[2 * i].function = simd::findScalar(op.meaning.key);
    ops[2 * i + 1] = {.function = scalar::end};
  }
  LoopState state{&run, ops, &run.cancelled, nullptr};
  code_.code->run(bases, &state);
  if (state.error) std::rethrow_exception(state.error);
}

void ScalarCode::finish() { code_ = loopCode(ops_, constants_); }

}  // namespace ipujax::engine::loop
