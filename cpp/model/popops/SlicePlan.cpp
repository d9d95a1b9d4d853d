#include <algorithm>
#include <ostream>
#include <tuple>
#include <utility>

#include "popops/DynamicSlice.hpp"
#include "popops/internal/SlicePlanner.hpp"

namespace popops {
namespace {

auto keyOf(const internal::SlicePlanData& d) {
  const auto& t = d.table;
  return std::tuple(d.partition, t.groups, t.entries, t.elements, t.lookups, t.type.toString());
}

}  // namespace

SlicePlan::SlicePlan(internal::SlicePlanData data)
    : data_(std::make_shared<const internal::SlicePlanData>(std::move(data))) {}

bool operator==(const SlicePlan& a, const SlicePlan& b) {
  if (!a.data() || !b.data()) return a.data() == b.data();
  return keyOf(*a.data()) == keyOf(*b.data());
}

bool operator<(const SlicePlan& a, const SlicePlan& b) {
  if (!a.data() || !b.data()) return !a.data() && b.data();
  return keyOf(*a.data()) < keyOf(*b.data());
}

std::ostream& operator<<(std::ostream& o, const SlicePlan& plan) {
  if (!plan.data()) return o << "SlicePlan: as the tensors lie\n";
  const auto& p = plan.data()->partition;
  return o << "SlicePlan:\n  lookupSplit=" << p.lookups << "\n  slicedDimSplit=" << p.rows
           << "\n  unslicedDimSplit=" << p.columns << "\n  groupSplit=" << p.groups
           << "\n  unslicedGrainSize=" << p.grain << "\n";
}

SlicePlan embedding::plan(const poplar::Graph& graph, const poplar::Type& dataType,
                          std::size_t groupSize, std::size_t numEntries, std::size_t outputSize,
                          const std::vector<std::size_t>& numLookups,
                          const poplar::OptionFlags& options) {
  const std::size_t lookups = numLookups.empty() ? 1 : std::ranges::max(numLookups);
  const internal::SliceTable table{dataType, groupSize, numEntries, outputSize, lookups};
  const auto partition =
      internal::choosePartition(graph.getTarget(), table, internal::sliceOptions(options));
  return SlicePlan(internal::SlicePlanData{table, partition});
}

SlicePlan embedding::plan(const poplar::Graph& graph, const poplar::Type& dataType,
                          std::size_t numEntries, std::size_t outputSize,
                          const std::vector<std::size_t>& numLookups,
                          const poplar::OptionFlags& options) {
  return plan(graph, dataType, 1, numEntries, outputSize, numLookups, options);
}

std::vector<SlicePlan> embedding::planMultiple(
    const std::vector<SlicePlanningParameters>& descriptions) {
  std::vector<SlicePlan> plans;
  for (const SlicePlanningParameters& d : descriptions)
    plans.push_back(plan(d.graph, d.dataType, d.groupSize, d.numEntries, d.outputSize, d.numLookups,
                         d.optionFlags));
  return plans;
}

}  // namespace popops
