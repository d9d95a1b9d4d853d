#include "engine/loop/LoopStretch.hpp"

#include <algorithm>
#include <cstring>

namespace ipujax::engine::loop {
namespace {

using expr::ExprEvaluator;

constexpr std::size_t kIndexBytes = 64;

std::vector<bool> unchanging(const LoopBody& loop, std::size_t num_inputs) {
  std::vector<bool> uniform(num_inputs, false);
  for (std::size_t c = 0; c < loop.cells.size(); ++c)
    uniform[c] = loop.cells[c].isOne() && !loop.cells[c].written;
  return uniform;
}

}  // namespace

Stretch::Stretch(const LoopBody& loop, LoopProgram program, const CellPlaces& cells, Layout& layout)
    : width_(loop.width),
      asks_(program.asks),
      main_(program.main, unchanging(loop, program.main.numInputs()), true),
      num_inputs_(program.main.numInputs()),
      num_indices_(program.indices.numOutputs()) {
  main_scratch_ = layout.take(main_.scratchBytes());
  if (num_indices_ > 0) {
    const auto& indices = program.indices;
    indices_ =
        std::make_unique<ExprEvaluator>(indices, unchanging(loop, indices.numInputs()), true);
    indices_scratch_ = layout.take(indices_->scratchBytes());
    indices_at_ = layout.take(num_indices_ * (kIndexBytes + ExprEvaluator::kPadding));
  }
  go_at_ = layout.take(static_cast<std::size_t>(width_) + ExprEvaluator::kPadding);
  loads_ = rowsOf(loop, program.loads, layout);
  stores_ = rowsOf(loop, program.stores, layout);
  tableOf(loop, cells);
  table_at_ = layout.take(table_.size() * sizeof(std::byte*));
  arrays_at_ = layout.take((loads_.size() + stores_.size()) * sizeof(std::byte*));
}

std::vector<Stretch::Row> Stretch::rowsOf(const LoopBody& loop,
                                          const std::vector<LoopProgram::Row>& rows,
                                          Layout& layout) const {
  std::vector<Row> result;
  for (const auto& row : rows) {
    const Action& action = *row.action;
    Row r;
    r.windows = action.windows.get();
    r.step = action.step;
    r.index_at = indices_at_ + row.index * (kIndexBytes + ExprEvaluator::kPadding);
    r.bytes = sizeOf(loop.cells[action.row()].type) * static_cast<std::size_t>(action.row_elements);
    r.copies = static_cast<std::size_t>(width_ / action.row_elements);
    r.row_at = layout.take(r.bytes * r.copies + ExprEvaluator::kPadding);
    result.push_back(r);
  }
  return result;
}

/// For each bank the inputs, then the outputs; last the outputs of the indices.
void Stretch::tableOf(const LoopBody& loop, const CellPlaces& cells) {
  for (int bank = 0; bank < 2; ++bank) {
    for (std::size_t c = 0; c < loop.cells.size(); ++c) table_.push_back(cells.at[bank][c]);
    for (const Row& row : loads_) table_.push_back(row.row_at);
    table_.resize(static_cast<std::size_t>(bank) * (num_inputs_ + num_outputs_) + num_inputs_);
    for (std::size_t c = 0; c < loop.cells.size(); ++c)
      if (loop.cells[c].written) table_.push_back(cells.at[1 - bank][c]);
    if (asks_) table_.push_back(go_at_);
    for (const Row& row : stores_) table_.push_back(row.row_at);
    if (bank == 0) num_outputs_ = table_.size() - num_inputs_;
  }
  for (std::size_t i = 0; i < num_indices_; ++i)
    table_.push_back(indices_at_ + i * (kIndexBytes + ExprEvaluator::kPadding));
}

void Stretch::begin(const ReplicaBindings& bindings, std::byte* block) const {
  auto** pointers = reinterpret_cast<std::byte**>(block + table_at_);
  for (std::size_t i = 0; i < table_.size(); ++i) pointers[i] = block + table_[i];
  main_.prepare(pointers, block + main_scratch_);
  if (indices_) indices_->prepare(pointers, block + indices_scratch_);
  auto** array = reinterpret_cast<std::byte**>(block + arrays_at_);
  for (const auto* rows : {&loads_, &stores_})
    for (const Row& row : *rows) *array++ = bindings.operands(row.step)[0];
}

bool Stretch::run(std::byte* block, int bank) const {
  auto** const pointers = reinterpret_cast<std::byte**>(block + table_at_);
  const std::size_t each = num_inputs_ + num_outputs_;
  auto** const inputs = pointers + static_cast<std::size_t>(bank) * each;
  auto** array = reinterpret_cast<std::byte**>(block + arrays_at_);
  if (indices_) indices_->runBlock(inputs, pointers + 2 * each, 1, block + indices_scratch_);
  for (const Row& row : loads_) {
    const std::byte* array_at = *array++;
    row.windows->forFirst(block + row.index_at, [&](std::int64_t at, std::int64_t, std::int64_t) {
      for (std::size_t i = 0; i < row.copies; ++i)
        std::memcpy(block + row.row_at + i * row.bytes, array_at + at, row.bytes);
    });
  }
  main_.runBlock(inputs, inputs + num_inputs_, width_, block + main_scratch_);
  if (asks_ && block[go_at_] == std::byte{0}) return false;
  for (const Row& row : stores_) {
    std::byte* array_at = *array++;
    row.windows->forFirst(block + row.index_at, [&](std::int64_t at, std::int64_t, std::int64_t) {
      std::memcpy(array_at + at, block + row.row_at, row.bytes);
    });
  }
  return true;
}

}  // namespace ipujax::engine::loop
