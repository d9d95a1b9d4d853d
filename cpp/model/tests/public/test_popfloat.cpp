#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <popfloat/experimental/CastToGfloat.hpp>
#include <popfloat/experimental/codelets.hpp>
#include <popops/Cast.hpp>
#include <random>
#include <string>

#include "Check.hpp"
#include "Fixture.hpp"

/// Casts to small formats, against a list of all values that a format has.
using namespace poplar;
using namespace popfloat::experimental;

namespace {

struct Small {
  unsigned mantissa;
  unsigned exponent;
  int bias;
  bool denorms;
  bool infs;

  /// Values by their bits without the sign; the position in the list is the packed value.
  std::vector<double> values() const {
    std::vector<double> all;
    const int exponents = (1 << exponent) - (infs ? 1 : 0);
    for (int e = 0; e < exponents; ++e) {
      for (int m = 0; m < 1 << mantissa; ++m) {
        const double fraction = std::ldexp(static_cast<double>(m), -static_cast<int>(mantissa));
        const double value =
            e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias);
        all.push_back(e == 0 && !denorms ? 0.0 : value);
      }
    }
    return all;
  }
  GfloatCast cast(RoundType round, bool nanoo, SpecType gf, SpecType native) const {
    const GfloatCast::FormatConfig config(mantissa, exponent, bias, denorms, infs, SpecType::FP32);
    return GfloatCast(config, {round, 23, config.getCalculationType()}, nanoo, gf, native);
  }
};

/// The position in `all` that |x| is rounded to; all.size() if it is too large.
std::size_t positionOf(const std::vector<double>& all, double x, RoundType mode) {
  const double size = std::abs(x);
  const double step = all[all.size() - 1] - all[all.size() - 2];
  std::vector<double> grid = all;
  grid.push_back(all.back() + step);
  const auto above = std::upper_bound(grid.begin(), grid.end(), size);
  if (above == grid.end()) return all.size();
  const auto low = static_cast<std::size_t>(above - grid.begin()) - 1;
  const double middle = (grid[low] + grid[low + 1]) / 2;
  const bool exact = grid[low] == size;
  if (exact || mode == RoundType::RZ) return low;
  if (mode == RoundType::RU) return x > 0 ? low + 1 : low;
  if (mode == RoundType::RD) return x > 0 ? low : low + 1;
  if (size != middle) return size > middle ? low + 1 : low;
  return mode == RoundType::RA || low % 2 == 1 ? low + 1 : low;
}

std::vector<float> inputsFor(const std::vector<double>& all) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> share(0, 1);
  std::vector<float> inputs{0, -0.0f, 1, -1};
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const double sign = i % 2 ? 1 : -1;
    for (const double at : {0.0, 0.5, share(random)})
      inputs.push_back(static_cast<float>(sign * (all[i] + at * (all[i + 1] - all[i]))));
  }
  for (const double factor : {1.01, 2.0, 100.0}) {
    inputs.push_back(static_cast<float>(all.back() * factor));
    inputs.push_back(static_cast<float>(-all.back() * factor));
  }
  return inputs;
}

void checkRounding(const Small& format, RoundType mode, bool nanoo) {
  const auto all = format.values();
  const auto inputs = inputsFor(all);
  Fixture f;
  addCodelets(f.graph);
  const Tensor in = f.constant<float>({inputs.size()}, inputs);
  GfloatCast cast = format.cast(mode, nanoo, SpecType::FP32, SpecType::FP32);
  cast.createCastOpParamsTensor(f.graph, f.prog);
  const auto got = f.run(cast.castNativeToGfloat(f.graph, in, f.prog));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t position = positionOf(all, inputs[i], mode);
    if (position >= all.size() && nanoo) {
      CHECK(std::isnan(got[i]));
      continue;
    }
    const double size = all[std::min(position, all.size() - 1)];
    CHECK_EQ(got[i], static_cast<float>(std::copysign(size, inputs[i])));
  }
}

}  // namespace

TEST(gfloats_are_rounded_to_the_values_of_their_format) {
  const Small e4m3{3, 4, 7, true, false};
  const Small e5m2{2, 5, 15, true, true};
  const Small e3m2{2, 3, 3, true, false};
  for (const auto& format : {e4m3, e5m2, e3m2}) {
    for (const RoundType mode :
         {RoundType::RN, RoundType::RZ, RoundType::RA, RoundType::RU, RoundType::RD})
      checkRounding(format, mode, mode == RoundType::RN);
  }
}

