#include <array>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/Kernel.hpp"
#include "engine/kernels/ImageLoops.hpp"

/// The kernel "popops.normalise_image": image [pixels, 3], offsets [3], scales [3], result
/// [pixels, 4]; attribute "scale".
namespace ipujax::engine {
namespace {

constexpr std::int64_t kParallelPixels = 16 * 1024;

/// Element i of three floats, or of halves.
float numberAt(ElementType type, const std::byte* p, std::int64_t i) {
  if (type == ElementType::kFloat) {
    float value = 0;
    std::memcpy(&value, p + 4 * i, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, p + 2 * i, sizeof bits);
  return halfToFloat(bits);
}

class NormaliseImage final : public Kernel {
 public:
  explicit NormaliseImage(const StepDesc& step)
      : pixels_(step.operands[0].shape[0]),
        from_(step.operands[0].type),
        type_(step.operands[3].type),
        strides_{step.operands[1].strides[0], step.operands[2].strides[0]} {
    scale_ = static_cast<float>(step.attributes.real("scale"));
    if (type_ == ElementType::kHalf) scale_ = halfToFloat(floatToHalf(scale_));
  }

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    ChannelScales by{scale_, {}, {}};
    for (std::int64_t c = 0; c < 3; ++c) {
      by.offsets[c] = numberAt(type_, p[1], c * strides_[0]);
      by.scales[c] = numberAt(type_, p[2], c * strides_[1]);
    }
    context.pool.parallelFor(pixels_, kParallelPixels, [&](std::int64_t begin, std::int64_t end) {
      part(p, begin, end - begin, by);
    });
  }

 private:
  void part(std::span<std::byte* const> p, std::int64_t first, std::int64_t n,
            const ChannelScales& by) const {
    const auto run = [&]<class In, class Out>(auto loop, In, Out) {
      loop(reinterpret_cast<const In*>(p[0]) + 3 * first, reinterpret_cast<Out*>(p[3]) + 4 * first,
           n, by);
    };
    if (type_ == ElementType::kFloat)
      run(imageLoops().floats, float{}, float{});
    else if (from_ == ElementType::kHalf)
      run(imageLoops().halves, std::uint16_t{}, std::uint16_t{});
    else
      run(imageLoops().bytes, std::uint8_t{}, std::uint16_t{});
  }

  std::int64_t pixels_;
  ElementType from_, type_;
  std::array<std::int64_t, 2> strides_;
  float scale_;
};

void checkNormaliseImage(StepCheck& check) {
  check.operands(4);
  check.real("scale");
  const auto image = check.read(0).hasRank(2).isContiguous();
  const std::int64_t pixels = image->shape[0];
  check.need(image->shape[1] == 3, "three channels");
  const auto out =
      check.written(3).isFloating().isContiguous().hasShape(std::array{pixels, std::int64_t{4}});
  check.need(image->type == out->type ||
                 (image->type == ElementType::kUInt8 && out->type == ElementType::kHalf),
             "an image of the result's type, or bytes for halves");
  for (const std::size_t i : {1, 2})
    check.read(i).hasTypeOf(out).hasShape(std::array{std::int64_t{3}});
}

const RegisterKernel kNormaliseImage{"popops.normalise_image", makeKernel<NormaliseImage>,
                                     checkNormaliseImage};

}  // namespace
}  // namespace ipujax::engine
