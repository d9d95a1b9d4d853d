// The vertices of popsparse for Graph::addVertex, which loads them on first use. Source of fields
// and results: PopLibs, lib/popsparse/codelets.
#include <poplar/codelets/vertex_loops.h>

namespace popsparse {

using namespace ipujax_vertices;

/// Gathers the elements of rIn at `indices`, which are in bytes. Each worker has numIndices,
/// rounded down to 64 bits, and another 64 if its bit of workerOffsets is set; the rest follows.
template <class T>
class SparseGatherElementWise : public poplar::MultiVertex {
 public:
  poplar::Input<Pointer<T>> rIn;
  poplar::Output<Pointer<T>> rOut;
  poplar::Input<Pointer<unsigned short>> indices;
  unsigned short numIndices;
  unsigned short workerOffsets;

  bool compute(unsigned worker) {
    constexpr unsigned kGrain = 8 / kBytes;
    unsigned n = numIndices / kGrain * kGrain * kWorkers + numIndices % kGrain;
    for (unsigned bits = workerOffsets; bits != 0; bits >>= 1) n += (bits & 1) * kGrain;
    return ofWorker(worker, n, [&](unsigned i) { rOut[i] = rIn[indices[i] / kBytes]; });
  }

 private:
  static constexpr unsigned kBytes = sizeof(T) == 2 ? 2 : 4;
};

}  // namespace popsparse
