#include <algorithm>
#include <array>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/conv/ImageLoops.hpp"

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

/// The result for each byte in each channel, as a pixel of four halves whose other channels are 0.
class BytePixels {
 public:
  explicit BytePixels(const ChannelScales& by) {
    std::uint16_t grey[3 * kBytes], made[4 * kBytes];
    for (int v = 0; v < kBytes; ++v)
      std::fill_n(grey + 3 * v, 3, floatToHalf(static_cast<float>(v)));
    imageLoops().halves(grey, made, kBytes, by);
    for (int v = 0; v < kBytes; ++v)
      for (int c = 0; c < 3; ++c) {
        std::uint16_t pixel[4] = {};
        pixel[c] = made[4 * v + c];
        std::memcpy(&pixels_[c][v], pixel, sizeof pixel);
      }
  }

  void operator()(const std::uint8_t* in, std::uint16_t* out, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t pixel =
          pixels_[0][in[3 * i]] | pixels_[1][in[3 * i + 1]] | pixels_[2][in[3 * i + 2]];
      std::memcpy(out + 4 * i, &pixel, sizeof pixel);
    }
  }

 private:
  static constexpr int kBytes = 256;
  std::uint64_t pixels_[3][kBytes];
};

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
    const auto scaled = [&by](auto loop) {
      return [&by, loop](const auto* in, auto* out, std::int64_t n) { loop(in, out, n, by); };
    };
    if (type_ == ElementType::kFloat)
      inParts(context, floats(p[0]), floats(p[3]), scaled(imageLoops().floats));
    else if (from_ == ElementType::kHalf)
      inParts(context, halves(p[0]), halves(p[3]), scaled(imageLoops().halves));
    else
      inParts(context, reinterpret_cast<const std::uint8_t*>(p[0]), halves(p[3]), BytePixels(by));
  }

 private:
  static float* floats(std::byte* p) { return reinterpret_cast<float*>(p); }
  static std::uint16_t* halves(std::byte* p) { return reinterpret_cast<std::uint16_t*>(p); }

  /// Calls loop(first value, first result, pixels) for parts of the image.
  template <class In, class Out, class Loop>
  void inParts(RunContext& context, const In* in, Out* out, const Loop& loop) const {
    context.pool.parallelFor(pixels_, kParallelPixels, [&](std::int64_t begin, std::int64_t end) {
      loop(in + 3 * begin, out + 4 * begin, end - begin);
    });
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
