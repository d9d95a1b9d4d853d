#include "popx/Sort.hpp"

#include <algorithm>
#include <numeric>

#include "poplar/exceptions.hpp"
#include "popops/Cast.hpp"
#include "popx/checks/Sort.hpp"
#include "popx/hardware/MapOne.hpp"

namespace popx {
namespace {

namespace pe = expr;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

/// Pairs that a step of the network compares: groups of two neighbouring runs of `distance`
/// elements, after those that each block skips; or, without groups, `rest` elements and those
/// `distance` further on.
struct Pairs {
  std::size_t begin, blocks, block, skipped, groups, distance, rest;

  /// The left or right ones, as one regular view: [blocks, groups, 1, distance] along `dim`.
  Tensor side(const Tensor& t, unsigned dim, std::size_t which) const {
    if (groups == 0) return t.slice(begin + which * distance, begin + which * distance + rest, dim);
    auto shape = t.shape();
    const auto at = shape.begin() + static_cast<std::ptrdiff_t>(dim);
    *at = block;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), blocks);
    const std::size_t size = groups * 2 * distance;
    const Tensor inner = t.slice(begin, begin + blocks * block, dim)
                             .reshape(shape)
                             .slice(skipped, skipped + size, dim + 1);
    shape[dim + 1] = distance;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, {groups, 2});
    return inner.reshape(shape).slice(which, which + 1, dim + 2);
  }
};

/// Batcher's merge of parts, two in each block. The last, shorter block has whole groups and a
/// rest.
std::vector<Pairs> pairsOf(std::size_t n, std::size_t part, std::size_t distance) {
  const std::size_t block = 2 * part, skipped = distance % part;
  const std::size_t blocks = n / block, last = blocks * block;
  std::vector<Pairs> pairs;
  if (blocks > 0)
    pairs.push_back(
        {0, blocks, block, skipped, (block - 2 * skipped) / (2 * distance), distance, 0});
  const std::size_t end = std::min(n, last + block - skipped);
  if (end <= last + skipped) return pairs;
  const std::size_t groups = (end - last - skipped) / (2 * distance);
  if (groups > 0) pairs.push_back({last, 1, end - last, skipped, groups, distance, 0});
  const std::size_t rest = last + skipped + groups * 2 * distance;
  if (rest + distance < end) pairs.push_back({rest, 1, 0, 0, 0, distance, end - rest - distance});
  return pairs;
}

class Network {
 public:
  Network(Graph& graph, const Tensors& operands, unsigned dim, const pe::Expr& comparator,
          Sequence& prog, const poplar::DebugContext& debug)
      : graph_(graph),
        dim_(dim),
        num_operands_(operands.size()),
        comparator_(comparator),
        prog_(prog),
        debug_(debug) {
    for (const Tensor& t : operands) sorted_.push_back(copyOf(t));
    sorted_.push_back(copyOf(positions(operands[0])));
  }

  Tensors run() {
    const std::size_t n = sorted_[0].dim(dim_);
    for (std::size_t part = 1; part < n && sorted_[0].numElements() > 0; part *= 2)
      for (std::size_t distance = part; distance >= 1; distance /= 2)
        for (const Pairs& pairs : pairsOf(n, part, distance)) exchange(pairs);
    return {sorted_.begin(), sorted_.end() - 1};
  }

 private:
  Tensor copyOf(const Tensor& t) {
    const Tensor copy = graph_.addVariable(t.elementType(), t.shape(),
                                           poplar::VariableMappingMethod::LINEAR, debug_);
    prog_.add(Copy(t, copy, false, debug_));
    return copy;
  }

  /// The original position of each element: equal elements keep this order.
  Tensor positions(const Tensor& like) {
    std::vector<unsigned> values(like.dim(dim_));
    std::iota(values.begin(), values.end(), 0u);
    Tensor t = graph_.addConstant<unsigned>(poplar::UNSIGNED_INT, {values.size()},
                                            poplar::ArrayRef<unsigned>(values), debug_);
    graph_.setTileMapping(t, 0);
    std::vector<std::size_t> shape(like.rank(), 1);
    shape[dim_] = values.size();
    t = t.reshape(shape);
    for (unsigned d = 0; d < like.rank(); ++d)
      if (d != dim_) t = t.broadcast(static_cast<unsigned>(like.dim(d)), d);
    return t;
  }

