#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/build/Draft.hpp"

namespace ipujax::engine::build {

/// Fills the memory part of a profile from the account: first each variable held in tile memory,
/// then the peak of each IPU with what is live then.
class ProfileFill {
 public:
  explicit ProfileFill(Draft& draft);

  void add(std::uint32_t variable, TilePart part, bool always_live);
  void beginPeak(std::size_t ipu, std::uint32_t tile);
  /// The variable that was added as the `held`th is live at this peak.
  void addLive(std::size_t held);
  /// Adds what each tile of the IPU has at this peak besides variables.
  void addToTiles(const std::function<TileParts(std::size_t)>& parts_of);
  /// Keeps the largest tensors and those of the peaks, and gives live points their nodes.
  void finish();

 private:
  void findShapes();
  void nameNodes();
  void listVertices();
  std::uint32_t& bytesOf(std::size_t category, std::size_t tile);

  Draft& draft_;
  Profile& profile_;
  std::vector<std::uint32_t> variables_;           ///< by tensor
  std::vector<std::vector<std::int64_t>> shapes_;  ///< by variable; empty where none is known
  std::size_t ipu_ = 0;
  std::size_t tiles_per_ipu_ = 0;
};

}  // namespace ipujax::engine::build
