// The generators of poprand for Graph::addVertex, which loads them on first use. Source of fields:
// PopLibs, lib/poprand/codelets. Numbers come from the workers' generators.
#include <ipu_builtins.h>
#include <poplar/codelets/vertex_loops.h>

namespace poprand {

using namespace ipujax_vertices;

/// scale * [0, 1) + offset; integers: one of `scale` values from offset on, any if scale is 0.
template <class T>
class Uniform : public poplar::MultiVertex {
 public:
  using Parameter = std::conditional_t<std::is_integral_v<T>, T, float>;
  poplar::Output<Span<T>> out;
  Parameter offset;
  std::conditional_t<std::is_integral_v<T>, std::uint32_t, float> scale;

  bool compute(unsigned worker) {
    return ofWorker(worker, out.size(), [&](unsigned i) { out[i] = next(); });
  }

 private:
  T next() const {
    const std::uint64_t bits = __builtin_ipu_urand32();
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>((scale == 0 ? bits : bits * scale >> 32) + offset);
    } else {
      return static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-24f * scale + offset);
    }
  }
};

template <class T>
class Normal : public poplar::MultiVertex {
 public:
  poplar::Output<Span<T>> out;
  float mean;
  float stdDev;

  bool compute(unsigned worker) {
    return ofWorker(worker, out.size(), [&](unsigned i) {
      out[i] = static_cast<T>(__builtin_ipu_f32v2grand()[0] * stdDev + mean);
    });
  }
};

}  // namespace poprand
