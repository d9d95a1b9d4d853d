#include "backends/poplar/KeptArguments.hpp"

namespace ipujax::poplar_backend {

void KeptArguments::choose(std::span<const runtime::Arrays> replicas) {
  const auto& kept = container_.kept_inputs;
  fresh_.assign(kept.size(), held_.empty() ? 1 : 0);
  for (std::size_t r = 0; r < held_.size(); ++r) {
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const auto& given = replicas[r].input_contents;
      if (given.empty() || given[kept[k]] != held_[r][k]) fresh_[k] = 1;
    }
  }
}

void KeptArguments::remember(std::span<const runtime::Arrays> replicas) {
  const auto& kept = container_.kept_inputs;
  const auto& alias = container_.signature.output_alias;
  held_.assign(replicas.size(), std::vector<std::uint64_t>(kept.size()));
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    if (replicas[r].input_contents.empty()) return forget();
    for (std::size_t k = 0; k < kept.size(); ++k) {
      held_[r][k] = replicas[r].input_contents[kept[k]];
      for (std::size_t j = 0; j < alias.size(); ++j)
        if (alias[j] == static_cast<std::int32_t>(kept[k]))
          held_[r][k] = replicas[r].output_contents[j];
    }
  }
}

}  // namespace ipujax::poplar_backend
