// popnn's vertices. Graph::addVertex loads them when a program first names one. Source of fields
// and results: PopLibs, lib/popnn/codelets.
#include <poplar/codelets/vertex_loops.h>

#include <cmath>
#include <limits>
#include <popops/EncodingConstants.hpp>

namespace popnn {

using namespace ipujax_vertices;
template <class T>
using OnePointer = poplar::Vector<T, poplar::VectorLayout::ONE_PTR>;

/// Integers keep their type; halves are compared as halves and returned as floats.
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

/// The largest of each workerSize of the `size` activations, and its position plus `index`.
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

/// Adds the number of labels that are the expected ones and not masked.
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

/// Positions of the largest `k` in [begin, end), the largest first; returns their number.
template <class Elements>
unsigned largestOf(const Elements& x, unsigned begin, unsigned end, unsigned k,
                   unsigned* positions) {
  unsigned n = 0;
  for (unsigned i = begin; i < end && k > 0; ++i) {
    if (n == k && !(x[i] > x[positions[n - 1]])) continue;
    unsigned at = n < k ? n++ : n - 1;
    for (; at > 0 && x[i] > x[positions[at - 1]]; --at) positions[at] = positions[at - 1];
    positions[at] = i;
  }
  return n;
}

/// The numK largest of each 2^divisorLog2 of the `size` activations, and their positions plus
/// `index`. They are sorted, whether or not kSorts and shouldSort ask for it. Missing ones in the
/// last chunk are the lowest number and position ~0u.
template <class T, bool kSorts = false>
class ReduceMaxNClassGather : public poplar::Vertex {
 public:
  poplar::Input<OnePointer<T>> activations;
  unsigned index;
  poplar::Output<OnePointer<T>> maxValues;
  poplar::Output<OnePointer<unsigned>> maxValuesIndices;
  unsigned numK;
  unsigned size;
  unsigned short divisorLog2;
  bool shouldSort = false;

  bool compute() {
    unsigned at = 0;
    for (unsigned begin = 0; begin < size; begin += 1u << divisorLog2) {
      const unsigned rest = size - begin;
      const unsigned end = begin + (rest >> divisorLog2 == 0 ? rest : 1u << divisorLog2);
      const unsigned found = largestOf(activations, begin, end, numK, &maxValuesIndices[at]);
      for (unsigned k = 0; k < numK; ++k, ++at) {
        maxValues[at] = k < found ? activations[maxValuesIndices[at]] : lowest();
        maxValuesIndices[at] = k < found ? maxValuesIndices[at] + index : ~0u;
      }
    }
    return true;
  }

 private:
  static T lowest() {
    if constexpr (std::is_same_v<T, half>) return static_cast<half>(-65504.0f);
    return std::numeric_limits<T>::lowest();
  }
};

/// The numK largest activations and their labels.
template <class T, bool kSorts = false>
class ReduceMaxNClassSparse : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<T>> activations;
  poplar::Output<poplar::Vector<T>> maxValues;
  poplar::Output<OnePointer<unsigned>> maxValuesIndices;
  poplar::Input<OnePointer<unsigned>> labels;
  bool shouldSort = false;
  unsigned numK;

  bool compute() {
    const unsigned found =
        largestOf(activations, 0, activations.size(), numK, &maxValuesIndices[0]);
    return ofAll(found, [&](unsigned k) {
      maxValues[k] = activations[maxValuesIndices[k]];
      maxValuesIndices[k] = labels[maxValuesIndices[k]];
    });
  }
};

/// Differences from the expected values, and half their squares.
template <class T>
class LossSumSquaredTransform : public poplar::Vertex {
 public:
  poplar::Input<OnePointer<T>> probs;
  poplar::Input<OnePointer<T>> expected;
  poplar::Output<OnePointer<T>> deltas;
  poplar::Output<OnePointer<T>> transformed;
  unsigned short size;

  bool compute() {
    return ofAll(size, [&](unsigned i) {
      const T delta = probs[i] - expected[i];
      deltas[i] = delta;
      transformed[i] = static_cast<T>(0.5f) * delta * delta;
    });
  }
};

/// For probabilities scaled by modelOutputScaling: gradients scaled by deltasScale, and
/// -expected * log(probability).
template <class T>
class LossCrossEntropyTransform : public poplar::Vertex {
 public:
  poplar::Input<OnePointer<T>> probs;
  poplar::Input<OnePointer<T>> expected;
  poplar::Output<OnePointer<T>> deltas;
  poplar::Output<OnePointer<T>> transformed;
  unsigned short size;
  poplar::Input<T> deltasScale;
  poplar::Input<T> modelOutputScaling;

  bool compute() {
    constexpr float kLeast = std::is_same_v<T, float> ? EPS_LOG_N_FLOAT : EPS_LOG_N_HALF;
    const T scaling = *modelOutputScaling;
    const T scale = *deltasScale / scaling;
    const T log_scaling = logOf(scaling, 0);
    return ofAll(size, [&](unsigned i) {
      deltas[i] = scale * (probs[i] - expected[i] * scaling);
      transformed[i] = -expected[i] * (logOf(probs[i], kLeast) - log_scaling);
    });
  }

 private:
  static T logOf(T x, float least) {
    return static_cast<T>(std::log(static_cast<float>(x) + least));
  }
};

}  // namespace popnn
