// The vertices of popnn that programs name in Graph::addVertex, which loads them for the first.
// Source of fields and results: PopLibs, lib/popnn/codelets.
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#include <popops/EncodingConstants.hpp>
#include <type_traits>

namespace popnn {

template <class T>
using OnePointer = poplar::Vector<T, poplar::VectorLayout::ONE_PTR>;

/// Integers stay what they are; halves are compared as such and given as floats.
template <class T>
using GatheredType = std::conditional_t<std::is_integral_v<T>, T, float>;

/// The first position in [begin, end) that no other beats.
template <class Elements, class Beats>
unsigned bestOf(const Elements& x, unsigned begin, unsigned end, const Beats& beats) {
  unsigned best = begin;
  for (unsigned i = begin + 1; i < end; ++i) {
    if (beats(x[i], x[best])) best = i;
  }
  return best;
}

struct IsMore {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct IsLess {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

/// The largest of each workerSize of the `size` activations, and its position behind `index`.
template <class InType, class LabelType>
class ReduceMaxClassGather : public poplar::Vertex {
 public:
  poplar::Input<OnePointer<InType>> activations;
  LabelType index;
  poplar::Output<OnePointer<GatheredType<InType>>> maxValue;
  poplar::Output<OnePointer<LabelType>> maxIndex;
  unsigned size;
  unsigned workerSize;

  bool compute() {
    for (unsigned begin = 0, i = 0; begin < size; begin += workerSize, ++i) {
      const unsigned end = size - begin > workerSize ? begin + workerSize : size;
      const unsigned best = bestOf(activations, begin, end, IsMore());
      maxValue[i] = static_cast<GatheredType<InType>>(activations[best]);
      maxIndex[i] = static_cast<LabelType>(best + index);
    }
    return true;
  }
};

/// The same for the smallest.
template <class InType, class LabelType>
class ReduceMinClassGather : public poplar::Vertex {
 public:
  poplar::Input<OnePointer<InType>> activations;
  LabelType index;
  poplar::Output<OnePointer<GatheredType<InType>>> minValue;
  poplar::Output<OnePointer<LabelType>> minIndex;
  unsigned size;
  unsigned workerSize;

  bool compute() {
    for (unsigned begin = 0, i = 0; begin < size; begin += workerSize, ++i) {
      const unsigned end = size - begin > workerSize ? begin + workerSize : size;
      const unsigned best = bestOf(activations, begin, end, IsLess());
      minValue[i] = static_cast<GatheredType<InType>>(activations[best]);
      minIndex[i] = static_cast<LabelType>(best + index);
    }
    return true;
  }
};

/// The largest activation and its label.
template <class InType, class LabelType>
class ReduceMaxClassSparse : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<InType>> activations;
  poplar::Input<OnePointer<LabelType>> labels;
  poplar::Output<InType> maxValue;
  poplar::Output<LabelType> maxIndex;

  bool compute() {
    const unsigned best = bestOf(activations, 0, activations.size(), IsMore());
    *maxValue = activations[best];
    *maxIndex = labels[best];
    return true;
  }
};

/// The smallest activation and its label.
template <class InType, class LabelType>
class ReduceMinClassSparse : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<InType>> activations;
  poplar::Input<OnePointer<LabelType>> labels;
  poplar::Output<InType> minValue;
  poplar::Output<LabelType> minIndex;

  bool compute() {
    const unsigned best = bestOf(activations, 0, activations.size(), IsLess());
    *minValue = activations[best];
    *minIndex = labels[best];
    return true;
  }
};

/// Adds how many of the labels are the expected ones, of those that are not masked.
template <class LabelType>
class CalcAccuracy : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<LabelType>> maxPerBatch;
  poplar::Input<OnePointer<LabelType>> expected;
  poplar::InOut<unsigned> numCorrect;

  bool compute() {
    for (unsigned i = 0; i < maxPerBatch.size(); ++i) {
      const bool is_masked = static_cast<unsigned>(expected[i]) == MASKED_LABEL_CODE;
      *numCorrect += !is_masked && maxPerBatch[i] == expected[i] ? 1 : 0;
    }
    return true;
  }
};

}  // namespace popnn
