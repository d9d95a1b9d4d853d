#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "Check.hpp"
#include "engine/blas/MicroKernel.hpp"
#include "engine/blas/Rows.hpp"

/// The micro kernels of every arithmetic and of each instruction set that this CPU has, against
/// their definitions. Values are small integers: sums are exact in every word.
namespace {

using namespace ipujax::engine;
using namespace ipujax::engine::blas;

/// function(table of M) for each instruction set.
template <class M, class F>
void forTables(F function) {
  function(baseline::microTable<M>());
#ifdef IPUJAX_X86
  if (isa() != Isa::kBaseline) function(avx2::microTable<M>());
  if (isa() == Isa::kAvx512) function(avx512::microTable<M>());
#endif
}

template <class M>
struct Words {
  std::mt19937 engine{3};
  Word<M> operator()() {
    const auto digit = [&] { return std::uniform_int_distribution<int>(-9, 9)(engine); };
    if constexpr (M::kPerWord == 2) {
      return static_cast<std::uint16_t>(digit()) |
             static_cast<std::uint32_t>(static_cast<std::uint16_t>(digit())) << 16;
    } else {
      return static_cast<Word<M>>(digit());
    }
  }
  std::vector<Word<M>> many(std::int64_t count) {
    std::vector<Word<M>> values(static_cast<std::size_t>(count));
    for (auto& v : values) v = (*this)();
    return values;
  }
};

template <class M>
Word<M> product(Word<M> a, Word<M> b) {
  if constexpr (M::kPerWord == 2) {
    const auto part = [](std::uint32_t x, int shift) {
      return static_cast<std::int32_t>(static_cast<std::int16_t>(x >> shift));
    };
    return static_cast<Word<M>>(part(a, 0) * part(b, 0) + part(a, 16) * part(b, 16));
  } else {
    return a * b;
  }
}

template <class M>
void checkTile(const MicroTable<M>& table, int panels, int rows, std::int64_t cols,
               bool accumulate) {
  constexpr std::int64_t kDepth = 7, kSegments = 2;
  Words<M> random;
  const std::int64_t segments[] = {0, 500};
  const auto a = random.many(1000);
  const auto b = random.many(panels * kPanel<M> * kDepth * kSegments);
  const std::int64_t ld = panels * kPanel<M> + 3;
  const auto before = random.many(rows * ld);
  auto c = before;
  MicroCall<Word<M>> call;
  call.a = a.data();
  call.a_row = 11;
  call.a_k = 2;
  call.segments = segments;
  call.num_segments = kSegments;
  call.kc = kDepth;
  call.b = b.data();
  call.b_k = kPanel<M>;
  call.b_panel = kPanel<M> * kDepth * kSegments;
  call.c = c.data();
  call.c_row = ld;
  call.cols = cols;
  call.accumulate = accumulate;
  table.fn[panels][rows](call);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < ld; ++j) {
      const auto at = static_cast<std::size_t>(i * ld + j);
      Word<M> want = j < cols && !accumulate ? Word<M>(0) : before[at];
      for (std::int64_t s = 0; j < cols && s < kSegments; ++s)
        for (std::int64_t k = 0; k < kDepth; ++k)
          want +=
              product<M>(a[static_cast<std::size_t>(segments[s] + i * 11 + k * 2)],
                         b[static_cast<std::size_t>(j / kPanel<M> * call.b_panel +
                                                    (s * kDepth + k) * kPanel<M> + j % kPanel<M>)]);
      CHECK_EQ(c[at], want);
    }
}

template <class M>
void checkTable(const MicroTable<M>& table) {
  for (int panels = 1; panels <= kMaxPanels; ++panels)
    for (int rows = 1; rows <= table.max_rows[panels]; ++rows)
      for (const std::int64_t cols : {panels * kPanel<M>, panels * kPanel<M> - 3})
        for (const bool accumulate : {false, true})
          checkTile(table, panels, rows, cols, accumulate);
  Words<M> random;
  for (const std::int64_t n : {0, 1, 3, 8, 17, 64, 131}) {
    const auto x = random.many(n), y = random.many(n);
    Word<M> want = 0;
    for (std::size_t i = 0; i < x.size(); ++i) want += product<M>(x[i], y[i]);
    CHECK_EQ(table.dot(x.data(), y.data(), n), want);
  }
  for (const std::int64_t cols : {std::int64_t{1}, kPanel<M> - 1, kPanel<M>}) {
    const std::int64_t depth = 21, ld = 23;
    const auto source = random.many(kPanel<M> * ld);
    auto panel = random.many(depth * kPanel<M>);
    table.packTransposed(source.data(), ld, depth, cols, panel.data());
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < kPanel<M>; ++j)
        CHECK_EQ(panel[static_cast<std::size_t>(k * kPanel<M> + j)],
                 j < cols ? source[static_cast<std::size_t>(j * ld + k)] : Word<M>(0));
  }
}

