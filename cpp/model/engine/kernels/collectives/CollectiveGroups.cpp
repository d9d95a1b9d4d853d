#include "engine/kernels/collectives/CollectiveGroups.hpp"

#include "engine/image/Image.hpp"

namespace ipujax::engine::collective {
namespace {

using Integers = Attributes::Integers;

}  // namespace

void setGroups(Attributes& attributes, const Groups& groups) {
  Integers members;
  Integers sizes;
  for (const auto& group : groups) {
    members.insert(members.end(), group.begin(), group.end());
    sizes.push_back(static_cast<std::int64_t>(group.size()));
  }
  attributes.set("groups", std::move(members)).set("sizes", std::move(sizes));
}

Groups groupsOf(const Attributes& attributes) {
  const Integers& members = attributes.integers("groups");
  Groups groups;
  std::size_t at = 0;
  for (const std::int64_t size : attributes.integers("sizes")) {
    auto& group = groups.emplace_back();
    for (std::int64_t i = 0; i < size && at < members.size(); ++i) {
      group.push_back(static_cast<unsigned>(members[at++]));
    }
  }
  return groups;
}

Groups checkedGroups(const StepCheck& check, bool once) {
  const Integers& members = check.integers("groups");
  const auto num_replicas = static_cast<std::int64_t>(check.image().signature.num_replicas);
  std::vector<bool> named(static_cast<std::size_t>(num_replicas));
  for (const std::int64_t r : members) {
    check.need(r >= 0 && r < num_replicas, "groups of its program's replicas");
    check.need(!once || !named[static_cast<std::size_t>(r)], "groups that share no replica");
    named[static_cast<std::size_t>(r)] = true;
  }
  std::size_t left = members.size();
  for (const std::int64_t size : check.integers("sizes")) {
    check.need(size > 0 && static_cast<std::size_t>(size) <= left, "groups of their sizes");
    left -= static_cast<std::size_t>(size);
  }
  check.need(left == 0, "groups of their sizes");
  return groupsOf(check.step().attributes);
}

}  // namespace ipujax::engine::collective
