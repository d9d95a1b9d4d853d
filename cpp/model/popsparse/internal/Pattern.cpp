#include "popsparse/internal/Pattern.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "poplar/internal/NearName.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse::internal {
namespace {

using poputil::poplibs_error;

/// All options; only the first two have an effect.
constexpr std::array kNames = {
    "metaInfoBucketOversizeProportion",
    "partialsType",
    "availableMemoryProportion",
    "doGradAPass",
    "doGradWPass",
    "sharedBuckets",
    "enableProfiling",
    "verboseLogging",
    "partitioner.optimiseForSpeed",
    "partitioner.forceBucketSpills",
    "partitioner.useActualWorkerSplitCosts",
    "enableStructuredRearrangements",
    "planConstraints",
};

double shareOf(const char* where, const std::string& name, const std::string& value) {
  char* end = nullptr;
  const double share = std::strtod(value.c_str(), &end);
  if (end != value.c_str() && *end == 0 && share >= 0) return share;
  throw poplar::invalid_option(std::string("[popsparse::") + where +
                               "] needs a number of 0 or more as " + name + "; got " + value +
                               ". Pass a share such as 0.3.");
}

/// Checks the options; returns the room for additional blocks as a share of the expected number.
double checkOptions(const char* where, const poplar::OptionFlags& options) {
  double oversize = 0.3;
  for (const auto& [name, value] : options) {
    if (name == "metaInfoBucketOversizeProportion") {
      oversize = shareOf(where, name, value);
    } else if (name == "partialsType") {
      if (value != "float")
        throw poplar::invalid_option(std::string("[popsparse::") + where +
                                     "] needs partialsType float; got " + value +
                                     ". Leave the option out.");
    } else if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      throw poplar::invalid_option(
          std::string("[popsparse::") + where + "] needs options it knows; got " + name + ". " +
          poplar::internal::didYouMean(name, kNames) + "Leave the option out.");
    }
  }
  return oversize;
}

PartitionerImpl checkedSize(const char* where, std::size_t groups, std::size_t rows,
                            std::size_t columns, std::array<std::size_t, 2> block) {
  if (groups != 1)
    throw poplibs_error(std::string("[popsparse::") + where + "] needs one group; got " +
                        std::to_string(groups) + ". Call it once for each group.");
  PartitionerImpl size;
  size.numRows = rows;
  size.numColumns = columns;
  size.block = block;
  if (std::max(size.blockRows(), size.blockColumns()) >= kNoBlock)
    throw poplibs_error(std::string("[popsparse::") + where +
                        "] needs fewer than 65535 rows and columns of blocks; got " +
                        std::to_string(size.blockRows()) + " x " +
                        std::to_string(size.blockColumns()) + ". Use larger blocks.");
  return size;
}

void makeRoom(PartitionerImpl& size, std::size_t nonZero, double oversize) {
  const double blocks = static_cast<double>(nonZero) / static_cast<double>(size.blockSize());
  const auto wanted = static_cast<std::size_t>(std::ceil(std::ceil(blocks) * (1 + oversize)));
  size.capacity = std::clamp<std::size_t>(
      wanted, 1, std::max<std::size_t>(size.blockRows() * size.blockColumns(), 1));
}

[[noreturn]] void malformed(const std::string& needs, const std::string& got) {
  throw poplibs_error("[popsparse::Partitioner] needs " + needs + "; got " + got +
                      ". Mend the matrix.");
}

template <class Matrix>
void checkStored(const PartitionerImpl& size, const Matrix& m, std::size_t blocks) {
  if (m.nzValues.size() != blocks * m.getBlockSize())
    malformed("one block of values for each index",
              std::to_string(m.nzValues.size()) + " values for " + std::to_string(blocks) +
                  " blocks of " + std::to_string(m.getBlockSize()));
  if (size.capacity && m.getBlockDimensions() != size.block)
    malformed("blocks of " + std::to_string(size.block[0]) + " x " + std::to_string(size.block[1]),
              "blocks of " + std::to_string(m.getNumRowsInBlock()) + " x " +
                  std::to_string(m.getNumColumnsInBlock()));
  if ((m.numRows && m.numRows != size.numRows) || (m.numColumns && m.numColumns != size.numColumns))
    malformed(
        "a matrix of " + std::to_string(size.numRows) + " x " + std::to_string(size.numColumns),
        std::to_string(m.numRows) + " x " + std::to_string(m.numColumns));
}

/// Converts an index from elements to blocks.
std::size_t inBlocks(std::size_t index, std::size_t extent, std::size_t block) {
  if (index >= extent || index % block)
    malformed("indices below " + std::to_string(extent) + " that are multiples of " +
                  std::to_string(block),
              std::to_string(index));
  return index / block;
}

