#include "poplar/internal/NearName.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace poplar::internal {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// Number of insertions, deletions, changed letters and swaps of neighbours that turn `b` into `a`.
std::size_t edits(const std::string& a, const std::string& b) {
  using Row = std::vector<std::size_t>;
  Row before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearestName(std::string_view name, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongest = 256;  // no option's name is longer
  if (name.size() > kLongest) return {};
  const std::string wanted = lower(name);
  std::string_view nearest;
  std::size_t fewest = kLongest;
  for (const std::string_view each : known) {
    const std::size_t count = edits(wanted, lower(each));
    if (count > std::max<std::size_t>(2, each.size() / 6) || count >= fewest) continue;
    fewest = count;
    nearest = each;
  }
  return nearest;
}

}  // namespace poplar::internal