TEST(gfloats_are_packed_as_their_bits_and_unpacked) {
  for (const Small& format : {Small{3, 4, 7, true, false}, Small{2, 5, 16, true, true}}) {
    const auto all = format.values();
    std::vector<float> values;
    for (const double x : all) values.push_back(static_cast<float>(x));
    for (const double x : all) values.push_back(static_cast<float>(-x));
    Fixture f;
    GfloatCast cast = format.cast(RoundType::RN, false, SpecType::INT8, SpecType::FP16);
    cast.createCastOpParamsTensor(f.graph, f.prog);
    const Tensor in = f.constant<float>({values.size()}, values);
    const Tensor packed = cast.castNativeToGfloat(f.graph, in, f.prog);
    CHECK(packed.elementType() == CHAR);
    const Tensor back = cast.castGfloatToNative(f.graph, packed, f.prog);
    CHECK(back.elementType() == HALF);
    const Tensor bits = f.variable("bits", packed.shape(), CHAR);
    const Tensor wide = f.variable("wide", back.shape(), FLOAT);
    f.prog.add(program::Copy(packed, bits));
    f.prog.add(popops::cast(f.graph, back, wide));
    Engine engine(f.graph, f.prog);
    engine.loadAndRun(f.device);
    const auto got = f.read<signed char>(engine, "bits", values.size());
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (i == all.size()) continue;  // -0: the sign bit may be lost on the way
      const std::size_t sign = i < all.size() ? 0 : 128;
      CHECK_EQ(static_cast<unsigned>(static_cast<unsigned char>(got[i])),
               static_cast<unsigned>(i % all.size() + sign));
    }
    CHECK(f.read(engine, "wide", values.size()) == values);
  }
}

TEST(bfloat16_cuts_a_float_and_is_stored_in_shorts) {
  const std::vector<float> values{1, -3.140625f, 1e30f, -2e-20f, 65504};
  Fixture f;
  const GfloatCast::FormatConfig config(7, 8, 127, false, true, SpecType::AUTO);
  CHECK(config.getFormatType() == FormatType::BFLOAT16);
  CHECK(config.getStorageType() == SHORT);
  GfloatCast cast(config, {RoundType::RZ, 23, FLOAT}, true);
  cast.createCastOpParamsTensor(f.graph, f.prog);
  const Tensor in = f.constant<float>({values.size()}, values);
  const Tensor packed = cast.castNativeToGfloat(f.graph, in, f.prog);
  const auto got = f.run<short>(packed);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof bits);
    CHECK_EQ(static_cast<unsigned short>(got[i]), static_cast<unsigned short>(bits >> 16));
  }
}

TEST(halves_are_cast_in_place_and_shorts_come_back) {
  const GfloatCast::FormatConfig config(4, 5, 15, true, true, SpecType::AUTO);
  CHECK(config.getCalculationType() == HALF);
  CHECK(config.getFormatType() == FormatType::QUANTISED_FP16);
  Fixture f;
  GfloatCast cast(config, {RoundType::RN, 23, HALF}, false);
  CHECK_THROWS(cast.castNativeToGfloat(f.graph, f.constant<float>({1}, {1}), f.prog),
               "createCastOpParamsTensor");
  cast.createCastOpParamsTensor(f.graph, f.prog);
  const Tensor halves = f.constant<float>({4}, {1.03125f, 1.09375f, -3, 65504}, HALF);
  cast.castNativeToGfloatInPlace(f.graph, halves, f.prog);
  const GfloatCast::FormatConfig wide(9, 6, 31, true, true, FLOAT);
  GfloatCast to_short(wide, {RoundType::RN, 23, FLOAT}, false);
  to_short.createCastOpParamsTensor(f.graph, f.prog);
  const Tensor in = popops::cast(f.graph, halves, FLOAT, f.prog);
  const Tensor packed = to_short.castNativeToGfloat(f.graph, in, f.prog);
  CHECK(packed.elementType() == SHORT);
  // Halfway cases go to the even neighbour, and what is too large to the largest value.
  CHECK(f.run(to_short.castGfloatToNative(f.graph, packed, f.prog)) ==
        (std::vector<float>{1, 1.125f, -3, 63488}));
}

