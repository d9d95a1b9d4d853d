#pragma once
#include <string>
#include <vector>

#include "poplar/OptionFlags.hpp"
#include "poplar/Tensor.hpp"
#include "poplin/PlanningCache.hpp"
#include "popnn/NonLinearityDef.hpp"
#include "popnn/Rnn.hpp"
#include "popops/Expr.hpp"

/// What LSTM, GRU and vanilla layers have in common.
namespace popnn::internal {

/// Options of a layer: those of its matrix products, and whether the inputs of all steps are
/// weighted at once. Others that the SDK knows have no effect.
struct RecurrentOptions {
  RecurrentOptions(const poplar::OptionFlags& options, const char* layer);
  poplar::OptionFlags matmul;
  bool preCalcWeights = false;
  bool halfPartials = false;
};

/// An activation that kernels know, as an expression.
popops::expr::Any activated(NonLinearityType type, const popops::expr::Any& x);
/// A gradient times the slope of such an activation, computed from its result.
popops::expr::Any slopeTimes(NonLinearityType type, const popops::expr::Any& result,
                             const popops::expr::Any& grad);

/// The gradient of an activation from its result; for HARD_SIGMOID, nonLinearityInputGradient takes
/// the argument instead.
poplar::Tensor gradientFromResult(poplar::Graph& graph, NonLinearityType type,
                                  const poplar::Tensor& result, const poplar::Tensor& grad,
                                  poplar::program::Sequence& prog,
                                  const poplar::DebugContext& debugContext);

/// The number of an activation in kernels of recurrent layers, or -1 if they do not have it.
int kernelActivation(NonLinearityType type);

/// Whether a kernel can replace the layer's composition: FLOAT, limits that it can read, and
/// activations that it has.
bool hasKernel(const poplar::Graph& graph, const rnn::RnnParams& params,
               const RecurrentOptions& options, NonLinearityType activation,
               NonLinearityType recurrentActivation);

/// Weights [units, in, out] as one matrix [in, units * out], and the inverse.
poplar::Tensor asMatrix(const poplar::Tensor& weights);
poplar::Tensor asUnits(const poplar::Tensor& matrix, std::size_t units);
/// The same with the units in the order of `order`; vertices cannot read these views directly.
poplar::Tensor asMatrix(const poplar::Tensor& weights, const std::vector<unsigned>& order);
/// The inverse: a matrix [in, units * out] as [units, in, out].
poplar::Tensor asUnits(const poplar::Tensor& matrix, const std::vector<unsigned>& order);
/// Biases [units, ...] with the units in the order of `order`.
poplar::Tensor ordered(const poplar::Tensor& biases, const std::vector<unsigned>& order);
/// The inverse: unit i moves to position order[i].
poplar::Tensor unordered(const poplar::Tensor& units, const std::vector<unsigned>& order);

/// position[unit] of each unit in a layer's cellOrder; throws unless each of `units` occurs once.
std::vector<unsigned> positions(const std::vector<unsigned>& cellOrder, unsigned units,
                                const char* layer);

/// Throws unless the gradient of an activation follows from its result.
void checkGradient(NonLinearityType type, const char* layer);

/// Zeros that take no memory, of another tensor's shape and type.
poplar::Tensor zerosLike(poplar::Graph& graph, const poplar::Tensor& t,
                         const poplar::DebugContext& debugContext);

/// A mask as [batch][1].
inline poplar::Tensor column(const poplar::Tensor& mask) { return mask.expand({1}); }

/// A matrix of weights [in, columns], mapped for a step's product with `rows` rows.
poplar::Tensor createMatrix(poplar::Graph& graph, const poplar::Type& type, std::size_t rows,
                            std::size_t in, std::size_t columns,
                            const poplar::DebugContext& debugContext,
                            const poplar::OptionFlags& options, poplin::PlanningCache* cache);

}  // namespace popnn::internal
