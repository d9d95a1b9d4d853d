#include <poplar/Engine.hpp>
#include <popops/Cast.hpp>
#include <popsparse/Embedding.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/SparsePartitioner.hpp>
#include <popsparse/codelets.hpp>
#include <popsparse/experimental/BlockSparseMatMul.hpp>

#include "Check.hpp"
#include "Fixture.hpp"

using namespace poplar;
using namespace poplar::program;
using namespace popsparse;

namespace {

/// A sparse matrix as coordinates and dense.
struct Problem {
  std::size_t rows, columns, block;
  COOMatrix<float> coo;
  std::vector<float> dense;

  Problem(std::mt19937& random, std::size_t rowBlocks, std::size_t columnBlocks, std::size_t block)
      : rows(rowBlocks * block),
        columns(columnBlocks * block),
        block(block),
        coo(rows, columns, {block, block}),
        dense(rows * columns) {
    for (std::size_t r = 0; r < rowBlocks; ++r)
      for (std::size_t c = 0; c < columnBlocks; ++c)
        if (random() % 3 == 0) add(random, r * block, c * block);
  }
  void add(std::mt19937& random, std::size_t row, std::size_t column) {
    coo.rowIndices.push_back(row);
    coo.columnIndices.push_back(column);
    for (std::size_t i = 0; i < block * block; ++i) {
      const float value = static_cast<float>(random() % 9) / 4 + 0.25F;
      coo.nzValues.push_back(value);
      dense[(row + i / block) * columns + column + i % block] = value;
    }
  }
  dynamic::SparsityParams sparsity() const {
    return {block == 1 ? dynamic::SparsityType::Element : dynamic::SparsityType::Block,
            dynamic::SparsityStructure::Unstructured,
            {block, block}};
  }
};

std::vector<float> multiplied(const std::vector<float>& a, const std::vector<float>& b,
                              std::size_t m, std::size_t k, std::size_t n) {
  std::vector<float> c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t p = 0; p < k; ++p)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return c;
}

std::vector<float> transposed(const std::vector<float>& a, std::size_t m, std::size_t n) {
  std::vector<float> t(n * m);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
  return t;
}

void checkNear(const std::vector<float>& found, const std::vector<float>& wanted, double tol) {
  CHECK_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK_NEAR(found[i], wanted[i], tol);
}

/// Writes a matrix to the tensors of a sparse one, as programs of the SDK do, and runs.
struct Run {
  Fixture f;
  Type type;
  dynamic::SparseTensor sparse;

  explicit Run(Type type = FLOAT) : type(type) {}
  Tensor input(const std::vector<std::size_t>& shape, const std::vector<float>& values) {
    return popops::cast(f.graph, f.constant<float>(shape, values), type, f.prog);
  }
  std::vector<float> output(const dynamic::SparsityDataImpl<float>& data, const Tensor& t) {
    const auto wide = popops::cast(f.graph, t, FLOAT, f.prog);
    f.graph.createHostRead("out", wide);
    f.graph.createHostWrite("meta", sparse.getMetaInfoTensor());
    f.graph.createHostWrite("values", sparse.getNzValuesTensor());
    Engine engine(f.graph, f.prog);
    engine.load(f.device);
    const std::vector<unsigned short> meta(data.metaInfo.begin(), data.metaInfo.end());
    engine.writeTensor("meta", meta.data(), meta.data() + meta.size());
    std::vector<std::uint16_t> halves(data.nzValues.size());
    copyFloatToDeviceHalf(f.graph.getTarget(), data.nzValues.data(), halves.data(), halves.size());
    if (type == HALF)
      engine.writeTensor("values", halves.data(), halves.data() + halves.size());
    else
      engine.writeTensor("values", data.nzValues.data(),
                         data.nzValues.data() + data.nzValues.size());
    engine.run();
    return f.read(engine, "out", wide.numElements());
  }
};

}  // namespace

