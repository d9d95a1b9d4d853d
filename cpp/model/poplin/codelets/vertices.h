// poplin's vertices. Graph::addVertex loads them when a program first names one. Source of fields
// and results: PopLibs, lib/poplin/codelets.
#include <poplar/codelets/vertex_loops.h>

namespace poplin {

using namespace ipujax_vertices;

/// The products of the elements of `in` and chansPerGroup weights for each row of outputs.
template <class T>
class OuterProduct : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<T>> in;
  poplar::Input<Pointer<T>> weights;
  poplar::Vector<poplar::Output<Pointer<T>>> out;
  unsigned chansPerGroup;

  bool compute() {
    for (unsigned row = 0; row < out.size(); ++row) {
      ofAll(in.size() * chansPerGroup, [&](unsigned i) {
        const unsigned channel = i % chansPerGroup;
        out[row][i] =
            static_cast<T>(in[i / chansPerGroup] * weights[row * chansPerGroup + channel]);
      });
    }
    return true;
  }
};

/// Sums rows of numElems partials in float. With kOneInput the rows are those of
/// initialPartial and then of partials, numPartials + 1 in all.
template <class OutType, class PartialsType, bool kOneInput>
struct RowSums : poplar::Vertex {
  poplar::Vector<poplar::Input<Pointer<PartialsType>>> partials;
  poplar::Output<Pointer<OutType>> out;
  unsigned short numPartials;
  unsigned short numElems;

  bool compute() {
    return ofAll(numElems, [&](unsigned i) {
      float sum = 0;
      for (unsigned row = 0; row < numPartials; ++row) sum += static_cast<float>(partials[row][i]);
      out[i] = static_cast<OutType>(sum);
    });
  }
};
template <class OutType, class PartialsType>
struct RowSums<OutType, PartialsType, true> : poplar::Vertex {
  poplar::Input<Span<PartialsType>> partials;
  poplar::Output<Pointer<OutType>> out;
  unsigned short numPartials;
  unsigned short numElems;
  poplar::Input<Span<PartialsType>> initialPartial;

  bool compute() {
    return ofAll(numElems, [&](unsigned i) {
      const unsigned initial = initialPartial.size(), all = (numPartials + 1u) * numElems;
      float sum = 0;
      for (unsigned at = i; at < all; at += numElems)
        sum += static_cast<float>(at < initial ? initialPartial[at] : partials[at - initial]);
      out[i] = static_cast<OutType>(sum);
    });
  }
};
template <class OutType, class PartialsType, bool kOneInput = false, bool kConstraints = false>
class ReduceAdd : public RowSums<OutType, PartialsType, kOneInput> {};

}  // namespace poplin
