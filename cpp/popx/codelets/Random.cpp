#include <poplar/Vertex.hpp>

// Counter-based generators as in XLA, for states of words of 4 or 8 bytes and elements of 1, 2, 4
// or 8 bytes; narrow elements are the low end of 32 bits.
namespace popx {

namespace {

template <unsigned bytes>
struct Bits;
template <>
struct Bits<1> {
  using Type = unsigned char;
};
template <>
struct Bits<2> {
  using Type = unsigned short;
};
template <>
struct Bits<4> {
  using Type = unsigned;
};
template <>
struct Bits<8> {
  using Type = unsigned long long;
};

struct Word64 {
  unsigned low, high;
};

template <class Field>
Word64 stateWord(const Field& state, unsigned i, unsigned) {
  return {state[2 * i], state[2 * i + 1]};
}
template <class Field>
Word64 stateWord(const Field& state, unsigned i, unsigned long long) {
  return {unsigned(state[i]), unsigned(state[i] >> 32)};
}

Word64 plus(Word64 a, unsigned b) {
  const unsigned low = a.low + b;
  return {low, a.high + (low < b ? 1u : 0u)};
}

bool less(Word64 a, Word64 b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

template <class T>
void store(T* to, const unsigned* words, unsigned count) {
  for (unsigned i = 0; i < count; ++i) to[i] = T(words[i]);
}
template <>
void store(unsigned long long* to, const unsigned* words, unsigned count) {
  for (unsigned i = 0; i < count / 2; ++i)
    to[i] = words[2 * i] | (unsigned long long)(words[2 * i + 1]) << 32;
}

unsigned rotate(unsigned x, unsigned by) { return (x << by) | (x >> (32 - by)); }

}  // namespace

/// Threefry with 20 rounds (Salmon et al., 2011): two words per counter.
template <unsigned word, unsigned bytes>
class Threefry : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<typename Bits<word>::Type>> state;  ///< key, counter
  poplar::Output<poplar::Vector<typename Bits<bytes>::Type>> out;  ///< whole counters
  unsigned begin;                                                  ///< counters before these

  bool compute() {
    const Word64 key = stateWord(state, 0, typename Bits<word>::Type());
    const unsigned keys[3] = {key.low, key.high, key.low ^ key.high ^ 0x1bd11bdau};
    const unsigned each = bytes == 8 ? 1 : 2;
    Word64 counter = plus(stateWord(state, 1, typename Bits<word>::Type()), begin);
    for (unsigned i = 0; i < out.size(); i += each, counter = plus(counter, 1)) {
      unsigned words[2] = {counter.low, counter.high};
      scramble(words, keys);
      store(&out[i], words, 2);
    }
    return true;
  }

 private:
  static void scramble(unsigned* x, const unsigned* keys) {
    static const unsigned char turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    x[0] += keys[0];
    x[1] += keys[1];
    for (unsigned group = 1; group <= 5; ++group) {
      for (unsigned i = 0; i < 4; ++i) {
        x[0] += x[1];
        x[1] = rotate(x[1], turns[(group + 1) % 2][i]) ^ x[0];
      }
      x[0] += keys[group % 3];
      x[1] += keys[(group + 1) % 3] + group;
    }
  }
};
template class Threefry<4, 1>;
template class Threefry<4, 2>;
template class Threefry<4, 4>;
template class Threefry<4, 8>;
template class Threefry<8, 1>;
template class Threefry<8, 2>;
template class Threefry<8, 4>;
template class Threefry<8, 8>;

/// Philox with 10 rounds: four words per counter of 128 bits, whose high half is the key if the
/// state has only two words.
template <unsigned word, unsigned bytes>
class Philox : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<typename Bits<word>::Type>>
      state;  ///< key, counter, and its high half
  poplar::Output<poplar::Vector<typename Bits<bytes>::Type>> out;  ///< whole counters
  unsigned begin;
  bool wide;  ///< three words of state

  bool compute() {
    const Word64 key = stateWord(state, 0, typename Bits<word>::Type());
    const Word64 start = stateWord(state, 1, typename Bits<word>::Type());
    const Word64 high = wide ? stateWord(state, 2, typename Bits<word>::Type()) : key;
    const unsigned each = bytes == 8 ? 2 : 4;
    Word64 low = plus(start, begin);
    for (unsigned i = 0; i < out.size(); i += each, low = plus(low, 1)) {
      const Word64 carried = less(low, start) ? plus(high, 1) : high;
      unsigned words[4] = {low.low, low.high, carried.low, carried.high};
      scramble(words, key);
      store(&out[i], words, 4);
    }
    return true;
  }

 private:
  static void scramble(unsigned* x, Word64 key) {
    for (unsigned round = 0; round < 10; ++round) {
      const unsigned long long a = (unsigned long long)(x[0]) * 0xd2511f53u;
      const unsigned long long b = (unsigned long long)(x[2]) * 0xcd9e8d57u;
      x[0] = unsigned(b >> 32) ^ x[1] ^ key.low;
      x[1] = unsigned(b);
      x[2] = unsigned(a >> 32) ^ x[3] ^ key.high;
      x[3] = unsigned(a);
      key.low += 0x9e3779b9u;
      key.high += 0xbb67ae85u;
    }
  }
};
template class Philox<4, 1>;
template class Philox<4, 2>;
template class Philox<4, 4>;
template class Philox<4, 8>;
template class Philox<8, 1>;
template class Philox<8, 2>;
template class Philox<8, 4>;
template class Philox<8, 8>;

/// The state after `counters` counters.
template <unsigned word>
class AdvanceState : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<typename Bits<word>::Type>> state;
  poplar::Output<poplar::Vector<typename Bits<word>::Type>> next;
  unsigned counters;

  bool compute() {
    const unsigned size = word == 8 ? 1 : 2;
    const Word64 start = stateWord(state, 1, typename Bits<word>::Type());
    const Word64 low = plus(start, counters);
    for (unsigned i = 0; i < size; ++i) next[i] = state[i];
    put(1, low);
    if (next.size() == 3 * size) {
      const Word64 high = stateWord(state, 2, typename Bits<word>::Type());
      put(2, less(low, start) ? plus(high, 1) : high);
    }
    return true;
  }

 private:
  void put(unsigned i, Word64 value) {
    if (word == 8) {
      next[i] = typename Bits<word>::Type((unsigned long long)(value.high) << 32 | value.low);
    } else {
      next[2 * i] = value.low;
      next[2 * i + 1] = value.high;
    }
  }
};
template class AdvanceState<4>;
template class AdvanceState<8>;

}  // namespace popx