TEST(a_layer_with_sparse_weights_is_the_dense_one) {
  std::mt19937 random(1);
  for (const std::size_t block : {1, 2, 4}) {
    for (const Type type : {FLOAT, HALF}) {
      const Problem p(random, 4, 6, block);
      const std::size_t batch = 3;
      const auto params = dynamic::FullyConnectedParams::createWithNumNonZeroValues(
          p.sparsity(), p.coo.nzValues.size(), batch, 1, p.columns, p.rows);
      const auto x = randomFloats(random, batch * p.columns);
      const auto g = randomFloats(random, batch * p.rows);
      const double tol = type == HALF ? 0.1 : 1e-4;
      for (int pass = 0; pass < 2; ++pass) {
        Run run(type);
        popsparse::addCodelets(run.f.graph);
        const OptionFlags options = {{"availableMemoryProportion", "0.4"},
                                     {"metaInfoBucketOversizeProportion", "0.5"}};
        const dynamic::Partitioner<float> partitioner(params, type, run.f.graph.getTarget(),
                                                      options);
        run.sparse = dynamic::createFullyConnectedWeights(run.f.graph, type, params, "w", options);
        CHECK_EQ(run.sparse.getMetaInfoTensor().elementType(), UNSIGNED_SHORT);
        const auto data = partitioner.createSparsityDataImpl(p.coo);
        const auto out = pass == 0 ? dynamic::fullyConnectedFwd(run.f.graph, run.sparse,
                                                                run.input({batch, p.columns}, x),
                                                                params, run.f.prog, "fwd", options)
                                   : dynamic::fullyConnectedGradA(
                                         run.f.graph, run.sparse, run.input({batch, p.rows}, g),
                                         params, run.f.prog, "grad", options);
        const auto wanted = pass == 0 ? multiplied(x, transposed(p.dense, p.rows, p.columns), batch,
                                                   p.columns, p.rows)
                                      : multiplied(g, p.dense, batch, p.rows, p.columns);
        checkNear(run.output(data, out), wanted, tol);
      }
    }
  }
}

TEST(the_weights_gradient_stands_where_they_do) {
  std::mt19937 random(2);
  for (const std::size_t block : {1, 2}) {
    const Problem p(random, 5, 3, block);
    const std::size_t batch = 4;
    const auto params = dynamic::FullyConnectedParams::createWithNzRatio(p.sparsity(), 0.6, batch,
                                                                         1, p.columns, p.rows);
    const auto x = randomFloats(random, batch * p.columns);
    const auto g = randomFloats(random, batch * p.rows);
    Run run;
    const dynamic::Partitioner<float> partitioner(params, FLOAT, run.f.graph.getTarget(), {});
    run.sparse = dynamic::createFullyConnectedWeights(run.f.graph, FLOAT, params);
    const auto w = dynamic::fullyConnectedSparseGradW(
        run.f.graph, run.sparse.getMetaInfoTensor(), run.input({batch, p.rows}, g),
        run.input({batch, p.columns}, x), params, run.f.prog);
    CHECK(w.shape() == run.sparse.getNzValuesTensor().shape());
    auto data = partitioner.createSparsityDataImpl(p.coo);
    const auto dense = multiplied(transposed(g, batch, p.rows), x, p.rows, batch, p.columns);
    data.nzValues = run.output(data, w);
    const auto gradient = partitioner.sparsityDataImplToCOOMatrix(data);
    CHECK(gradient.rowIndices == p.coo.rowIndices);
    for (std::size_t i = 0; i < gradient.nzValues.size(); ++i) {
      const std::size_t b = i / (block * block), e = i % (block * block);
      const std::size_t row = gradient.rowIndices[b] + e / block;
      CHECK_NEAR(gradient.nzValues[i],
                 dense[row * p.columns + gradient.columnIndices[b] + e % block], 1e-4);
    }
    for (std::size_t i = gradient.nzValues.size(); i < data.nzValues.size(); ++i)
      CHECK_EQ(data.nzValues[i], 0.0F);
  }
}

