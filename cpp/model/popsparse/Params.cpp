#include <cmath>
#include <string>

#include "popsparse/FullyConnectedParams.hpp"
#include "popsparse/MatMulParams.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse {
namespace {

void check(const char* where, const dynamic::SparsityParams& sparsity, double nzRatio,
           std::size_t rows, std::size_t columns) {
  if (!(nzRatio >= 0 && nzRatio <= 1)) {
    throw poputil::poplibs_error(std::string("[popsparse::") + where +
                                 "] needs a share of non-zero values in [0, 1]; got " +
                                 std::to_string(nzRatio) + ". Pass another share.");
  }
  const auto [r, c] = sparsity.blockDimensions;
  if (r == 0 || c == 0 || rows % r || columns % c) {
    throw poputil::poplibs_error(std::string("[popsparse::") + where +
                                 "] needs blocks that divide the matrix; got blocks of " +
                                 std::to_string(r) + " x " + std::to_string(c) + " in " +
                                 std::to_string(rows) + " x " + std::to_string(columns) +
                                 ". Use other blocks.");
  }
}

void checkGroups(const char* where, std::size_t groups, std::size_t in, std::size_t out) {
  if (groups == 0 || in % groups || out % groups) {
    throw poputil::poplibs_error(std::string("[popsparse::") + where +
                                 "] needs groups that divide the channels; got " +
                                 std::to_string(groups) + " groups of " + std::to_string(in) +
                                 " and " + std::to_string(out) + " channels. Use other groups.");
  }
}

double shareOf(std::size_t nonZero, std::size_t all) {
  return all ? static_cast<double>(nonZero) / static_cast<double>(all) : 0;
}

std::size_t countOf(double share, std::size_t all) {
  return static_cast<std::size_t>(std::ceil(share * static_cast<double>(all) - 1e-6));
}

}  // namespace

namespace dynamic {

std::ostream& operator<<(std::ostream& os, const SparsityType& t) {
  return os << (t == SparsityType::Element ? "Element" : "Block");
}

std::ostream& operator<<(std::ostream& os, const SparsityStructure&) {
  return os << "Unstructured";
}

std::ostream& operator<<(std::ostream& os, const SparsityParams& p) {
  return os << "{type: " << p.type << ", structure: " << p.structure
            << ", block: " << p.blockDimensions[0] << " x " << p.blockDimensions[1] << "}";
}

FullyConnectedParams FullyConnectedParams::createWithNzRatio(const SparsityParams& sparsityParams,
                                                             double nzRatio, std::size_t batchSize,
                                                             std::size_t numGroups,
                                                             std::size_t inputChannels,
                                                             std::size_t outputChannels) {
  const char* where = "FullyConnectedParams";
  checkGroups(where, numGroups, inputChannels, outputChannels);
  FullyConnectedParams p;
  p.sparsityParams_ = sparsityParams;
  p.nzRatio_ = nzRatio;
  p.batchSize_ = batchSize;
  p.numGroups_ = numGroups;
  p.inputsPerGroup_ = inputChannels / numGroups;
  p.outputsPerGroup_ = outputChannels / numGroups;
  check(where, sparsityParams, nzRatio, p.outputsPerGroup_, p.inputsPerGroup_);
  return p;
}

FullyConnectedParams FullyConnectedParams::createWithNumNonZeroValues(
    const SparsityParams& sparsityParams, std::size_t numNonZeroElems, std::size_t batchSize,
    std::size_t numGroups, std::size_t inputChannels, std::size_t outputChannels) {
  checkGroups("FullyConnectedParams", numGroups, inputChannels, outputChannels);
  return createWithNzRatio(sparsityParams,
                           shareOf(numNonZeroElems, inputChannels / numGroups * outputChannels),
                           batchSize, numGroups, inputChannels, outputChannels);
}

std::size_t FullyConnectedParams::getNumNonZeroValues() const {
  return countOf(nzRatio_, numGroups_ * inputsPerGroup_ * outputsPerGroup_);
}

std::ostream& operator<<(std::ostream& os, const FullyConnectedParams& p) {
  return os << "{sparsity: " << p.sparsityParams_ << ", nzRatio: " << p.nzRatio_
            << ", batchSize: " << p.batchSize_ << ", numGroups: " << p.numGroups_
            << ", inputChannelsPerGroup: " << p.inputsPerGroup_
            << ", outputChannelsPerGroup: " << p.outputsPerGroup_ << "}";
}

MatMulParams MatMulParams::createWithNzRatio(const SparsityParams& sparsityParams, double nzRatio,
                                             std::size_t groups, std::size_t m, std::size_t k,
                                             std::size_t n) {
  check("MatMulParams", sparsityParams, nzRatio, m, k);
  MatMulParams p;
  p.sparsityParams_ = sparsityParams;
  p.nzRatio_ = nzRatio;
  p.groups_ = groups;
  p.m_ = m;
  p.k_ = k;
  p.n_ = n;
  return p;
}

MatMulParams MatMulParams::createWithNumNonZeroValues(const SparsityParams& sparsityParams,
                                                      std::size_t numNonZeroElems,
                                                      std::size_t groups, std::size_t m,
                                                      std::size_t k, std::size_t n) {
  return createWithNzRatio(sparsityParams, shareOf(numNonZeroElems, groups * m * k), groups, m, k,
                           n);
}

std::size_t MatMulParams::getNumNonZeroValues() const {
  return countOf(nzRatio_, groups_ * m_ * k_);
}

std::ostream& operator<<(std::ostream& os, const MatMulParams& p) {
  return os << "{sparsity: " << p.sparsityParams_ << ", nzRatio: " << p.nzRatio_
            << ", groups: " << p.groups_ << ", m: " << p.m_ << ", k: " << p.k_ << ", n: " << p.n_
            << "}";
}

}  // namespace dynamic

namespace static_ {

MatMulParams MatMulParams::createForSparseDense(std::size_t groups, std::size_t m, std::size_t k,
                                                std::size_t n) {
  MatMulParams p;
  p.groups_ = groups;
  p.m_ = m;
  p.k_ = k;
  p.n_ = n;
  return p;
}

MatMulParams MatMulParams::createForDenseSparse(std::size_t groups, std::size_t n, std::size_t k,
                                                std::size_t m) {
  auto p = createForSparseDense(groups, m, k, n);
  p.transposed_ = true;
  return p;
}

std::ostream& operator<<(std::ostream& os, const MatMulParams& p) {
  return os << "{groups: " << p.groups_ << ", m: " << p.m_ << ", k: " << p.k_ << ", n: " << p.n_
            << ", transposed: " << (p.transposed_ ? "true" : "false") << "}";
}

}  // namespace static_
}  // namespace popsparse
