#include <poplar/Vertex.hpp>

#include "Numbers.hpp"

// Discrete Fourier transforms of whole lines.
namespace popx {

/// Stockham's passes over lines of n complex numbers, a pass for each prime factor (4 before 2);
/// every pass leaves its results in order.
class FourierLines : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> lines;     ///< [count, n], complex, replaced
  poplar::InOut<poplar::Vector<float>> room;      ///< [n], complex, workspace
  poplar::Input<poplar::Vector<float>> twiddles;  ///< [n], complex: exp(-2 pi i k / n)
  unsigned count;
  unsigned n;
  float scale;

  bool compute() {
    Complex* const spare = reinterpret_cast<Complex*>(&room[0]);
    for (unsigned line = 0; line < count; ++line) {
      Complex* const data = reinterpret_cast<Complex*>(&lines[2 * line * n]);
      const Complex* in = transform(data, spare);
      for (unsigned i = 0; i < n; ++i) data[i] = in[i] * scale;
    }
    return true;
  }

 private:
  const Complex* transform(Complex* in, Complex* out) const {
    unsigned left = n;
    for (unsigned stride = 1; left > 1;) {
      const unsigned radix = factorOf(left);
      pass(in, out, radix, left / radix, stride);
      left /= radix;
      stride *= radix;
      Complex* const kept = in;
      in = out;
      out = kept;
    }
    return in;
  }

  static unsigned factorOf(unsigned size) {
    if (size % 4 == 0) return 4;
    for (unsigned factor = 2; factor * factor <= size; ++factor)
      if (size % factor == 0) return factor;
    return size;
  }

  /// out[q + stride (radix p + j)] = w^(p j) sum over k of in[q + stride (p + groups k)] r^(j k), w
  /// the root of radix * groups and r that of radix.
  void pass(const Complex* in, Complex* out, unsigned radix, unsigned groups,
            unsigned stride) const {
    const Complex* const roots = reinterpret_cast<const Complex*>(&twiddles[0]);
    const unsigned step = n / radix;
    for (unsigned p = 0; p < groups; ++p) {
      for (unsigned q = 0; q < stride; ++q) {
        const Complex* const from = in + q + stride * p;
        Complex* const to = out + q + stride * radix * p;
        for (unsigned j = 0; j < radix; ++j) {
          Complex sum = from[0];
          unsigned turn = 0;
          for (unsigned k = 1; k < radix; ++k) {
            turn += j;
            if (turn >= radix) turn -= radix;
            sum += from[stride * groups * k] * roots[step * turn];
          }
          to[stride * j] = sum * roots[stride * p * j];
        }
      }
    }
  }
};

}  // namespace popx
