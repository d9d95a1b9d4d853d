#include "popnn/CTCPlan.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <ostream>
#include <string_view>

#include "poplar/exceptions.hpp"
#include "poplar/internal/NearName.hpp"
#include "poplin/internal/ConstraintsJson.hpp"
#include "popnn/internal/CTC.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "poputil/OptionParsing.hpp"
#include "poputil/exceptions.hpp"

namespace popnn::ctc {

Plan::Plan() : impl_(std::make_unique<Impl>()) {}
Plan::~Plan() = default;
Plan::Plan(const Plan& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Plan::Plan(Plan&& other) noexcept = default;
Plan& Plan::operator=(const Plan& other) {
  impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Plan& Plan::operator=(Plan&& other) noexcept = default;
Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

bool operator<(const Plan& a, const Plan& b) { return a.impl_->key() < b.impl_->key(); }
bool operator==(const Plan& a, const Plan& b) { return a.impl_->key() == b.impl_->key(); }
bool operator!=(const Plan& a, const Plan& b) { return !(a == b); }

std::ostream& operator<<(std::ostream& o, const Plan& p) {
  const auto& plan = p.getImpl();
  o << (plan.isDecoder ? "CTC decoder" : "CTC loss") << ": batch " << plan.batchSize << ", time "
    << plan.maxTime << ", classes " << plan.numClasses;
  if (plan.isDecoder) return o << ", beams " << plan.beamwidth;
  return o << ", labels " << plan.maxLabelLength;
}

}  // namespace popnn::ctc

template <>
poplar::ProfileValue poputil::toProfileValue(const popnn::ctc::Plan& p) {
  const auto& plan = p.getImpl();
  poplar::ProfileValue::Map map;
  map.insert({"batchSize", poputil::toProfileValue(plan.batchSize)});
  map.insert({"maxTime", poputil::toProfileValue(plan.maxTime)});
  map.insert({"numClasses", poputil::toProfileValue(plan.numClasses)});
  return map;
}

namespace popnn::internal {

namespace {

constexpr const char* kWhere = "popnn::ctc";

bool isOneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// {"parallel": {"time": 2}}: the number of parts of each dimension. PopLibs throws the same kind
/// of error for constraints that it cannot meet and for unknown ones.
void checkConstraints(const std::string& text) try {
  using Kind = poplin::Json::Kind;
  const auto json = poplin::readConstraintsJson(kWhere, text);
  if (json.kind != Kind::kObject)
    poplin::refuseConstraints(kWhere, "an object of parallel or serial splits", "another value");
  for (const auto& [group, splits] : json.members) {
    if (!isOneOf(group, {"parallel", "serial"}) || splits.kind != Kind::kObject)
      poplin::refuseConstraints(kWhere, "parallel or serial, each an object", "'" + group + "'");
    for (const auto& [name, count] : splits.members) {
      const bool known =
          isOneOf(name, {"batch", "time", "label", "sliceIntoOutput", "classes", "beam"});
      if (!known || !poplin::countOf(count))
        poplin::refuseConstraints(kWhere,
                                  "batch, time, label, sliceIntoOutput, classes or beam in " +
                                      group + ", each a whole number from 1",
                                  "'" + name + "'");
    }
  }
} catch (const poplar::invalid_option& error) {
  throw poputil::poplibs_error(error.what());
}

}  // namespace

using poplar::Tensor;
namespace pe = popops::expr;

pe::Any logAdd(const std::vector<pe::Any>& terms) {
  pe::Any most = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) most = pe::Any(pe::Max(most, terms[i]));
  pe::Any sum = pe::Any(pe::Exp(terms[0] - most));
  for (std::size_t i = 1; i < terms.size(); ++i) sum = pe::Any(sum + pe::Exp(terms[i] - most));
  return pe::Any(most + pe::Log(sum));
}

void checkCtcData(const Tensor& data, const ctc::Plan& plan, bool isDecoder, unsigned blankClass) {
  const auto& sizes = plan.getImpl();
  const poplar::Type type = data.elementType();
  const bool fits = data.rank() == 3 && sizes.isDecoder == isDecoder &&
                    data.dim(0) <= sizes.maxTime && data.dim(1) == sizes.batchSize &&
                    data.dim(2) == sizes.numClasses && blankClass < data.dim(2) &&
                    (type == poplar::FLOAT || type == poplar::HALF);
  if (!fits)
    throw poputil::poplibs_error(
        "[popnn::ctc] needs FLOAT or HALF [time <= " + std::to_string(sizes.maxTime) + ", batch " +
        std::to_string(sizes.batchSize) + ", classes " + std::to_string(sizes.numClasses) +
        "] as the plan of a " + (isDecoder ? "decoder" : "loss") +
        " has it, and a blank among the classes; got " + type.toString() + " " +
        data.shapeToString() + " and blank " + std::to_string(blankClass) +
        ". Plan for these sizes.");
}

Tensor ctcData(poplar::Graph& graph, const Tensor& data, poplar::program::Sequence& prog,
               const poplar::DebugContext& debug) {
  return popops::map(graph, pe::Max(pe::Cast(pe::_1, poplar::FLOAT), pe::Const(kLogZero)), {data},
                     prog, {debug, "data"});
}

Tensor ctcIndices(poplar::Graph& graph, const Tensor& t, const std::vector<std::size_t>& shape,
                  const char* what, poplar::program::Sequence& prog,
                  const poplar::DebugContext& debug) {
  if (t.shape() != shape)
    throw poputil::poplibs_error("[popnn::ctc] needs " + std::string(what) + "; got " +
                                 t.shapeToString() + ". Reshape them.");
  if (t.elementType() == poplar::UNSIGNED_INT) return t;
  return popops::cast(graph, t, poplar::UNSIGNED_INT, prog, {debug, "indices"});
}

void checkCtcOptions(const poplar::OptionFlags& options) {
  constexpr std::array<std::string_view, 3> names{"partialsType", "availableMemoryProportion",
                                                  "planConstraints"};
  for (const auto& [name, value] : options) {
    if (name == "planConstraints") {
      checkConstraints(value);
    } else if (name == "availableMemoryProportion") {
      if (!(poplibs::parse::asFloatingPoint<double>(value) > 0))
        throw poputil::poplibs_error("[popnn::ctc] needs memory for a plan; got " + name + "=" +
                                     value + ". Use a proportion above 0.");
    } else if (name != "partialsType") {
      throw poplar::invalid_option("[popnn::ctc] got " + name + "=" + value + ". " +
                                   poplar::internal::didYouMean(name, names) +
                                   "Known options are partialsType, availableMemoryProportion and "
                                   "planConstraints.");
    }
  }
}

Tensor ctcCount(poplar::Graph& graph, std::size_t n, const poplar::DebugContext& debug) {
  std::vector<unsigned> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<unsigned>(i);
  const Tensor t = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {n}, values, {debug, "count"});
  graph.setTileMapping(t, 0);
  return t;
}

Tensor ctcConstant(poplar::Graph& graph, const std::vector<std::size_t>& shape, float value,
                   const poplar::DebugContext& debug) {
  const Tensor t = graph.addConstant(poplar::FLOAT, {1}, value, {debug, "constant"});
  graph.setTileMapping(t, 0);
  std::size_t n = 1;
  for (const std::size_t d : shape) n *= d;
  return t.broadcast(static_cast<unsigned>(n), 0).reshape(shape);
}

}  // namespace popnn::internal
