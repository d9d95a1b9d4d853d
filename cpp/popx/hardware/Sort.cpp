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
using poplar::Interval;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;

/// The elements of `t` at some places along `dim`.
Tensor at(const Tensor& t, const std::vector<Interval>& places, unsigned dim) {
  return poplar::concat(t.slices(poplar::ArrayRef<Interval>(places), dim), dim);
}

/// Elements that a step of the network compares with those `distance` further on.
std::vector<Interval> leftsOf(std::size_t n, std::size_t part, std::size_t distance) {
  std::vector<Interval> lefts;
  for (std::size_t j = distance % part; j + distance < n; j += 2 * distance) {
    std::size_t begin = j;
    const std::size_t end = std::min(j + distance, n - distance);
    while (begin < end) {  // pairs lie within a block of two parts
      const std::size_t block = begin / (2 * part) + 1;
      const std::size_t stop = std::min(end, block * 2 * part);
      const std::size_t last = block * 2 * part - distance;
      if (begin < last) lefts.emplace_back(begin, std::min(stop, last));
      begin = stop;
    }
  }
  return lefts;
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
        exchange(leftsOf(n, part, distance), distance);
    return {sorted_.begin(), sorted_.end() - 1};
  }

 private:
  Tensor copyOf(const Tensor& t) {
    const Tensor copy = graph_.addVariable(t.elementType(), t.shape(),
                                           poplar::VariableMappingMethod::LINEAR, debug_);
    prog_.add(Copy(t, copy, false, debug_));
    return copy;
  }

  /// Where each element was: equal elements stay in this order.
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

  void exchange(const std::vector<Interval>& lefts, std::size_t distance) {
    if (lefts.empty()) return;
    std::vector<Interval> rights;
    for (const auto& i : lefts) rights.emplace_back(i.begin() + distance, i.end() + distance);
    Tensors left, right;
    for (const Tensor& t : sorted_) {
      left.push_back(at(t, lefts, dim_));
      right.push_back(at(t, rights, dim_));
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

/// Integers in the total order of floating numbers.
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
