#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "Check.hpp"
#include "OnDevice.hpp"
#include "poplin/Convolution.hpp"
#include "poplin/MatMul.hpp"
#include "poplin/internal/Plan.hpp"
#include "poplin/internal/PlanConstraints.hpp"

/// planConstraints: plans obey them over random products, and numbers stay the same.
namespace {

using poplar::FLOAT;
using poplar::HALF;
using poplar::Tensor;
using poplin::readConstraints;
using poplin::plan::Constraints;
using poplin::plan::makePlan;
using poplin::plan::Plan;
using poplin::plan::Problem;

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  bool flip() { return random_() % 2 == 0; }
  std::uint64_t upTo(std::uint64_t most) { return 1 + random_() % most; }
  std::uint64_t size(double most) {
    const double share = static_cast<double>(random_()) / static_cast<double>(random_.max());
    return static_cast<std::uint64_t>(std::exp(share * std::log(most + 0.5)));
  }

  Problem problem() {
    Problem p;
    p.rows = p.row_length = size(5000);
    p.in_channels = size(3000);
    p.out_channels = size(5000);
    p.input_elements = p.rows * p.in_channels;
    p.in_type = p.out_type = (flip() ? HALF : FLOAT).element();
    if (flip()) p.groups = size(100);
    if (flip()) p.kernel_height = p.kernel_width = size(5);
    return p;
  }

  Constraints constraints() {
    Constraints c;
    if (flip()) c.group_split = upTo(3);
    if (flip()) c.rows_multiple = upTo(40);
    if (flip()) c.in_split = upTo(4);
    if (flip()) c.out_split = upTo(4);
    if (flip()) (flip() ? c.in_serial : c.out_serial) = upTo(7);
    if (flip()) c.swapped = flip();
    if (flip()) c.expanded = flip();
    return c;
  }

 private:
  std::mt19937 random_;
};

bool obeys(const Plan& plan, const Constraints& c, bool has_kernel) {
  const auto met = [](std::uint64_t wanted, std::uint64_t got) {
    return wanted == 0 || wanted == got;
  };
  return met(c.group_split, plan.group_split) && met(c.in_split, plan.in_split) &&
         met(c.out_split, plan.out_split) && met(c.in_serial, plan.in_serial) &&
         met(c.out_serial, plan.out_serial) &&
         (c.rows_multiple == 0 || plan.row_split % c.rows_multiple == 0) &&
         (!c.swapped || *c.swapped == plan.swapped) &&
         (!has_kernel || !c.expanded || *c.expanded == plan.expanded) &&
         (!c.vertex || *c.vertex == plan.vertex);
}

/// The constraints that only this plan meets.
Constraints constraintsOf(const Plan& plan) {
  Constraints c;
  c.vertex = plan.vertex;
  c.group_split = plan.group_split;
  c.rows_multiple = plan.row_split;
  c.in_split = plan.in_split;
  c.out_split = plan.out_split;
  c.in_serial = plan.in_serial;
  c.out_serial = plan.out_serial;
  c.swapped = plan.swapped;
  c.expanded = plan.expanded;
  return c;
}

}  // namespace

TEST(plans_obey_constraints_over_random_products) {
  Random random(3);
  int planned = 0;
  for (int i = 0; i < 2000; ++i) {
    Problem p = random.problem();
    const double free = makePlan(p, poplar::Target()).cost.cycles();
    p.constraints = random.constraints();
    try {
      const Plan plan = makePlan(p, poplar::Target());
      if (!obeys(plan, p.constraints, p.taps() > 1) || plan.tiles > 1472)
        check::fail(__FILE__, __LINE__, "problem ", i, ": ", plan.report());
      if (plan.in_serial == 1 && plan.out_serial == 1) CHECK(plan.cost.cycles() >= free * 0.5);
      ++planned;
    } catch (const poputil::poplibs_error& error) {
      CHECK(std::string(error.what()).find("needs planConstraints that a plan can meet") !=
            std::string::npos);
    }
  }
  CHECK(planned > 500);
  CHECK(planned < 2000);
}