TEST(rows_of_sparse_weights_are_read_and_updated) {
  std::mt19937 random(3);
  const Problem p(random, 4, 5, 2);
  const auto params = dynamic::FullyConnectedParams::createWithNumNonZeroValues(
      p.sparsity(), p.coo.nzValues.size(), 1, 1, p.columns, p.rows);
  const std::vector<unsigned> at = {5, 0, 5};
  const auto slices = randomFloats(random, at.size() * p.columns);
  Run run;
  auto& graph = run.f.graph;
  run.sparse = dynamic::createFullyConnectedWeights(graph, FLOAT, params);
  const auto indices = run.f.constant<unsigned>({at.size()}, at);
  const auto scale = run.f.constant<float>({}, {0.5F});
  dynamic::embeddingUpdateAdd(graph, run.sparse, run.input({at.size(), p.columns}, slices), indices,
                              scale, run.f.prog, params);
  const auto out = dynamic::embeddingSlice(graph, run.sparse, indices, run.f.prog, params);
  const dynamic::Partitioner<float> partitioner(params, FLOAT, graph.getTarget(), {});
  const auto found = run.output(partitioner.createSparsityDataImpl(p.coo), out);
  auto wanted = p.dense;
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t c = 0; c < p.columns; ++c)
      if (p.dense[at[i] * p.columns + c] != 0)
        wanted[at[i] * p.columns + c] += 0.5F * slices[i * p.columns + c];
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t c = 0; c < p.columns; ++c)
      CHECK_NEAR(found[i * p.columns + c], wanted[at[i] * p.columns + c], 1e-5);
  CHECK_EQ(dynamic::createIndicesTensor(graph, params, 7).elementType(), UNSIGNED_INT);
  CHECK_EQ(dynamic::createSliceTensor(graph, HALF, params, 7).dim(1), p.columns);
}

TEST(dynamic_sparse_products_take_either_side_transposed) {
  std::mt19937 random(4);
  for (int round = 0; round < 8; ++round) {
    const bool flipSparse = round & 1, flipDense = round & 2;
    const Problem p(random, 3, 4, round & 4 ? 2 : 1);
    const std::size_t n = 3, k = flipSparse ? p.rows : p.columns;
    const auto params = dynamic::MatMulParams::createWithNumNonZeroValues(
        p.sparsity(), p.coo.nzValues.size(), 1, p.rows, p.columns, n);
    Run run;
    run.sparse = dynamic::createSparseDenseMatMulLHS(run.f.graph, FLOAT, params);
    const auto x = randomFloats(random, k * n);
    const auto rhs =
        flipDense ? run.input({1, n, k}, transposed(x, k, n)) : run.input({1, k, n}, x);
    const auto out =
        dynamic::sparseDenseMatMul(run.f.graph, run.sparse, rhs, run.f.prog, flipSparse, flipDense);
    const dynamic::Partitioner<float> partitioner(params, FLOAT, run.f.graph.getTarget(), {});
    const auto w = flipSparse ? transposed(p.dense, p.rows, p.columns) : p.dense;
    checkNear(run.output(partitioner.createSparsityDataImpl(p.coo), out),
              multiplied(w, x, flipSparse ? p.columns : p.rows, k, n), 1e-4);
  }
}

TEST(static_sparse_products_are_the_dense_ones) {
  std::mt19937 random(5);
  for (int round = 0; round < 4; ++round) {
    const bool sparseLeft = round & 1;
    const Problem p(random, 4, 3, round & 2 ? 2 : 1);
    const std::size_t n = 3;
    Fixture f;
    const auto params = sparseLeft
                            ? static_::MatMulParams::createForSparseDense(1, p.rows, p.columns, n)
                            : static_::MatMulParams::createForDenseSparse(1, n, p.rows, p.columns);
    static_::PlanningCache cache;
    const static_::Partitioner<float> partitioner(params, FLOAT, f.graph.getTarget(), {}, &cache);
    const auto data = partitioner.createSparsityDataImpl(p.coo);
    const auto csr = partitioner.sparsityDataImplToCSRMatrix(data);
    const auto made =
        sparseLeft
            ? static_::createSparseDenseMatMulLHS(f.graph, FLOAT, params, csr, "w", {}, &cache)
            : static_::createDenseSparseMatMulRHS(f.graph, FLOAT, params, csr, "w", {}, &cache);
    const auto values =
        f.graph.addConstant<float>(FLOAT, made.getNzValuesTensor().shape(), data.nzValues);
    f.graph.setTileMapping(values, f.graph.getTileMapping(made.getNzValuesTensor()));
    const static_::SparseTensor sparse(values, made.getOpMetaData());
    const auto x = randomFloats(random, n * (sparseLeft ? p.columns : p.rows));
    if (sparseLeft) {
      const auto out = static_::sparseDenseMatMul(f.graph, sparse,
                                                  f.constant<float>({1, p.columns, n}, x), f.prog);
      checkNear(f.run(out), multiplied(p.dense, x, p.rows, p.columns, n), 1e-4);
    } else {
      const auto out =
          static_::denseSparseMatMul(f.graph, f.constant<float>({1, n, p.rows}, x), sparse, f.prog);
      checkNear(f.run(out), multiplied(x, p.dense, n, p.rows, p.columns), 1e-4);
    }
  }
}

