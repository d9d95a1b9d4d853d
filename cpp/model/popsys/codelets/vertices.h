// The vertices of popsys for Graph::addVertex, which loads them on first use. Source of fields and
// results: PopLibs, lib/popsys/codelets.
#include <ipu_builtins.h>

#include <poplar/Vertex.hpp>

namespace popsys {

/// Writes the tile's cycle counter, low word first.
class TimeItStart : public poplar::Vertex {
 public:
  poplar::Output<poplar::Vector<unsigned>> out;

  bool compute() {
    out[0] = __builtin_ipu_get_scount_l();
    if (out.size() > 1) out[1] = __builtin_ipu_get_scount_u();
    return true;
  }
};

/// Writes the cycles since a TimeItStart that wrote two words, low word first.
class TimeItEnd : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<unsigned>> startCount;
  poplar::Output<poplar::Vector<unsigned>> out;

  bool compute() {
    const unsigned long long now =
        __builtin_ipu_get_scount_l() + wide(__builtin_ipu_get_scount_u());
    const unsigned long long taken =
        now - startCount[0] - wide(startCount.size() > 1 ? startCount[1] : 0);
    out[0] = static_cast<unsigned>(taken);
    if (out.size() > 1) out[1] = static_cast<unsigned>(taken >> 32);
    return true;
  }

 private:
  static unsigned long long wide(unsigned high) {
    return static_cast<unsigned long long>(high) << 32;
  }
};

}  // namespace popsys