TEST(the_constraints_of_a_plan_give_that_plan_again) {
  Random random(4);
  for (int i = 0; i < 500; ++i) {
    Problem p = random.problem();
    const Plan free = makePlan(p, poplar::Target());
    p.constraints = constraintsOf(free);
    const Plan again = makePlan(p, poplar::Target());
    if (again.report() != free.report())
      check::fail(__FILE__, __LINE__, "problem ", i, ": ", free.report(), " and ", again.report());
  }
}

TEST(constraints_are_read_as_poplibs_writes_them) {
  const Constraints c = readConstraints("matMul", R"({"method": "HMAC", "inChansPerGroup": 2,
      "convGroupsPerGroup": 1, "partialChansPerGroup": 1, "useLimitedVersion": true,
      "0": {"transform": {"swapOperands": true, "expandDims": [0, 1], "outChanFlattenDims": [],
                          "combineConvGroupsFactor": [1]},
            "partition": {"convGroupSplit": 3, "batchSplit": 2, "fieldSplit": {"0": 4, "1": 5},
                          "kernelSplit": {"0": 1},
                          "inChanSplit": {"parallel": 6, "serial": 1},
                          "outChanSplit": 7}}})");
  CHECK(c.vertex == poplin::plan::Vertex::kHorizontalMac);
  CHECK_EQ(c.in_grain, 2u);
  CHECK_EQ(c.group_grain, 1u);
  CHECK_EQ(c.out_grain, 1u);
  CHECK(c.swapped == true);
  CHECK(c.expanded == true);
  CHECK_EQ(c.group_split, 3u);
  CHECK_EQ(c.rows_multiple, 40u);
  CHECK_EQ(c.in_split, 6u);
  CHECK_EQ(c.in_serial, 1u);
  CHECK_EQ(c.out_split, 7u);
  CHECK_EQ(c.out_serial, 0u);
  CHECK(readConstraints("matMul", " {} ") == Constraints{});
}

TEST(bad_constraints_are_refused_with_what_they_need) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "needs a JSON object"},
      {"[]", "planConstraints to be an object"},
      {"{\"0\": {}", "needs a JSON object"},
      {"{} {}", "needs a JSON object"},
      {"{\"0\": {}, \"0\": {}}", "needs a JSON object"},
      {std::string(100000, '['), "needs a JSON object"},
      {R"({"1": {}})", "the only level"},
      {R"({"method": "FFT"})", "method to be AMP"},
      {R"({"method": 3})", "method to be AMP"},
      {R"({"inChansPerGroup": 0})", "whole number"},
      {R"({"inChansPerGroup": -4})", "to be a whole number from 1; got '-4'"},
      {R"({"inChansPerGroup": 99999999999999999999})", "whole number"},
      {R"({"numAmpConvUnits": 8})", "got 'numAmpConvUnits'"},
      {R"({"0": {"partitions": {}}})", "transform or partition"},
      {R"({"0": {"transform": {"swapOperands": 1}}})", "true or false"},
      {R"({"0": {"transform": {"combineConvGroupsFactor": [2]}}})", "[1]"},
      {R"({"0": {"transform": {"outChanFlattenDims": [0]}}})", "outChanFlattenDims of []"},
      {R"({"0": {"partition": {"fieldSplit": {"x": 2}}}})", "axes"},
      {R"({"0": {"partition": {"kernelSplit": {"0": 3}}}})", "kernelSplit of 1"},
      {R"({"0": {"partition": {"inChanSplit": {"serially": 3}}}})", "parallel or serial"},
      {R"({"0": {"partition": {"inChanSplit": {"serial": 2}, "outChanSplit": {"serial": 2}}}})",
       "slices of both"},
      {R"({"0": {"partition": {"batchSplit": 4294967296, "fieldSplit": {"0": 4294967296}}}})",
       "fewer parts than tiles"},
  };
  for (const auto& [json, text] : cases) CHECK_THROWS(readConstraints("matMul", json), text);
}

