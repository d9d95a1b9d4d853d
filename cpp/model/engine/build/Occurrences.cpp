#include "engine/build/Occurrences.hpp"

namespace ipujax::engine::build {

Occurrences::Occurrences(const Draft& draft)
    : draft_(draft), places_(draft.image.steps.size()), sequence_(draft.occurrences.size()) {
  for (std::uint32_t p = 0; p < draft.occurrences.size(); ++p) {
    if (stepAt(p) >= 0) places_[static_cast<std::size_t>(stepAt(p))].push_back(p);
  }
  findSequences(draft.root);
}

void Occurrences::findSequences(const Span& span) {
  for (const Span& child : span.children) {
    if (child.kind == Span::Kind::kLeaf) {
      sequence_[child.begin] = &span;
    } else {
      findSequences(child);
    }
  }
}

bool Occurrences::together(std::uint32_t first, std::uint32_t second) const {
  const auto& from = placesOf(first);
  const auto& to = placesOf(second);
  if (from.size() != to.size()) return false;
  const std::uint32_t distance = second - first;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to[i] - from[i] != distance || sequence_[from[i]] != sequence_[to[i]]) return false;
    for (std::uint32_t d = 1; d < distance; ++d) {
      if (stepAt(from[i] + d) != stepAt(first + d)) return false;
    }
  }
  return true;
}

}  // namespace ipujax::engine::build
