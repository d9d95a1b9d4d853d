#include "engine/kernels/CopyWindows.hpp"

#include <string>

#include "poplar/exceptions.hpp"

namespace ipujax::engine {
namespace {

void check(bool good, const char* what) {
  if (good) return;
  throw poplar::poplar_error(std::string("[windows] needs ") + what +
                             "; got a step that is not so. Rebuild the program.");
}

bool isIndexType(ElementType type) {
  return type != ElementType::kHalf && type != ElementType::kFloat && type != ElementType::kDouble;
}

}  // namespace

Windows::Windows(const OperandDesc& large, const OperandDesc& indices, const OperandDesc& small,
                 const Attributes& attributes) {
  const auto& window = attributes.integers("window");
  const auto& map = attributes.integers("map");
  const auto& batching = attributes.integers("batching");
  const auto& sizes = attributes.integers("sizes");
  clamp_ = attributes.integer("clamp") != 0;
  index_type_ = indices.type;
  const std::size_t num_batch = batching.size();
  const auto rank = static_cast<std::int64_t>(large.shape.size());
  const auto dimIn = [rank](std::int64_t d) { return d >= 0 && d < rank; };
  check(isIndexType(indices.type), "integer indices");
  check(num_batch <= kMaxRank && indices.shape.size() == num_batch + 1 &&
            small.shape.size() == num_batch + window.size() && sizes.size() == large.shape.size() &&
            indices.shape.back() == static_cast<std::int64_t>(map.size()),
        "canonical shapes");

  const auto large_bytes = static_cast<std::int64_t>(sizeOf(large.type));
  const auto small_bytes = static_cast<std::int64_t>(sizeOf(small.type));
  const auto index_bytes = static_cast<std::int64_t>(sizeOf(indices.type));
  for (std::size_t i = 0; i < num_batch; ++i) {
    const std::int64_t along = batching[i];
    check(small.shape[i] == indices.shape[i] &&
              (along < 0 || (dimIn(along) && large.shape[along] == small.shape[i])),
          "batch dimensions of one extent");
    count_ *= small.shape[i];
    addBatch({small.shape[i], indices.strides[i] * index_bytes,
              along < 0 ? 0 : large.strides[along] * large_bytes, small.strides[i] * small_bytes});
  }
  for (std::size_t i = 0; i < window.size(); ++i) {
    check(dimIn(window[i]) && sizes[window[i]] == small.shape[num_batch + i],
          "a window of the sizes given");
    shape_.push_back(small.shape[num_batch + i]);
    large_strides_.push_back(large.strides[window[i]]);
    small_strides_.push_back(small.strides[num_batch + i]);
    window_elements_ *= shape_.back();
  }
  for (std::size_t i = map.size(); i-- > 0;) {
    check(dimIn(map[i]), "indices of dimensions that exist");
    const std::int64_t limit = large.shape[map[i]] - sizes[map[i]];
    const auto at = static_cast<std::int64_t>(i) * indices.strides[num_batch] * index_bytes;
    indices_.push_back({at, limit, large.strides[map[i]] * large_bytes, num_starts_});
    num_starts_ *= std::max<std::int64_t>(limit + 1, 1);
    if (sizes[map[i]] > 1) disjoint_ = false;
    if (limit < 0) never_ = true;
  }
  if (window_elements_ == 0) never_ = true;
}

// Merges a dimension into the one outside it where all three strides allow it.
void Windows::addBatch(const Batch& batch) {
  if (batch.n == 1) return;
  if (!batch_.empty()) {
    Batch& outer = batch_.back();
    if (outer.index == batch.index * batch.n && outer.large == batch.large * batch.n &&
        outer.small == batch.small * batch.n) {
      outer = {outer.n * batch.n, batch.index, batch.large, batch.small};
      return;
    }
  }
  batch_.push_back(batch);
}

}  // namespace ipujax::engine
