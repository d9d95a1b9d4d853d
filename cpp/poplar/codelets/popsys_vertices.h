// The vertices of popsys that programs name in Graph::addVertex, which loads them for the first.
// Source of fields: PopLibs, lib/popsys/codelets. A vertex does not know the cycles that the model
// counts for a program, which poplar::cycleCount gives: these read the host's clock.
#include <chrono>
#include <poplar/Vertex.hpp>

namespace popsys {

/// The host's time in cycles of a tile at 1.33 GHz.
inline unsigned long long timeInCycles() {
  using Third = std::chrono::duration<unsigned long long, std::ratio<3, 4000000000>>;
  return std::chrono::duration_cast<Third>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A time, low word first.
class TimeItStart : public poplar::Vertex {
 public:
  poplar::Output<poplar::Vector<unsigned>> out;

  bool compute() {
    const unsigned long long now = timeInCycles();
    out[0] = static_cast<unsigned>(now);
    if (out.size() > 1) out[1] = static_cast<unsigned>(now >> 32);
    return true;
  }
};

/// The time since a TimeItStart that wrote two words, low word first.
class TimeItEnd : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<unsigned>> startCount;
  poplar::Output<poplar::Vector<unsigned>> out;

  bool compute() {
    const unsigned long long high = startCount.size() > 1 ? startCount[1] : 0;
    const unsigned long long taken = timeInCycles() - (startCount[0] + (high << 32));
    out[0] = static_cast<unsigned>(taken);
    if (out.size() > 1) out[1] = static_cast<unsigned>(taken >> 32);
    return true;
  }
};

}  // namespace popsys