  Tensor isFirst(const Tensors& left, const Tensors& right) {
    Tensors both;
    for (std::size_t i = 0; i < num_operands_; ++i) {
      both.push_back(left[i]);
      both.push_back(right[i]);
    }
    return mapOne(graph_, comparator_, both, prog_, debug_);
  }

  void exchange(const Pairs& pairs) {
    Tensors left, right;
    for (const Tensor& t : sorted_) {
      left.push_back(pairs.side(t, dim_, 0));
      right.push_back(pairs.side(t, dim_, 1));
    }
    const Tensor swaps = mapOne(
        graph_, pe::_1 || (!pe::_2 && pe::_3 > pe::_4),
        {isFirst(right, left), isFirst(left, right), left.back(), right.back()}, prog_, debug_);
    const auto chosen = [&](const Tensor& then, const Tensor& otherwise) {
      return mapOne(graph_, pe::Select(pe::_1, pe::_2, pe::_3), {then, otherwise, swaps}, prog_,
                    debug_);
    };
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      const Tensor first = chosen(right[i], left[i]);
      const Tensor second = chosen(left[i], right[i]);
      prog_.add(Copy(first, left[i], false, debug_));
      prog_.add(Copy(second, right[i], false, debug_));
    }
  }

  Graph& graph_;
  const unsigned dim_;
  const std::size_t num_operands_;
  const pe::Expr comparator_;
  Sequence& prog_;
  const poplar::DebugContext debug_;
  Tensors sorted_;  // the operands, and the positions
};

bool isFloating(const Tensor& t) {
  return t.elementType() == poplar::FLOAT || t.elementType() == poplar::HALF;
}

/// Integers that compare in the total order of floating-point numbers.
Tensor totalOrder(Graph& graph, const Tensor& t, Sequence& prog,
                  const poplar::DebugContext& debug) {
  const bool is_half = t.elementType() == poplar::HALF;
  const Tensor bits =
      is_half ? popops::cast(graph, t.reinterpret(poplar::SHORT), poplar::INT, prog, debug)
              : t.reinterpret(poplar::INT);
  const pe::Const magnitude(is_half ? 0x7fff : 0x7fffffff);
  return mapOne(graph, pe::Select(pe::_1 ^ magnitude, pe::_1, pe::_1 < pe::Const(0)), {bits}, prog,
                debug);
}

/// Whether a number comes before another, and whether they are equal, NaNs last.
struct Order {
  Order(const pe::Expr& a, const pe::Expr& b, bool has_nans)
      : before(has_nans ? pe::Expr(a < b || (a == a && b != b)) : pe::Expr(a < b)),
        equal(has_nans ? pe::Expr(a == b || (a != a && b != b)) : pe::Expr(a == b)) {}
  pe::Expr before, equal;
};

}  // namespace

Tensors sort(Graph& graph, const Tensors& operands, unsigned dim, const pe::Expr& comparator,
             bool /*stable*/, Sequence& prog, const poplar::DebugContext& debugContext) {
  sorting::check(operands, dim);
  return Network(graph, operands, dim, comparator, prog, debugContext).run();
}

Tensors sort(Graph& graph, const Tensors& operands, unsigned dim, const std::vector<SortKey>& keys,
             Sequence& prog, const poplar::DebugContext& debugContext) {
  sorting::check(operands, dim, keys);
  Tensors all = operands;
  pe::Expr comparator = pe::Const(false);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    std::size_t index = key->operand;
    const bool is_floating = isFloating(operands[index]);
    const bool is_total = is_floating && key->order == FloatOrder::kTotal;
    if (is_total) {
      all.push_back(totalOrder(graph, operands[index], prog, debugContext));
      index = all.size() - 1;
    }
    pe::Expr a = pe::PlaceHolder(static_cast<unsigned>(2 * index + 1));
    pe::Expr b = pe::PlaceHolder(static_cast<unsigned>(2 * index + 2));
    if (key->descending) std::swap(a, b);
    const Order order(a, b, is_floating && !is_total);
    comparator = order.before || (order.equal && comparator);
  }
  Tensors sorted = Network(graph, all, dim, comparator, prog, debugContext).run();
  sorted.resize(operands.size());
  return sorted;
}

}  // namespace popx