TEST(formats_with_more_exponents_than_floats_have_their_rounding_and_the_limits_of_floats) {
  const GfloatCast::FormatConfig config(10, 15, 15, true, true);
  CHECK(config.getCalculationType() == FLOAT);
  CHECK(config.getFormatType() == FormatType::QUANTISED_FP32);
  Fixture f;
  const float largest = std::ldexp(2.0f - std::ldexp(1.0f, -10), 127);
  const Tensor in =
      f.constant<float>({4}, {1 + std::ldexp(1.0f, -10) * 1.25f, 3e30f, largest, -1e-9f});
  GfloatCast cast(config, {RoundType::RZ, 23, FLOAT}, true, SpecType::AUTO, SpecType::AUTO);
  cast.createCastOpParamsTensor(f.graph, f.prog);
  const auto got = f.run(cast.castNativeToGfloat(f.graph, in, f.prog));
  CHECK_EQ(got[0], 1 + std::ldexp(1.0f, -10));
  CHECK(got[1] <= 3e30f && got[1] > 2.99e30f);
  CHECK_EQ(got[2], largest);
  CHECK_EQ(got[3], -0.0f);  // below the least subnormal value, 2^-24
  CHECK_THROWS(GfloatCast::FormatConfig(10, 16, 15, true, true), "15 of the exponent");
  CHECK_THROWS(GfloatCast::FormatConfig(10, 9, 15, true, true, FLOAT), "8 of the exponent");
}

TEST(casts_to_gfloats_are_in_the_records_of_debug_info) {
  const std::string path = "popfloat_records.json";
  DebugInfo::initializeStreamer(path, DebugSerializationFormat::JSON);
  Fixture f;
  GfloatCast cast =
      Small{3, 4, 7, true, false}.cast(RoundType::RZ, true, SpecType::FP32, SpecType::FP32);
  cast.createCastOpParamsTensor(f.graph, f.prog);
  const Tensor out = cast.castNativeToGfloat(f.graph, f.constant<float>({1}, {1}), f.prog);
  cast.castGfloatToNative(f.graph, out, f.prog);
  DebugInfo::closeStreamer();
  std::ifstream file(path);
  const std::string records((std::istreambuf_iterator<char>(file)), {});
  std::remove(path.c_str());
  for (const char* name : {"createCastOpParamsTensor", "castNativeToGfloat", "castGfloatToNative"})
    CHECK(records.find("\"" + std::string(name) + "\"") != std::string::npos);
}

TEST(gfloat_casts_join_compute_sets_and_share_parameters) {
  const GfloatCast::FormatConfig config(3, 4, 7, true, false, SpecType::FP32);
  Fixture f;
  const ComputeSet cs = f.graph.addComputeSet("casts");
  const Tensor given =
      f.graph.addConstant(INT, {1}, static_cast<int>(config.getPackedFloatParameters()));
  f.graph.setTileMapping(given, 0);
  const Tensor param = GfloatCast::createCastOpParamsTensor(f.graph, cs, FLOAT, given);
  GfloatCast cast(config, {RoundType::RZ, 23, FLOAT}, false, SpecType::FP32, SpecType::FP32);
  const Tensor in = f.constant<float>({2}, {1.2f, 300});
  const Tensor second = f.constant<float>({1}, {-0.7f});
  const Tensor out =
      GfloatCast::castNativeToGfloat(f.graph, in, param, cs, cast.getNativeToGFConfig());
  cast.setGfloatCastParameters(new Tensor(param));
  cast.castNativeToGfloatInPlace(f.graph, second, cs);
  f.prog.add(program::Execute(cs));
  CHECK(f.run(concat(out, second)) == (std::vector<float>{1.125f, 288, -0.6875f}));
  CHECK_THROWS(GfloatCast::createCastOpParamsTensor(f.graph, f.prog, FLOAT, second), "no constant");
}

TEST(gfloat_casts_that_are_not_exact_are_refused) {
  Fixture f;
  const Tensor in = f.constant<float>({2}, {1, 2});
  const auto made = [&](const Small& format, RoundType mode, SpecType gf) {
    GfloatCast cast = format.cast(mode, true, gf, SpecType::FP32);
    cast.createCastOpParamsTensor(f.graph, f.prog);
    cast.castNativeToGfloat(f.graph, in, f.prog);
  };
  CHECK_THROWS(made({3, 4, 7, true, false}, RoundType::SR, SpecType::FP32), "at random");
  CHECK_THROWS(made({3, 4, 40, true, false}, RoundType::RN, SpecType::FP16), "SpecType::FP32");
  CHECK_THROWS(made({2, 3, 3, true, false}, RoundType::RN, SpecType::INT8), "8 bits for char");
  CHECK_THROWS(made({7, 0, 0, true, false}, RoundType::RN, SpecType::FP32), "exponents");
  CHECK_THROWS(GfloatCast::FormatConfig(24, 8, 127, true, true, FLOAT), "at most 23");
  CHECK_THROWS(GfloatCast::FormatConfig(7, 8, 127, true, true, SpecType::FP16), "FP32");
  CHECK_THROWS(GfloatCast::GfloatFormatOptions(OptionFlags{{"bits", "3"}}), "'bits'");
  const GfloatCast::GfloatCastOptions options(OptionFlags{{"roundMode", "RU"}});
  CHECK(options.roundMode == RoundType::RU);
}