TEST(storage_formats_hold_the_same_matrix) {
  std::mt19937 random(6);
  for (const std::size_t block : {1, 2, 3}) {
    const Problem p(random, 5, 7, block);
    const auto params = dynamic::MatMulParams::createWithNumNonZeroValues(
        p.sparsity(), p.coo.nzValues.size(), 1, p.rows, p.columns, 1);
    const auto target = Target::createIPUTarget(1, "ipu2");
    const dynamic::Partitioner<float> partitioner(params, FLOAT, target, {});
    const auto data = partitioner.createSparsityDataImpl(p.coo);
    CHECK_EQ(data.metaInfo.size(), partitioner.getmetaInfoBucketElements());
    const auto csr = partitioner.sparsityDataImplToCSRMatrix(data);
    const auto csc = partitioner.sparsityDataImplToCSCMatrix(data);
    CHECK_EQ(csr.rowIndices.back(), p.coo.nzValues.size());
    CHECK_EQ(csr.getBlockDimensions()[0], block);
    for (const auto& again :
         {partitioner.createSparsityDataImpl(csr), partitioner.createSparsityDataImpl(csc)}) {
      CHECK(again.metaInfo == data.metaInfo);
      CHECK(again.nzValues == data.nzValues);
    }
    CHECK(partitioner.sparsityDataImplToCOOMatrix(data).nzValues == p.coo.nzValues);
  }
}

TEST(lists_of_matrices_are_made_from_the_size_of_their_blocks) {
  const std::array<std::size_t, 2> block = {2, 3};
  const std::vector<CSRMatrix<float>> rows(2, block);
  const std::vector<CSCMatrix<float>> columns(2, block);
  const std::vector<COOMatrix<float>> coordinates(2, block);
  CHECK(rows[1].getBlockDimensions() == block);
  CHECK(columns[1].getBlockDimensions() == block);
  CHECK(coordinates[1].getBlockDimensions() == block);
}

