#include <cmath>
#include <span>

#include "Check.hpp"
#include "Twins.hpp"
#include "poplar/Engine.hpp"
#include "poplar/IPUModel.hpp"

// Functions of popx/hardware, run by poplar::Engine, against those of the fast build.

namespace {

/// One program with all pairs, so that each codelet is compiled once.
class Pairs {
 public:
  void check(const std::vector<Twin>& fast, const std::vector<Twin>& hardware) {
    CHECK(!fast.empty());
    CHECK_EQ(fast.size(), hardware.size());
    for (std::size_t i = 0; i < fast.size(); ++i) add(fast[i], hardware[i]);
    poplar::Engine engine(graph_, prog_);
    engine.load(poplar::Device(graph_.getTarget()));
    for (const auto& [name, value] : inputs_)
      engine.writeTensor(name, value->bytes.data(), value->bytes.data() + value->bytes.size());
    engine.run();
    for (const Result& result : results_) compare(engine, result);
  }

 private:
  struct Result {
    std::string name;
    poplar::Tensor tensor;  ///< the hardware one; handles: name, and name + "+" for this one
    const Twin* twin;
  };

  void add(const Twin& fast, const Twin& hardware) {
    CHECK_EQ(fast.name, hardware.name);
    Twin::Tensors in;
    for (const auto& value : fast.inputs) {
      const std::string name = "in" + std::to_string(inputs_.size());
      in.push_back(
          graph_.addVariable(value.type, value.shape, poplar::VariableMappingMethod::LINEAR, name));
      if (value.bytes.empty()) continue;
      graph_.createHostWrite(name, in.back());
      inputs_.emplace_back(name, &value);
    }
    const auto wanted = fast.run(graph_, in, prog_);
    const auto got = hardware.run(graph_, in, prog_);
    CHECK_EQ(wanted.size(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::string name = fast.name + ": result " + std::to_string(results_.size());
      if (wanted[i].shape() != got[i].shape() || wanted[i].elementType() != got[i].elementType())
        check::fail(__FILE__, __LINE__, name, ": ", wanted[i].shapeToString(), " and ",
                    got[i].shapeToString());
      if (got[i].numElements() == 0) continue;
      graph_.createHostRead(name, wanted[i]);
      graph_.createHostRead(name + "+", got[i]);
      results_.push_back({name, got[i], &fast});
    }
  }

  std::vector<std::byte> read(poplar::Engine& engine, const std::string& handle,
                              const poplar::Tensor& t) const {
    std::vector<std::byte> bytes(t.numElements() * graph_.getTarget().getTypeSize(t.elementType()));
    engine.readTensor(handle, bytes.data(), bytes.data() + bytes.size());
    return bytes;
  }

  void compare(poplar::Engine& engine, const Result& result) const {
    const auto wanted = read(engine, result.name, result.tensor);
    const auto got = read(engine, result.name + "+", result.tensor);
    const auto type = result.tensor.elementType();
    const bool is_real = type == poplar::FLOAT || type == poplar::HALF;
    if (is_real && result.twin->ulps > 0) {
      compareUnits(result, realsOf(type, wanted), realsOf(type, got));
    } else if (result.twin->tolerance > 0 && type == poplar::FLOAT) {
      compareAll(result, realsOf(type, wanted), realsOf(type, got));
    } else if (wanted != got) {
      check::fail(__FILE__, __LINE__, result.name, ": other bytes");
    }
  }

  static std::vector<float> realsOf(poplar::Type type, const std::vector<std::byte>& bytes) {
    std::vector<float> values(bytes.size() / (type == poplar::HALF ? 2 : 4));
    if (type == poplar::HALF)
      poplar::copyDeviceHalfToFloat(poplar::Target::createIPUTarget(1, "ipu2"), bytes.data(),
                                    values.data(), values.size());
    else
      std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  /// Compares each element relative to its own size.
  static void compareUnits(const Result& result, const std::vector<float>& a,
                           const std::vector<float>& b) {
    const bool is_half = result.tensor.elementType() == poplar::HALF;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
      const double size =
          std::max<double>({std::abs(a[i]), result.twin->least, is_half ? 6.2e-5 : 1.2e-38});
      const double unit = std::exp2(std::floor(std::log2(size)) - (is_half ? 10 : 23));
      if (!(std::abs(double{a[i]} - double{b[i]}) <= result.twin->ulps * unit))
        check::fail(__FILE__, __LINE__, result.name, ": element ", i, ": ", a[i], " and ", b[i],
                    ", units apart: ", std::abs(double{a[i]} - double{b[i]}) / unit);
    }
  }

  static void compareAll(const Result& result, const std::vector<float>& a,
                         const std::vector<float>& b) {
    float largest = 1;
    for (const float x : a) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      if (!(std::abs(a[i] - b[i]) <= result.twin->tolerance * largest))
        check::fail(__FILE__, __LINE__, result.name, ": element ", i, ": ", a[i], " and ", b[i]);
    }
  }

  poplar::Graph graph_{poplar::IPUModel().createDevice()};
  poplar::program::Sequence prog_;
  std::vector<std::pair<std::string, const Twin::Value*>> inputs_;
  std::vector<Result> results_;
};

}  // namespace

TEST(linear_algebra) { Pairs().check(fast::linalg(), hardware::linalg()); }
TEST(fourier_transforms) { Pairs().check(fast::fourier(), hardware::fourier()); }
TEST(random_bits) { Pairs().check(fast::random(), hardware::random()); }
TEST(padding) { Pairs().check(fast::pads(), hardware::pads()); }
TEST(gathering) { Pairs().check(fast::gathers(), hardware::gathers()); }
TEST(mapping) { Pairs().check(fast::maps(), hardware::maps()); }
TEST(slicing) { Pairs().check(fast::slices(), hardware::slices()); }
TEST(sorting) { Pairs().check(fast::sorts(), hardware::sorts()); }
TEST(reducing) { Pairs().check(fast::reductions(), hardware::reductions()); }
TEST(reducing_windows) { Pairs().check(fast::windows(), hardware::windows()); }
TEST(selecting_and_scattering) { Pairs().check(fast::selections(), hardware::selections()); }
TEST(scattering) { Pairs().check(fast::scatters(), hardware::scatters()); }
TEST(operations_on_bits) { Pairs().check(fast::bitOperations(), hardware::bitOperations()); }
TEST(functions_that_popops_lacks) { Pairs().check(fast::functions(), hardware::functions()); }
TEST(functions_of_halves) {
  Pairs().check(fast::functionsOfHalves(), hardware::functionsOfHalves());
}
TEST(expressions_that_share_parts) { Pairs().check(fast::sharedParts(), hardware::sharedParts()); }
