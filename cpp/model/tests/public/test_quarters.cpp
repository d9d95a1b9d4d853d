#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <poplar/CSRFunctions.hpp>
#include <poplar/Engine.hpp>
#include <poplar/MetadataCreation.hpp>
#include <poplar/TypeConversion.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/VertexTemplates.hpp>
#include <sstream>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;
using Format = QuarterMetadata::Format;

namespace {

/// A quarter's value, from its bits alone: sign, exponent with this bias, fraction.
float valueOf(Format format, int scale, unsigned bits) {
  if (bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int fraction_bits = format == Format::F143 ? 3 : 2;
  const int bias = format == Format::F143 ? 8 : 16;
  const int exponent = static_cast<int>(bits & 0x7f) >> fraction_bits;
  const auto fraction = static_cast<float>(bits & ((1u << fraction_bits) - 1));
  const float one = std::ldexp(1.0F, fraction_bits);
  const float significand = exponent == 0 ? fraction / one : 1 + fraction / one;
  const float magnitude = std::ldexp(significand, std::max(exponent, 1) - bias + scale);
  return bits & 0x80 ? -magnitude : magnitude;
}

/// The value nearest to x; of two, the one with even bits.
float nearestTo(Format format, int scale, float x) {
  float best = 0;
  float distance = std::numeric_limits<float>::infinity();
  for (unsigned bits = 0; bits < 256; ++bits) {
    if (bits == 0x80) continue;
    const float value = valueOf(format, scale, bits);
    const float d = std::abs(value - x);
    if (d < distance || (d == distance && bits % 2 == 0)) {
      best = value;
      distance = d;
    }
  }
  return best;
}

void checkFloats(const std::vector<float>& got, const std::vector<float>& expected) {
  CHECK_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(got[i]));
    } else {
      CHECK_EQ(got[i], expected[i]);
    }
  }
}

}  // namespace

TEST(quarters_of_the_host_are_cast_to_floats) {
  for (const auto format : {Format::F143, Format::F152}) {
    for (const int scale : {-7, 0, 5}) {
      Fixture f;
      const Tensor in = f.graph.addVariable(QUARTER, {16, 16}, "in");
      CHECK(in.elementType() == QUARTER && in.hasMetadata());
      CHECK(in.getMetadata().elementType() == QUARTER_METADATA);
      poputil::mapTensorLinearly(f.graph, in);
      f.graph.createHostWrite("in", in);
      const Tensor out = popops::cast(f.graph, in.transpose(), FLOAT, f.prog);
      f.graph.createHostRead("out", out);
      std::vector<unsigned char> bits(256);
      std::vector<float> expected(256);
      for (unsigned i = 0; i < 256; ++i) {
        bits[i] = static_cast<unsigned char>(i);
        expected[i % 16 * 16 + i / 16] = valueOf(format, scale, i);
      }
      Engine engine(f.graph, f.prog);
      engine.load(f.device);
      engine.writeTensor("in", QuarterMetadata(format, scale), bits.data(),
                         bits.data() + bits.size());
      engine.run();
      checkFloats(f.read(engine, "out", 256), expected);
    }
  }
}

TEST(floats_are_rounded_to_the_nearest_quarters) {
  std::mt19937 random(5);
  const std::vector<float> values = randomFloats(random, 100);
  for (const auto format : {Format::F143, Format::F152}) {
    for (const int scale : {-6, 0}) {
      for (const Type& type : {FLOAT, HALF}) {
        Fixture f;
        const Tensor in = popops::cast(f.graph, f.constant<float>({100}, values), type, f.prog);
        const Tensor back = popops::cast(f.graph, in, FLOAT, f.prog);
        const Tensor metadata = createVariableMetadataTensor(f.graph, format, scale);
        const Tensor q = popops::cast(f.graph, in, QUARTER, metadata, f.prog);
        CHECK(q.elementType() == QUARTER && q.getMetadata() == metadata);
        f.graph.createHostRead("q", q);
        const Tensor out = popops::cast(f.graph, q, FLOAT, f.prog);
        f.graph.createHostRead("out", out);
        f.graph.createHostRead("back", back);
        Engine engine(f.graph, f.prog);
        engine.loadAndRun(f.device);
        std::vector<float> expected;
        for (const float x : f.read(engine, "back", 100))
          expected.push_back(nearestTo(format, scale, x));
        checkFloats(f.read(engine, "out", 100), expected);
        QuarterMetadata read;
        std::vector<unsigned char> bits(100);
        engine.readTensor("q", read, bits.data(), bits.data() + bits.size());
        CHECK_EQ(read, QuarterMetadata(format, scale));
        for (std::size_t i = 0; i < bits.size(); ++i)
          CHECK_EQ(valueOf(format, scale, bits[i]), expected[i]);
      }
    }
  }
}

