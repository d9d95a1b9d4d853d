#include "popx/hardware/Replicas.hpp"

#include <algorithm>
#include <map>

#include "poplar/exceptions.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/Zero.hpp"

namespace popx {

using poplar::Tensor;
using Pairs = std::vector<std::pair<unsigned, unsigned>>;

namespace {

/// Pairs that name each replica once on both sides: those given, and any for the rest.
std::map<unsigned, unsigned> completed(const Pairs& pairs, unsigned num_replicas) {
  std::map<unsigned, unsigned> all(pairs.begin(), pairs.end());
  std::vector<bool> receives(num_replicas);
  for (const auto& [from, to] : pairs) receives[to] = true;
  unsigned to = 0;
  for (unsigned from = 0; from < num_replicas; ++from) {
    if (all.count(from)) continue;
    while (receives[to]) ++to;
    all.emplace(from, to++);
  }
  return all;
}

std::string shown(const ReplicaGroups& groups) {
  std::string text = "{";
  for (const auto& group : groups) {
    text += text.size() > 1 ? ", {" : "{";
    for (std::size_t i = 0; i < group.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(group[i]);
    text += "}";
    if (text.size() > 200) return text + " ...";
  }
  return text + "}";
}

}  // namespace

std::size_t largestOf(const ReplicaGroups& groups) {
  std::size_t size = 0;
  for (const auto& group : groups) size = std::max(size, group.size());
  return size;
}

std::vector<unsigned> placesOf(const ReplicaGroups& groups, unsigned num_replicas) {
  std::vector<unsigned> places(num_replicas);
  for (const auto& group : groups)
    for (std::size_t m = 0; m < group.size(); ++m) places[group[m]] = static_cast<unsigned>(m);
  return places;
}

std::optional<gcl::CommGroup> commGroupOf(const ReplicaGroups& groups, unsigned num_replicas) {
  const auto size = static_cast<unsigned>(groups[0].size());
  if (size == 0 || num_replicas % size != 0) return {};
  const unsigned apart = num_replicas / size;
  bool consecutive = true, orthogonal = true;
  for (const auto& group : groups) {
    if (group.size() != size) return {};
    for (unsigned m = 0; m < size; ++m) {
      consecutive = consecutive && group[0] % size == 0 && group[m] == group[0] + m;
      orthogonal = orthogonal && group[0] < apart && group[m] == group[0] + m * apart;
    }
  }
  using Type = gcl::CommGroupType;
  if (consecutive) return gcl::CommGroup(apart == 1 ? Type::ALL : Type::CONSECUTIVE, size);
  if (orthogonal) return gcl::CommGroup(Type::ORTHOGONAL, size);
  return {};
}

void checkGroups(const char* where, const ReplicaGroups& groups, unsigned num_replicas, bool all,
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
  throw poplar::poplar_error("[" + std::string(where) + "] needs groups that name " +
                             (all ? "each" : "none") + " of the " + std::to_string(num_replicas) +
                             " replicas " + (all ? "once" : "twice") +
                             (equal ? ", all of one size" : "") + "; got " + shown(groups) +
                             ". Use groups that divide the replicas.");
}

Replicas::Replicas(poplar::Graph& graph, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext)
    : graph_(graph), prog_(prog), debug_(debugContext), count_(graph.getReplicationFactor()) {}

Tensor Replicas::variable(const poplar::Type& type, const std::vector<std::size_t>& shape,
                          const std::string& name) {
  return graph_.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, {debug_, name});
}

Tensor Replicas::copied(const Tensor& t, const std::string& name) {
  const Tensor copy = variable(t.elementType(), t.shape(), name);
  prog_.add(poplar::program::Copy(t, copy, false, {debug_, name}));
  return copy;
}

Tensor Replicas::zerosLike(const Tensor& t) {
  const Tensor zeros = variable(t.elementType(), t.shape(), "zeros");
  if (zeros.numElements() > 0) popops::zero(graph_, zeros, prog_, {debug_, "zeros"});
  return zeros;
}

Tensor Replicas::sent(const Tensor& t, const Pairs& pairs) {
  const Tensor got = variable(t.elementType(), t.shape(), "received");
  if (got.numElements() == 0) return got;
  prog_.add(poplar::program::CrossReplicaCopy(t, got, completed(pairs, count_), debug_));
  return got;
}

Tensor Replicas::chosen(const Tensor& rows, const std::vector<std::vector<unsigned>>& table) {
  const std::size_t n = table[0].size();
  auto shape = rows.shape();
  shape[0] = n;
  if (rows.numElements() == 0) return variable(rows.elementType(), shape, "chosen");
  std::vector<unsigned> flat;
  for (const auto& row : table) flat.insert(flat.end(), row.begin(), row.end());
  const Tensor all = graph_.addConstant<unsigned>(poplar::UNSIGNED_INT, {table.size(), n}, flat,
                                                  {debug_, "table"});
  graph_.setTileMapping(all, 0);
  const Tensor number = graph_.addReplicationIndexConstant(debug_);
  graph_.setTileMapping(number, 0);
  const Tensor own =
      popops::dynamicSlice(graph_, all, number.reshape({1}), {0}, {1}, prog_, debug_);
  const std::size_t each = rows.numElements() / rows.dim(0);
  const Tensor found = popops::multiSlice(graph_, rows.reshape({rows.dim(0), each}),
                                          own.reshape({n, 1}), {0}, {1}, prog_, {}, {}, debug_);
  return found.reshape(shape);
}

Tensor Replicas::chosen(const Tensor& rows, const std::vector<unsigned>& table) {
  std::vector<std::vector<unsigned>> columns;
  for (const unsigned row : table) columns.push_back({row});
  return chosen(rows, columns)[0];
}

/// Around a ring: each passes on what it received last, so row s is from the s-th member after it.
Tensor Replicas::gathered(const Tensor& t, const ReplicaGroups& groups,
                          const std::optional<Tensor>& rest) {
  const std::size_t size = largestOf(groups), elements = t.numElements();
  Pairs back;
  for (const auto& group : groups)
    for (std::size_t m = 0; m < group.size(); ++m)
      back.emplace_back(group[(m + 1) % group.size()], group[m]);
  std::vector<Tensor> rows = {t.reshape({1, elements})};
  while (rows.size() < size) rows.push_back(sent(rows.back(), back));
  if (rest) rows.push_back(rest->reshape({1, elements}));
  std::vector<std::vector<unsigned>> table(count_, std::vector<unsigned>(size));
  for (const auto& group : groups) {
    const std::size_t p = group.size();
    for (std::size_t j = 0; j < p; ++j)
      for (std::size_t m = 0; m < size; ++m)
        table[group[j]][m] = static_cast<unsigned>(m >= p && rest ? size : (m % p + p - j) % p);
  }
  return chosen(poplar::concat(rows, 0), table);
}

}  // namespace popx