TEST(malformed_sparse_matrices_are_refused) {
  using Values = std::vector<float>;
  using Indices = std::vector<std::size_t>;
  const auto COO = [](const Values& v, const Indices& columns, const Indices& rows) {
    return COOMatrix<float>(v, columns, rows);
  };
  const auto CSR = [](const Values& v, const Indices& columns, const Indices& rows) {
    return CSRMatrix<float>(v, columns, rows);
  };
  const dynamic::SparsityParams single;
  const auto params = dynamic::MatMulParams::createWithNumNonZeroValues(single, 2, 1, 4, 4, 1);
  const auto target = Target::createIPUTarget(1, "ipu2");
  const dynamic::Partitioner<float> p(params, FLOAT, target,
                                      {{"metaInfoBucketOversizeProportion", "0"}});
  CHECK_THROWS(p.createSparsityDataImpl(COO({1}, {4}, {0})), "indices below 4");
  CHECK_THROWS(p.createSparsityDataImpl(COO({1, 2}, {1}, {0})), "one block");
  CHECK_THROWS(p.createSparsityDataImpl(COO({1, 2}, {1, 1}, {0, 0})), "once");
  CHECK_THROWS(p.createSparsityDataImpl(COO({1, 2, 3}, {0, 1, 2}, {0, 0, 0})), "at most 2 blocks");
  CHECK_THROWS(p.createSparsityDataImpl(CSR({1}, {0}, {0, 1})), "5 starts");
  CHECK_THROWS(p.createSparsityDataImpl(CSR({1}, {0}, {0, 1, 0, 1, 1})), "rising");
  CHECK_THROWS(dynamic::MatMulParams::createWithNzRatio(single, 1.5, 1, 4, 4, 1), "[0, 1]");
  const auto grouped = dynamic::MatMulParams::createWithNzRatio(single, 0.5, 2, 4, 4, 1);
  CHECK_THROWS(dynamic::Partitioner<float>(grouped, FLOAT, target, {}), "one group");
  CHECK_THROWS(dynamic::Partitioner<float>(params, FLOAT, target, {{"colour", "red"}}), "colour");
  CHECK_THROWS(dynamic::Partitioner<float>(params, FLOAT, target, {{"partialsType", "half"}}),
               "partialsType");
  Fixture f;
  const auto s = dynamic::createSparseDenseMatMulLHS(f.graph, FLOAT, params);
  CHECK_THROWS(dynamic::sparseDenseMatMul(f.graph, s, f.variable("x", {1, 3, 2}), f.prog), "4 x 4");
  CHECK_THROWS(dynamic::sparseDenseMatMul(f.graph, dynamic::SparseTensor(),
                                          f.variable("y", {1, 4, 2}), f.prog),
               "made for a product");
}

TEST(block_sparse_products_are_the_dense_ones) {
  namespace bs = popsparse::experimental;
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    const bool flip = round & 1, sparseResult = round & 2;
    const unsigned groups = round & 4 ? 2 : 1;
    const std::array<int, 3> dim = {4, 6, 8}, block = {2, 3, 4};
    const std::size_t m = 4, k = 6, n = 8;
    const int row = sparseResult ? 0 : flip ? 2 : 1, column = !sparseResult && flip ? 1 : 2;
    const std::size_t height = static_cast<std::size_t>(dim[row] / block[row]);
    const std::size_t width = static_cast<std::size_t>(dim[column] / block[column]);
    std::vector<unsigned char> mask(groups * height * width);
    for (auto& on : mask) on = random() % 2;
    mask[0] = mask.back() = 1;
    Fixture f;
    const auto params =
        sparseResult ? bs::BSMatMulParams(dim, block, mask, FLOAT, FLOAT, FLOAT,
                                          bs::SubBlockMask::None, groups)
                     : bs::BSMatMulParams(dim, block, mask, flip, FLOAT, FLOAT, FLOAT, groups);
    const auto lhs = bs::createBSMatMulInputLHS(f.graph, params, "lhs");
    const auto rhs = bs::createBSMatMulInputRHS(f.graph, params, "rhs");
    const auto a = randomFloats(random, lhs.numElements());
    const auto b = randomFloats(random, rhs.numElements());
    f.graph.setInitialValue(lhs, a);
    f.graph.setInitialValue(rhs, b);
    const auto out = f.run(bs::bsMatMul(f.graph, params, f.prog, lhs, rhs));
    std::size_t at = 0;
    const std::size_t br = static_cast<std::size_t>(block[row]);
    const std::size_t bc = static_cast<std::size_t>(block[column]);
    for (unsigned g = 0; g < groups; ++g) {
      const std::vector<float> left(a.begin() + g * m * k, a.begin() + (g + 1) * m * k);
      std::vector<float> right(k * n);
      if (sparseResult) std::copy_n(b.begin() + g * k * n, k * n, right.begin());
      std::vector<float> wanted = multiplied(left, right, m, k, n);
      const std::size_t first = at;
      for (std::size_t i = 0; i < height * width; ++i) {
        if (!mask[g * height * width + i]) continue;
        for (std::size_t e = 0; e < br * bc; ++e, ++at) {
          const std::size_t r = i / width * br + e / bc, c = i % width * bc + e % bc;
          if (sparseResult)
            CHECK_NEAR(out[at], wanted[r * n + c], 1e-4);
          else
            right[flip ? c * n + r : r * n + c] = b[at];
        }
      }
      if (sparseResult) continue;
      wanted = multiplied(left, right, m, k, n);
      CHECK(at > first);
      for (std::size_t i = 0; i < m * n; ++i) CHECK_NEAR(out[g * m * n + i], wanted[i], 1e-4);
    }
  }
}