TEST(what_is_too_large_for_a_quarter_is_nan_or_the_largest) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const bool nanoo : {true, false}) {
    Fixture f;
    setFloatingPointBehaviour(f.graph, f.prog, {false, false, false, false, nanoo});
    const Tensor in = f.constant<float>({4}, {1000, -1000, inf, std::nanf("")});
    const Tensor m = createConstantMetadataTensor(f.graph, Format::F143, 0);
    const Tensor q = popops::cast(f.graph, in, QUARTER, m, f.prog);
    const auto got = f.run(popops::cast(f.graph, q, FLOAT, f.prog));
    CHECK(std::isnan(got[2]) && std::isnan(got[3]));
    if (nanoo) {
      CHECK(std::isnan(got[0]) && std::isnan(got[1]));
    } else {
      CHECK_EQ(got[0], 240.0F);
      CHECK_EQ(got[1], -240.0F);
    }
  }
}

TEST(views_copies_and_clones_of_quarters_keep_their_metadata) {
  Fixture f;
  const Tensor m = createConstantMetadataTensor(f.graph, Format::F152, 2);
  const Tensor q = f.graph.addConstant(QUARTER, m, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(q.slice(0, 1).transpose().reshape({3}).getMetadata() == m);
  CHECK(concat(q, q).getMetadata() == m);
  CHECK(q.reinterpret(UNSIGNED_CHAR).elementType() == UNSIGNED_CHAR);
  const Tensor same = f.graph.clone(q);
  CHECK(same.elementType() == QUARTER && same.getMetadata() == m);
  f.prog.add(Copy(q, same));
  CHECK_EQ(f.graph.cloneN(q, 3).shapeToString(), "{3,2,3}");
  // A copy of a whole variable to one of another format copies its metadata too.
  const Tensor other = f.graph.addVariable(QUARTER, {2, 3}, VariableMappingMethod::LINEAR);
  f.prog.add(Copy(q, other));
  CHECK_THROWS(Copy(q[0], other[0]), "Cast the source");
  // 5 has no quarter with two bits of fraction but 5 = 1.25 * 4.
  const auto got = f.run(popops::cast(
      f.graph, concat(same.flatten(), popops::cast(f.graph, other, QUARTER, m, f.prog).flatten()),
      FLOAT, f.prog));
  checkFloats(got, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
}

TEST(a_scale_may_be_known_when_the_program_runs) {
  Fixture f;
  const Tensor scale = f.graph.addVariable(INT, {});
  f.graph.setTileMapping(scale, 1);
  f.graph.createHostWrite("scale", scale);
  const Tensor m = createVariableMetadataTensor(f.graph, Format::F143, scale, f.prog);
  const Tensor in = f.constant<float>({3}, {1000, 7000, 3});
  const Tensor q = popops::cast(f.graph, in, QUARTER, m, f.prog);
  const Tensor out = popops::cast(f.graph, q, INT, f.prog);
  f.graph.createHostRead("out", out);
  Engine engine(f.graph, f.prog);
  engine.load(f.device);
  const auto expect = [&](int s) {
    engine.writeTensor("scale", &s, &s + 1);
    engine.run();
    const auto got = f.read<int>(engine, "out", 3);
    CHECK_EQ(got[0], static_cast<int>(nearestTo(Format::F143, s, 1000)));
    CHECK_EQ(got[1], static_cast<int>(nearestTo(Format::F143, s, 7000)));
    CHECK_EQ(got[2], static_cast<int>(nearestTo(Format::F143, s, 3)));
  };
  expect(6);
  expect(10);
  const int bad = 32;
  engine.writeTensor("scale", &bad, &bad + 1);
  CHECK_THROWS(engine.run(), "[-32, 31]");
}

TEST(products_and_convolutions_of_quarters_are_those_of_their_values) {
  std::mt19937 random(7);
  Fixture f;
  const std::vector<float> a = randomFloats(random, 6), b = randomFloats(random, 12);
  const Tensor m = createConstantMetadataTensor(f.graph, Format::F143, -2);
  const Tensor lhs = poplin::createMatMulInputLHS(f.graph, QUARTER, HALF, {2, 3}, {3, 4}, "lhs");
  CHECK(lhs.elementType() == QUARTER);
  f.prog.add(Copy(f.graph.addConstant(QUARTER, m, {2, 3}, a), lhs));
  const Tensor rhs = f.graph.addConstant(QUARTER, m, {3, 4}, b);
  const Tensor product = poplin::matMul(f.graph, lhs, rhs, f.prog, FLOAT);
  // The same as a convolution over fields of one element.
  const poplin::ConvParams params(QUARTER, FLOAT, 2, {1}, {1}, 3, 4, 1);
  const Tensor in = poplin::createInput(f.graph, params, "in");
  const Tensor weights = poplin::createWeights(f.graph, params, "weights");
  f.prog.add(Copy(lhs.expand({2}), in));
  f.prog.add(Copy(rhs.transpose().reshape({1, 4, 3, 1}), weights));
  const Tensor convolved = poplin::convolution(f.graph, in, weights, params, false, f.prog);
  const auto got = f.run(concat(product.flatten(), convolved.flatten()));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 3; ++k)
        sum +=
            nearestTo(Format::F143, -2, a[i * 3 + k]) * nearestTo(Format::F143, -2, b[k * 4 + j]);
      CHECK_NEAR(got[i * 4 + j], sum, 1e-5);
      CHECK_NEAR(got[8 + i * 4 + j], sum, 1e-5);
    }
  }
}

