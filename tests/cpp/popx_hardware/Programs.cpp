#include <random>
#include <tuple>

#include "Twins.hpp"
#include "popops/Cast.hpp"
#include "popx/Dropout.hpp"
#include "popx/Fft.hpp"
#include "popx/Pad.hpp"
#include "popx/Random.hpp"

namespace TWINS {

namespace {

using poplar::Graph;
using poplar::program::Sequence;
using Tensors = Twin::Tensors;

Twin::Value randomBytes(poplar::Type type, std::vector<std::size_t> shape, std::size_t bytes) {
  std::size_t size = bytes;
  for (const auto d : shape) size *= d;
  std::mt19937 engine(static_cast<unsigned>(size));
  std::vector<std::byte> values(size);
  for (auto& x : values) x = static_cast<std::byte>(engine());
  return {type, std::move(shape), std::move(values)};
}

Twin::Value randomFloats(std::vector<std::size_t> shape, unsigned seed) {
  std::size_t size = 1;
  for (const auto d : shape) size *= d;
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (auto& x : values) x = normal(engine);
  return valueOf(poplar::FLOAT, std::move(shape), values);
}

/// Blocks of a mask: (block, starts, mask).
void addDropouts(std::vector<Twin>& twins) {
  using Sizes = std::vector<std::size_t>;
  const std::tuple<Sizes, std::vector<int>, Sizes> blocks[] = {
      {{3, 5}, {3, 0}, {9, 5}}, {{3, 5}, {2, 7}, {9, 12}},
      {{4, 1}, {0, 2}, {4, 3}}, {{2, 3, 4}, {2, 1, 0}, {6, 1, 4}},
      {{7}, {1}, {1}},          {{}, {}, {}},
      {{600}, {403}, {1003}},   {{150, 1}, {3, 5}, {300, 7}}};
  for (const auto& [shape, starts, mask] : blocks) {
    std::size_t elements = 1;
    for (const std::size_t size : shape) elements *= size;
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = 0.5f + static_cast<float>(i);
    const auto seed = valueOf<unsigned>(poplar::UNSIGNED_INT, {2}, {7, 11});
    const auto begin = valueOf(poplar::INT, {starts.size()}, starts);
    for (const auto type : {poplar::FLOAT, poplar::HALF}) {
      twins.push_back({"dropout of " + std::to_string(elements) + " " + type.toString(),
                       {seed, valueOf(poplar::FLOAT, shape, values), begin},
                       [=, mask = mask](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
                         const auto x = popops::cast(g, in[1], type, p);
                         return {popx::dropoutBlock(g, in[0], x, in[2], mask, 0.6, 1.25, p)};
                       },
                       0,
                       1});
    }
  }
}

}  // namespace

std::vector<Twin> fourier() {
  using popx::FftType;
  std::vector<Twin> twins;
  const std::vector<std::vector<std::size_t>> sizes = {{1},    {2},   {3},    {4},       {8},
                                                       {30},   {97},  {256},  {1024},    {1042},
                                                       {1155}, {521}, {5, 6}, {4, 3, 8}, {0}};
  for (const auto& lengths : sizes) {
    for (const auto type : {FftType::FFT, FftType::IFFT, FftType::RFFT, FftType::IRFFT}) {
      std::vector<std::size_t> shape = {3};
      shape.insert(shape.end(), lengths.begin(), lengths.end());
      if (type == FftType::IRFFT) shape.back() = shape.back() / 2 + 1;
      std::vector<Twin::Value> inputs = {randomFloats(shape, 1)};
      if (type != FftType::RFFT) inputs.push_back(randomFloats(shape, 2));
      std::string name = "fft of type " + std::to_string(static_cast<int>(type));
      for (const auto n : lengths) name += " " + std::to_string(n);
      twins.push_back({name, inputs,
                       [=](Graph& g, const Tensors& in, Sequence& p) {
                         return popx::fft(g, in, type, lengths, p);
                       },
                       2e-6});
    }
  }
  return twins;
}

std::vector<Twin> random() {
  std::vector<Twin> twins;
  const std::vector<std::vector<std::size_t>> shapes = {{},        {1},       {7},    {8, 3},
                                                        {5, 3, 7}, {3, 4, 5}, {0, 2}, {20001}};
  const poplar::Type types[] = {poplar::UNSIGNED_CHAR,     poplar::SHORT, poplar::UNSIGNED_INT,
                                poplar::UNSIGNED_LONGLONG, poplar::FLOAT, poplar::HALF};
  const auto add = [&](const std::string& algorithm, poplar::Type state, std::size_t words) {
    const std::size_t each = state == poplar::UNSIGNED_INT ? 4 : 8;
    for (const auto& shape : shapes) {
      for (const auto type : types) {
        auto key = randomBytes(state, {words}, each);
        // The counter's low half overflows within the longest result.
        for (std::size_t i = 8; i < 16; ++i) key.bytes[i] = std::byte{0xff};
        key.bytes[9] = std::byte{0xf0};
        twins.push_back(
            {algorithm + " " + type.toString() + " of rank " + std::to_string(shape.size()),
             {key},
             [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
               const auto [next, bits] = popx::rngBitGenerator(g, in[0], algorithm, shape, type, p);
               return {next, bits};
             }});
      }
    }
  };
  add("threefry", poplar::UNSIGNED_INT, 4);
  add("threefry", poplar::UNSIGNED_LONGLONG, 2);
  add("philox", poplar::UNSIGNED_INT, 4);
  add("philox", poplar::UNSIGNED_INT, 6);
  add("default", poplar::UNSIGNED_LONGLONG, 3);
  addDropouts(twins);
  return twins;
}

std::vector<Twin> pads() {
  std::vector<Twin> twins;
  std::mt19937 engine(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  const std::pair<poplar::Type, std::size_t> types[] = {
      {poplar::FLOAT, 4}, {poplar::HALF, 2}, {poplar::INT, 4}, {poplar::UNSIGNED_CHAR, 1}};
  for (int i = 0; i < 40; ++i) {
    const auto [type, bytes] = types[i % 4];
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> low, high, interior;
    for (int d = 0; d < 1 + i % 3; ++d) {
      const int n = pick(0, 6);
      shape.push_back(static_cast<std::size_t>(n));
      interior.push_back(pick(0, 2));
      low.push_back(pick(-n / 2, 3));
      high.push_back(pick(-n / 2, 3));
    }
    twins.push_back({"pad " + std::to_string(i),
                     {randomBytes(type, shape, bytes), randomBytes(type, {}, bytes)},
                     [=](Graph& g, const Tensors& in, Sequence& p) -> Tensors {
                       return {popx::pad(g, in[0], in[1], low, high, interior, p)};
                     }});
  }
  return twins;
}

}  // namespace TWINS
