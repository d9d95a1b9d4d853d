#include "gcl/internal/Groups.hpp"

#include <algorithm>

#include "engine/Image.hpp"
#include "poplar/exceptions.hpp"

namespace gcl {
namespace {

using Integers = ipujax::engine::Attributes::Integers;

std::string shown(const Groups& groups) {
  std::string text = "{";
  for (const auto& group : groups) {
    text += text.size() > 1 ? ", {" : "{";
    for (std::size_t i = 0; i < group.size(); ++i) {
      text += (i > 0 ? ", " : "") + std::to_string(group[i]);
    }
    text += "}";
    if (text.size() > 200) return text + " ...";
  }
  return text + "}";
}

}  // namespace

void checkGroups(const char* where, const Groups& groups, unsigned num_replicas, bool all,
                 bool equal) {
  std::vector<bool> named(num_replicas);
  bool good = !groups.empty();
  for (const auto& group : groups) {
    good = good && !group.empty() && (!equal || group.size() == groups[0].size());
    for (const unsigned r : group) {
      good = good && r < num_replicas && !named[r];
      if (good) named[r] = true;
    }
  }
  if (all) good = good && std::find(named.begin(), named.end(), false) == named.end();
  if (good) return;
  throw poplar::poplar_error(std::string("[") + where + "] needs groups that name " +
                             (all ? "each" : "none") + " of the " + std::to_string(num_replicas) +
                             " replicas " + (all ? "once" : "twice") +
                             (equal ? ", all of one size" : "") + "; got " + shown(groups) +
                             ". Use groups that divide the replicas.");
}

void setGroups(ipujax::engine::Attributes& attributes, const Groups& groups) {
  Integers members;
  Integers sizes;
  for (const auto& group : groups) {
    members.insert(members.end(), group.begin(), group.end());
    sizes.push_back(static_cast<std::int64_t>(group.size()));
  }
  attributes.set("groups", std::move(members)).set("sizes", std::move(sizes));
}

Groups groupsOf(const ipujax::engine::Attributes& attributes) {
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

Groups checkedGroups(const ipujax::engine::StepCheck& check, bool once) {
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

}  // namespace gcl
