#include <limits>
#include <poplar/CSRFunctions.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <string>

#include "Check.hpp"
#include "Fixture.hpp"

/// Floating-point exceptions: which results end a program.
using namespace poplar;
using namespace poplar::program;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Two variables that a test divides, multiplies or casts.
struct Operands {
  Fixture f;
  Tensor a;
  Tensor b;

  Operands(const std::vector<float>& left, const std::vector<float>& right)
      : a(f.constant({left.size()}, left)), b(f.constant({right.size()}, right)) {}
  void behave(bool inv, bool div0, bool oflo) {
    setFloatingPointBehaviour(f.graph, f.prog, {inv, div0, oflo, false, true});
  }
  /// The exception that ends a run of the program; "" for none.
  std::string exception(const OptionFlags& options = {}) {
    Engine engine(f.graph, f.prog, options);
    engine.load(f.device);
    try {
      engine.run();
    } catch (const application_runtime_error& error) {
      return error.what();
    }
    return "";
  }
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(each_exception_is_told_by_what_made_it) {
  const auto divided = [](float left, float right, bool inv, bool div0, bool oflo) {
    Operands o({1, left}, {1, right});
    o.behave(inv, div0, oflo);
    popops::div(o.f.graph, o.a, o.b, o.f.prog, "ratio");
    return o.exception();
  };
  CHECK(has(divided(0, 0, true, false, false), "an invalid operation"));
  CHECK(has(divided(0, 0, true, false, false), "'ratio"));
  CHECK(has(divided(0, 0, true, false, false), "element 1 of float {2}"));
  CHECK_EQ(divided(0, 0, false, true, true), std::string());
  CHECK(has(divided(2, 0, false, true, false), "a division by zero"));
  CHECK_EQ(divided(2, 0, true, false, true), std::string());
  CHECK(has(divided(1e30f, 1e-30f, false, false, true), "an overflow"));
  CHECK_EQ(divided(1e30f, 1e-30f, true, true, false), std::string());
  CHECK_EQ(divided(3, 4, true, true, true), std::string());
}

TEST(what_operands_bring_is_no_exception) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Operands o({nan, kInf, -kInf, 1}, {1, 2, 3, 4});
  o.behave(true, true, true);
  popops::mul(o.f.graph, o.a, o.b, o.f.prog);
  CHECK_EQ(o.exception(), std::string());
  popops::subInPlace(o.f.graph, o.a, o.a, o.f.prog, "difference");
  const std::string error = o.exception();
  CHECK(has(error, "an invalid operation"));  // infinity less infinity
  CHECK(has(error, "'difference"));
  CHECK(has(error, "element 1 of"));
}

TEST(halves_overflow_whether_they_would_saturate_or_not) {
  Operands o({60000, 70000}, {0, 0});
  o.behave(false, false, true);
  popops::cast(o.f.graph, o.a, HALF, o.f.prog, "narrow");
  CHECK(has(o.exception(), "an overflow"));
  Operands quiet({60000, 70000}, {0, 0});
  quiet.behave(true, true, false);
  popops::cast(quiet.f.graph, quiet.a, HALF, quiet.f.prog, "narrow");
  CHECK_EQ(quiet.exception(), std::string());
}

TEST(the_behaviour_holds_for_steps_added_after_it) {
  Operands o({1}, {0});
  popops::div(o.f.graph, o.a, o.b, o.f.prog, "before");
  CHECK_EQ(o.exception(), std::string());
  CHECK(has(o.exception({{"debug.floatPointOpException", "true"}}), "'before"));
  CHECK_THROWS(o.exception({{"debug.floatPointOpException", "perhaps"}}), "true | false");
  o.behave(true, true, true);
  popops::div(o.f.graph, o.a, o.b, o.f.prog, "after");
  CHECK(has(o.exception(), "'after"));
}

TEST(loops_that_run_as_one_kernel_are_looked_at_too) {
  Operands o({2, 3}, {2, 3});
  o.behave(false, false, true);
  Sequence body;
  popops::mulInPlace(o.f.graph, o.a, o.a, body, "square");
  o.f.prog.add(Repeat(20, body));
  CHECK(has(o.exception(), "an overflow"));
  Operands short_loop({2, 3}, {2, 3});
  short_loop.behave(true, true, true);
  Sequence once;
  popops::mulInPlace(short_loop.f.graph, short_loop.a, short_loop.a, once);
  short_loop.f.prog.add(Repeat(3, once));
  CHECK_EQ(short_loop.exception(), std::string());
}