TEST(block_sparse_softmax_of_groups_is_that_of_each) {
  namespace bs = popsparse::experimental;
  std::mt19937 random(9);
  const std::array<int, 2> dim = {4, 6}, block = {2, 2};
  const std::vector<unsigned char> first = {1, 0, 1, 1, 1, 0}, second = {0, 1, 0, 1, 0, 0};
  std::vector<unsigned char> both = first;
  both.insert(both.end(), second.begin(), second.end());
  const auto kind = bs::SubBlockMask::ZeroUpperTriangle;
  Fixture f;
  const auto x = f.constant<float>({6, 4}, randomFloats(random, 24));
  const auto one = bs::bsSoftmax(f.graph, x.slice(0, 4), dim, block, first, kind, f.prog);
  const auto two = bs::bsSoftmax(f.graph, x.slice(4, 6), dim, block, second, kind, f.prog);
  const auto out = bs::bsSoftmax(f.graph, x, dim, block, both, kind, 2, f.prog, "groups");
  bs::bsSoftmaxInPlace(f.graph, x, dim, block, both, kind, 2, f.prog);
  CHECK_THROWS(bs::bsSoftmax(f.graph, x, dim, block, both, kind, 3, f.prog), "mask of all blocks");
  const auto found = f.run(concat({one, two, out, x}));
  for (std::size_t i = 0; i < 48; ++i) CHECK_EQ(found[24 + i], found[i % 24]);
}

TEST(block_sparse_softmax_and_its_gradient) {
  namespace bs = popsparse::experimental;
  std::mt19937 random(8);
  const std::array<int, 2> dim = {4, 6}, block = {2, 2};
  const std::vector<unsigned char> mask = {1, 0, 1, 1, 1, 0};
  for (const auto kind : {bs::SubBlockMask::None, bs::SubBlockMask::ZeroUpperTriangle,
                          bs::SubBlockMask::ZeroLowerTriangle}) {
    const auto x = randomFloats(random, 16);
    const auto g = randomFloats(random, 16);
    Fixture f;
    const auto in = f.constant<float>({4, 4}, x);
    const auto out = bs::bsSoftmax(f.graph, in, dim, block, mask, kind, f.prog);
    bs::bsSoftmaxInPlace(f.graph, in, dim, block, mask, kind, f.prog);
    const auto grad =
        bs::bsSoftmaxGrad(f.graph, out, f.constant<float>({4, 4}, g), dim, block, mask, f.prog);
    const auto found = f.run(concat({out, in, grad}));
    std::vector<double> y(16), sum(4), dot(4);
    std::vector<std::size_t> rows;
    const std::size_t blocks[][2] = {{0, 0}, {0, 2}, {1, 0}, {1, 1}};
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t r = blocks[i / 4][0] * 2 + i % 4 / 2, c = blocks[i / 4][1] * 2 + i % 2;
      const bool masked = (kind == bs::SubBlockMask::ZeroUpperTriangle && c > r) ||
                          (kind == bs::SubBlockMask::ZeroLowerTriangle && c < r);
      rows.push_back(r);
      y[i] = masked ? 0 : std::exp(double{x[i]});
      sum[r] += y[i];
    }
    for (std::size_t i = 0; i < 16; ++i) {
      y[i] = sum[rows[i]] > 0 ? y[i] / sum[rows[i]] : 0;
      dot[rows[i]] += y[i] * g[i];
    }
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK_NEAR(found[i], y[i], 1e-5);
      CHECK_NEAR(found[16 + i], y[i], 1e-5);
      CHECK_NEAR(found[32 + i], y[i] * (g[i] - dot[rows[i]]), 1e-5);
    }
  }
}
