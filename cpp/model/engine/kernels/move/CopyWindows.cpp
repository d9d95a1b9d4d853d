#include "engine/kernels/move/CopyWindows.hpp"

#include <algorithm>
#include <string>

#include "engine/Errors.hpp"
#include "engine/LoopNest.hpp"

namespace ipujax::engine {

void Windows::fail(std::int64_t start, std::int64_t limit) {
  throw application_runtime_error("[Copy] needs offsets from 0 to " + std::to_string(limit) +
                                  ", of the entries that the remote buffer has; got " +
                                  std::to_string(start) + ". Check what the offset is made of.");
}

Outside Windows::check(const StepCheck& step, const OperandCheck& large,
                       const OperandCheck& indices, const OperandCheck& small) {
  step.integer("clamp", 0, 3);
  const auto& window = step.dimensions("window", large.rank());
  const auto& map = step.dimensions("map", large.rank());
  const auto& batching = step.integers("batching");
  const auto& sizes = step.integers("sizes", large->shape.size());
  const std::size_t num_batch = batching.size();
  step.need(indices->type < ElementType::kHalf, "integer indices");
  indices.hasRank(static_cast<std::int64_t>(num_batch) + 1);
  small.hasRank(static_cast<std::int64_t>(num_batch + window.size()));
  step.need(indices->shape.back() == static_cast<std::int64_t>(map.size()),
            "one index for each mapped dimension");
  // A dimension outside the window is one element wide; one that neither a batch nor an index moves
  // along must hold the window as it is.
  std::vector<std::int64_t> most(large->shape.size(), 1);
  std::vector<bool> moved(large->shape.size(), false);
  for (std::size_t w = 0; w < window.size(); ++w) {
    const auto d = static_cast<std::size_t>(window[w]);
    most[d] = small->shape[num_batch + w];
    step.need(sizes[d] == most[d], "a window of the sizes given");
  }
  for (const std::int64_t d : map) moved[static_cast<std::size_t>(d)] = true;
  for (std::size_t i = 0; i < num_batch; ++i) {
    step.need(small->shape[i] == indices->shape[i], "batch dimensions of one extent");
    if (batching[i] < 0) continue;
    step.need(batching[i] < large.rank(), "batch dimensions that exist");
    const auto d = static_cast<std::size_t>(batching[i]);
    step.need(large->shape[d] == small->shape[i] && sizes[d] == 1 && !moved[d],
              "batch dimensions that only the batch moves along");
    moved[d] = true;
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    step.need(sizes[d] == most[d] || sizes[d] == 0,
              "windows of one element outside their dimensions");
    step.need(moved[d] || sizes[d] <= large->shape[d], "a window that fits the array");
  }
  return outsideOf(step.step().attributes);
}

Windows::Windows(const OperandDesc& large, const OperandDesc& indices, const OperandDesc& small,
                 const Attributes& attributes) {
  const auto& window = attributes.integers("window");
  const auto& map = attributes.integers("map");
  const auto& batching = attributes.integers("batching");
  const auto& sizes = attributes.integers("sizes");
  outside_ = outsideOf(attributes);
  index_type_ = indices.type;
  const std::size_t num_batch = batching.size();
  const auto large_bytes = static_cast<std::int64_t>(sizeOf(large.type));
  const auto small_bytes = static_cast<std::int64_t>(sizeOf(small.type));
  const auto index_bytes = static_cast<std::int64_t>(sizeOf(indices.type));
  for (std::size_t i = 0; i < num_batch; ++i) {
    const std::int64_t along = batching[i];
    count_ *= small.shape[i];
    const Batch batch{small.shape[i], indices.strides[i] * index_bytes,
                      along < 0 ? 0 : large.strides[along] * large_bytes,
                      small.strides[i] * small_bytes};
    appendLoop<&Batch::n, &Batch::index, &Batch::large, &Batch::small>(batch_, batch);
  }
  for (std::size_t i = 0; i < window.size(); ++i) {
    shape_.push_back(small.shape[num_batch + i]);
    large_strides_.push_back(large.strides[window[i]]);
    small_strides_.push_back(small.strides[num_batch + i]);
    window_elements_ *= shape_.back();
  }
  for (std::size_t i = map.size(); i-- > 0;) {
    const std::int64_t limit = large.shape[map[i]] - sizes[map[i]];
    const auto at = static_cast<std::int64_t>(i) * indices.strides[num_batch] * index_bytes;
    indices_.push_back({at, limit, large.strides[map[i]] * large_bytes, num_starts_});
    num_starts_ *= std::max<std::int64_t>(limit + 1, 1);
    if (sizes[map[i]] > 1) disjoint_ = false;
    if (limit < 0) never_ = true;
  }
  if (std::ranges::find(sizes, 0) != sizes.end()) never_ = true;
}

}  // namespace ipujax::engine