/// Start of each line of blocks in the values, counted in blocks.
std::vector<std::size_t> startsOf(const std::vector<std::size_t>& starts, std::size_t lines,
                                  std::size_t blockSize, std::size_t blocks) {
  if (starts.size() != lines + 1)
    malformed(std::to_string(lines + 1) + " starts", std::to_string(starts.size()));
  std::vector<std::size_t> made;
  for (const auto s : starts) {
    if (s % blockSize || s / blockSize > blocks || (!made.empty() && s / blockSize < made.back()))
      malformed("rising starts within the values", std::to_string(s));
    made.push_back(s / blockSize);
  }
  if (made.front() != 0 || made.back() != blocks)
    malformed("starts from 0 to the number of values", std::to_string(starts.back()));
  return made;
}

template <typename T>
std::vector<Entry<T>> ordered(std::vector<Entry<T>> entries) {
  const auto key = [](const Entry<T>& e) { return std::tuple(e.row, e.column); };
  std::sort(entries.begin(), entries.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (key(entries[i]) == key(entries[i - 1]))
      malformed("each block once", "two at row " + std::to_string(entries[i].row) + ", column " +
                                       std::to_string(entries[i].column) + " of the blocks");
  return entries;
}

}  // namespace

PartitionerImpl sizeOf(const char* where, const dynamic::FullyConnectedParams& params,
                       const poplar::OptionFlags& options) {
  const double oversize = checkOptions(where, options);
  auto size = checkedSize(where, params.getNumGroups(), params.getOutputChannels(),
                          params.getInputChannels(), params.getSparsityParams().blockDimensions);
  makeRoom(size, params.getNumNonZeroValues(), oversize);
  return size;
}

PartitionerImpl sizeOf(const char* where, const dynamic::MatMulParams& params,
                       const poplar::OptionFlags& options) {
  const double oversize = checkOptions(where, options);
  auto size = checkedSize(where, params.getNumGroups(), params.getM(), params.getK(),
                          params.getSparsityParams().blockDimensions);
  makeRoom(size, params.getNumNonZeroValues(), oversize);
  return size;
}

PartitionerImpl sizeOf(const char* where, const static_::MatMulParams& params,
                       const poplar::OptionFlags& options) {
  checkOptions(where, options);
  const auto rows = params.isTransposed() ? params.getK() : params.getM();
  const auto columns = params.isTransposed() ? params.getM() : params.getK();
  return checkedSize(where, params.getNumGroups(), rows, columns, {1, 1});
}

template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const CSRMatrix<T>& matrix) {
  const std::size_t n = matrix.columnIndices.size();
  checkStored(size, matrix, n);
  const auto [r, c] = matrix.getBlockDimensions();
  const auto starts = startsOf(matrix.rowIndices, size.numRows / r, r * c, n);
  std::vector<Entry<T>> entries;
  for (std::size_t row = 0; row + 1 < starts.size(); ++row)
    for (std::size_t i = starts[row]; i < starts[row + 1]; ++i)
      entries.push_back({row, inBlocks(matrix.columnIndices[i], size.numColumns, c),
                         &matrix.nzValues[i * r * c]});
  return ordered(std::move(entries));
}

template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const CSCMatrix<T>& matrix) {
  const std::size_t n = matrix.rowIndices.size();
  checkStored(size, matrix, n);
  const auto [r, c] = matrix.getBlockDimensions();
  const auto starts = startsOf(matrix.columnIndices, size.numColumns / c, r * c, n);
  std::vector<Entry<T>> entries;
  for (std::size_t column = 0; column + 1 < starts.size(); ++column)
    for (std::size_t i = starts[column]; i < starts[column + 1]; ++i)
      entries.push_back(
          {inBlocks(matrix.rowIndices[i], size.numRows, r), column, &matrix.nzValues[i * r * c]});
  return ordered(std::move(entries));
}

template <typename T>
std::vector<Entry<T>> entriesOf(const PartitionerImpl& size, const COOMatrix<T>& matrix) {
  const std::size_t n = matrix.rowIndices.size();
  checkStored(size, matrix, n);
  if (matrix.columnIndices.size() != n)
    malformed("as many columns as rows",
              std::to_string(matrix.columnIndices.size()) + " and " + std::to_string(n));
  const auto [r, c] = matrix.getBlockDimensions();
  std::vector<Entry<T>> entries;
  for (std::size_t i = 0; i < n; ++i)
    entries.push_back({inBlocks(matrix.rowIndices[i], size.numRows, r),
                       inBlocks(matrix.columnIndices[i], size.numColumns, c),
                       &matrix.nzValues[i * r * c]});
  return ordered(std::move(entries));
}

#define IPUJAX_ENTRIES(T)                                                                \
  template std::vector<Entry<T>> entriesOf(const PartitionerImpl&, const CSRMatrix<T>&); \
  template std::vector<Entry<T>> entriesOf(const PartitionerImpl&, const CSCMatrix<T>&); \
  template std::vector<Entry<T>> entriesOf(const PartitionerImpl&, const COOMatrix<T>&)
IPUJAX_ENTRIES(float);
IPUJAX_ENTRIES(double);
#undef IPUJAX_ENTRIES

}  // namespace popsparse::internal