TEST(streams_carry_quarters_without_metadata) {
  static const std::array<unsigned char, 4> kBits{0x3a, 0x81, 0x7f, 0x01};
  struct Source final : StreamCallbackWithMetadata {
    explicit Source(int& asked) : asked(asked) {}
    Result prefetch(void*) override { return Result::NotAvailable; }
    void complete() override {}
    void fetch(void* p) override {
      for (unsigned i = 0; i < 4; ++i) static_cast<unsigned char*>(p)[i] = kBits[i];
    }
    QuarterMetadata getMetadata() const override {
      ++asked;
      return {Format::F152, 5};
    }
    int& asked;
  };
  Fixture f;
  const Tensor m = createConstantMetadataTensor(f.graph, Format::F143, -2);
  const Tensor q = f.graph.addVariable(QUARTER, m, {4}, VariableMappingMethod::LINEAR, "q");
  const auto in = f.graph.addHostToDeviceFIFO("in", QUARTER, 4);
  const auto out = f.graph.addDeviceToHostFIFO("out", QUARTER, 4);
  f.prog.add(Copy(in, q));
  f.prog.add(Copy(q, out));
  f.graph.createHostRead("values", popops::cast(f.graph, q, FLOAT, f.prog));
  Engine engine(f.graph, f.prog);
  int asked = 0;
  std::array<unsigned char, 4> back{};
  engine.connectStreamToCallback("in", std::make_unique<Source>(asked));
  engine.connectStream("out", back.data(), back.data() + back.size());
  engine.loadAndRun(f.device);
  CHECK(back == kBits);
  CHECK_EQ(asked, 0);
  std::vector<float> expected;  // by the tensor's metadata, not by those of the callback
  for (const auto bits : kBits) expected.push_back(valueOf(Format::F143, -2, bits));
  checkFloats(f.read(engine, "values", 4), expected);
}

TEST(quarters_have_no_arithmetic_and_need_metadata) {
  Fixture f;
  const Tensor q = f.graph.addVariable(QUARTER, {4}, VariableMappingMethod::LINEAR);
  CHECK_THROWS(popops::add(f.graph, q, q, f.prog), "popops::cast");
  const Tensor x = f.variable("x", {4});
  CHECK_THROWS(f.graph.addVariable(QUARTER, x, {4}), "QUARTER_METADATA");
  CHECK_THROWS(x.getMetadata(), "QUARTER");
  CHECK_THROWS(concat(q, f.graph.addVariable(QUARTER, {4})), "metadata");
  CHECK_THROWS(createVariableMetadataTensor(f.graph, Format::F143, 40), "[-32, 31]");
  CHECK_THROWS(f.graph.addConstant(QUARTER, q.getMetadata(), {1}, 1.0F), "constant metadata");
  CHECK_EQ(QuarterMetadata(QuarterMetadata(Format::F143, -3).getBinary()),
           QuarterMetadata(Format::F143, -3));
}

TEST(quarters_are_filled_with_the_nearest_value) {
  for (const auto format : {Format::F143, Format::F152}) {
    for (const int scale : {-1, 0, 2}) {
      Fixture f(8);
      const auto metadata = createVariableMetadataTensor(f.graph, format, scale);
      const auto t = f.graph.addVariable(QUARTER, metadata, {5, 7});
      poputil::mapTensorLinearly(f.graph, t);
      popops::fill(f.graph, t, f.prog, 3.3F);
      popops::zero(f.graph, t.slice(1, 3), f.prog);
      popops::fill(f.graph, t[4], f.prog, -2);
      const auto cs = f.graph.addComputeSet();
      popops::fill(f.graph, t[3], f.graph.getTileMapping(t[3]), cs, 0.25F);
      f.prog.add(Execute(cs));
      std::vector<float> expected(35, nearestTo(format, scale, 3.3F));
      std::fill(expected.begin() + 7, expected.begin() + 21, 0.0F);
      std::fill(expected.begin() + 21, expected.begin() + 28, nearestTo(format, scale, 0.25F));
      std::fill(expected.begin() + 28, expected.end(), nearestTo(format, scale, -2));
      checkFloats(f.run(popops::cast(f.graph, t, FLOAT, f.prog)), expected);
    }
  }
}