template <class T>
void checkRows(const IntegerRows& rows) {
  std::mt19937_64 random(1);
  std::vector<T> in(400);
  for (auto& x : in) x = static_cast<T>(random());
  const auto low = [&](std::int64_t i) {
    return static_cast<std::uint32_t>(static_cast<std::uint16_t>(in[static_cast<std::size_t>(i)]));
  };
  for (const std::int64_t stride : {1, 3})
    for (const std::int64_t count : {0, 1, 2, 15, 16, 33}) {
      const auto size = static_cast<std::size_t>(count);
      std::vector<std::uint32_t> words(size + 1), pairs(size + 1);
      std::vector<std::uint64_t> longs(size + 1);
      std::vector<T> back(static_cast<std::size_t>(count * stride + 1)), long_back = back;
      rows.load(in.data(), stride, count, words.data());
      rows.loadLong(in.data(), stride, count, longs.data());
      rows.loadPairs(in.data(), stride, count, pairs.data());
      rows.store(words.data(), back.data(), stride, count);
      rows.storeLong(longs.data(), long_back.data(), stride, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const T x = in[static_cast<std::size_t>(i * stride)];
        const auto at = static_cast<std::size_t>(i);
        CHECK_EQ(words[at], static_cast<std::uint32_t>(x));
        CHECK_EQ(longs[at], static_cast<std::uint64_t>(x));
        CHECK_EQ((pairs[at / 2] >> (16 * (i % 2))) & 0xffff, low(i * stride));
        CHECK_EQ(back[static_cast<std::size_t>(i * stride)],
                 static_cast<T>(static_cast<std::uint32_t>(x)));
        CHECK_EQ(long_back[static_cast<std::size_t>(i * stride)], x);
      }
      if (count % 2) CHECK_EQ(pairs[size / 2] >> 16, 0u);
      for (const std::int64_t num_rows : {1, 2, 3}) {
        std::vector<std::uint32_t> out(2 * 40);
        rows.pairRows(in.data(), 101, num_rows, stride, count, out.data(), 40);
        for (std::int64_t i = 0; i < (num_rows + 1) / 2; ++i)
          for (std::int64_t j = 0; j < count; ++j) {
            const std::uint32_t high =
                2 * i + 1 < num_rows ? low((2 * i + 1) * 101 + j * stride) : 0;
            CHECK_EQ(out[static_cast<std::size_t>(i * 40 + j)],
                     low(2 * i * 101 + j * stride) | high << 16);
          }
      }
    }
}

template <class T>
void checkRowsOfAll(ElementType type) {
  checkRows<T>(baseline::integerRows(type));
#ifdef IPUJAX_X86
  if (isa() != Isa::kBaseline) checkRows<T>(avx2::integerRows(type));
  if (isa() == Isa::kAvx512) checkRows<T>(avx512::integerRows(type));
#endif
}

}  // namespace

TEST(micro_kernels_match_their_definition) {
  forTables<Floats>(checkTable<Floats>);
  forTables<Doubles>(checkTable<Doubles>);
  forTables<Ints>(checkTable<Ints>);
  forTables<LongInts>(checkTable<LongInts>);
  forTables<ShortPairs>(checkTable<ShortPairs>);
}

TEST(rows_of_integers_become_words_and_come_back) {
  checkRowsOfAll<std::int8_t>(ElementType::kInt8);
  checkRowsOfAll<std::uint8_t>(ElementType::kUInt8);
  checkRowsOfAll<std::int16_t>(ElementType::kInt16);
  checkRowsOfAll<std::uint16_t>(ElementType::kUInt16);
  checkRowsOfAll<std::int32_t>(ElementType::kInt32);
  checkRowsOfAll<std::uint32_t>(ElementType::kUInt32);
  checkRowsOfAll<std::int64_t>(ElementType::kInt64);
  checkRowsOfAll<std::uint64_t>(ElementType::kUInt64);
}

TEST(rows_of_bools_are_whether_a_sum_is_not_zero) {
  const std::uint32_t sums[] = {0, 1, 256, 0x80000000u};
  std::uint8_t out[4];
  rowsOf(ElementType::kBool).store(sums, out, 1, 4);
  const std::uint8_t want[] = {0, 1, 1, 1};
  for (int i = 0; i < 4; ++i) CHECK_EQ(int{out[i]}, int{want[i]});
  CHECK_THROWS(rowsOf(ElementType::kHalf), "needs integers");
}