TEST(parts_of_a_convolution_are_at_most_its_batch_its_field_and_its_channels) {
  const poplin::ConvParams params(FLOAT, 32, {32, 32}, {6, 6}, 16, 16, 1);  // fields of 27 x 27
  const auto isPlanned = [&](const std::string& partition, const poplin::ConvParams& of) {
    OnDevice d;
    const std::string json = R"({"method": "HMAC", "0": {"partition": )" + partition + "}}";
    try {
      poplin::createWeights(d.graph, of, "weights", {{"planConstraints", json}});
      return true;
    } catch (const poputil::poplibs_error& error) {
      CHECK(std::string(error.what()).find("a batch of") != std::string::npos);
      return false;
    }
  };
  CHECK(isPlanned(R"({"batchSplit": 32})", params));
  CHECK(!isPlanned(R"({"batchSplit": 33})", params));
  CHECK(!isPlanned(R"({"batchSplit": 256})", params));
  CHECK(isPlanned(R"({"fieldSplit": {"0": 27, "1": 9}})", params));
  CHECK(!isPlanned(R"({"fieldSplit": {"0": 28}})", params));
  CHECK(!isPlanned(R"({"fieldSplit": {"2": 2}})", params));
  CHECK(isPlanned(R"({"outChanSplit": {"parallel": 8, "serial": 2}})", params));
  CHECK(!isPlanned(R"({"outChanSplit": {"parallel": 16, "serial": 16}})", params));
  // With kernels of one element, batch and field are one dimension.
  const poplin::ConvParams pointwise(FLOAT, 2, {32, 32}, {1, 1}, 16, 16, 1);
  CHECK(isPlanned(R"({"batchSplit": 64})", pointwise));
}

TEST(a_method_that_is_asked_for_is_planned_where_others_are_faster) {
  for (const std::string method : {"SLIC", "VMAC"}) {
    for (const std::size_t groups : {1, 2}) {
      OnDevice d;
      const poplin::ConvParams params(HALF, 1, {1, 1}, {1, 1}, 1, 1, groups);
      const poplar::OptionFlags options{{"planConstraints", R"({"method": ")" + method + "\"}"}};
      std::ostringstream report;
      poplin::reportPlanInfo(report, d.graph, params, options);
      CHECK(report.str().find(method) != std::string::npos);
    }
  }
}

TEST(constraints_that_no_plan_of_the_model_meets_are_errors_of_poplibs) {
  for (const char* json : {R"({"3": {}})", R"({"0": {"transform": {"outChanFlattenDims": [0]}}})",
                           R"({"0": {"partition": {"kernelSplit": {"0": 2}}}})"}) {
    bool thrown = false;
    try {
      readConstraints("convolution", json);
    } catch (const poputil::poplibs_error&) {
      thrown = true;
    }
    CHECK(thrown);
  }
}

TEST(constraints_change_the_plan_and_not_the_numbers) {
  Random random(5);
  for (int i = 0; i < 40; ++i) {
    OnDevice d;
    const std::size_t m = random.size(70), k = random.size(70), n = random.size(70);
    const auto type = random.flip() ? HALF : FLOAT;
    const Tensor a = d.random(type, {m, k}), b = d.random(type, {k, n});
    const Tensor plain = poplin::matMul(d.graph, a, b, d.prog, type, "plain");
    const std::string json =
        R"({"0": {"partition": {"inChanSplit": {"parallel": 1, "serial": 1}}}})";
    const Tensor other =
        poplin::matMul(d.graph, a, b, d.prog, type, "other", {{"planConstraints", json}});
    std::ostringstream report;
    poplin::matMulReportPlan(report, d.graph, type, type, {m, k}, {k, n},
                             {{"planConstraints", json}});
    CHECK(report.str().find("input channels 1,") != std::string::npos);
    const auto both = d.read(poplar::concat(plain.flatten(), other.flatten()));
    const std::size_t half = both.size() / 2;
    for (std::size_t j = 0; j < half; ++j) CHECK_EQ(both[j], both[half + j]);
  }
}