TEST(vertices_fill_quarters_of_their_tensors_metadata) {
  for (const auto format : {Format::F143, Format::F152}) {
    for (const int scale : {-2, 0, 3}) {
      Fixture f(4);
      const auto metadata = createVariableMetadataTensor(f.graph, format, scale);
      const auto t = f.graph.addVariable(QUARTER, metadata, {3, 7});
      f.graph.setTileMapping(t, 1);
      const auto cs = f.graph.addComputeSet();
      const auto one =
          f.graph.addVertex(cs, poputil::templateVertex("popops::Fill", QUARTER), {{"out", t[0]}});
      const auto rows = f.graph.addVertex(cs, poputil::templateVertex("popops::Fill2d", QUARTER),
                                          {{"out", t.slice(1, 3)}});
      f.graph.setInitialValue(one["in"], 3.3F);
      f.graph.setInitialValue(rows["in"], -0.7F);
      f.graph.setTileMapping(one, 1);
      f.graph.setTileMapping(rows, 1);
      f.prog.add(Execute(cs));
      std::vector<float> expected(21, nearestTo(format, scale, -0.7F));
      std::fill(expected.begin(), expected.begin() + 7, nearestTo(format, scale, 3.3F));
      checkFloats(f.run(popops::cast(f.graph, t, FLOAT, f.prog)), expected);
    }
  }
}

namespace {

/// Writes the metadata of all vectors that it is connected to: one vector, and two lists.
const char* const kMetadataCodelet = R"(
#include <poplar/QuarterFloat.hpp>
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Formats : Vertex {
  Input<Vector<quarter, VectorLayout::ONE_PTR>> one;
  Vector<Input<Vector<quarter>>> rows;
  Input<VectorList<quarter>> list;
  Output<Vector<unsigned>> out;
  bool compute() {
    out[0] = *one.getMetadata();
    unsigned n = 1;
    for (auto& row : rows) out[n++] = *row.getMetadata() << 8 | row[row.size() - 1].bits;
    for (unsigned i = 0; i < list.size(); ++i)
      out[n++] = *list[i].getMetadata() << 8 | list[i][list[i].size() - 1].bits;
    return true;
  }
};
)";

}  // namespace

TEST(codelets_see_the_metadata_of_each_tensor) {
  const std::vector<QuarterMetadata> known{QuarterMetadata(Format::F143, -7),
                                           QuarterMetadata(Format::F152, 31),
                                           QuarterMetadata(Format::F152, -32)};
  for (const int late : {0, 5, -20}) {
    Fixture f(4);
    std::istringstream source(kMetadataCodelet);
    f.graph.addCodelets(source);
    std::vector<Tensor> rows;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto m =
          createConstantMetadataTensor(f.graph, known[i].getFormat(), known[i].getScale());
      const auto bytes = f.constant<unsigned char>({i + 1}, std::vector<unsigned char>(i + 1, i));
      rows.push_back(f.graph.clone(QUARTER, m, bytes));
      f.prog.add(Copy(bytes, rows.back().reinterpret(UNSIGNED_CHAR)));
    }
    // Metadata that are set when the program runs, from a variable.
    const auto scale = f.constant<int>({}, {late});
    const auto m = createVariableMetadataTensor(f.graph, Format::F143, scale, f.prog);
    const auto set = f.graph.addVariable(QUARTER, m, {2, 4});
    const auto plain = f.constant<unsigned char>({3}, {4, 5, 6});
    f.graph.setTileMapping(set, 1);
    const auto out = f.graph.addVariable(UNSIGNED_INT, {6});
    f.graph.setTileMapping(out, 2);
    f.prog.add(Copy(f.constant<unsigned char>({8}, {0, 0, 0, 8, 0, 0, 0, 9}).reshape({2, 4}),
                    set.reinterpret(UNSIGNED_CHAR)));
    const auto cs = f.graph.addComputeSet();
    const auto v = f.graph.addVertex(cs, "Formats", {{"one", plain}, {"list", set}, {"out", out}});
    f.graph.connect(v["rows"], rows);
    f.graph.setTileMapping(v, 2);
    f.prog.add(Execute(cs));
    std::vector<float> expected{0x80};  // bytes that no tensor gives metadata: F143 and scale 0
    for (std::size_t i = 0; i < known.size(); ++i)
      expected.push_back(static_cast<float>(known[i].getBinary() << 8 | i));
    for (const int last : {8, 9})
      expected.push_back(
          static_cast<float>(QuarterMetadata(Format::F143, late).getBinary() << 8 | last));
    checkFloats(f.run(popops::cast(f.graph, out, FLOAT, f.prog)), expected);
  }
}
