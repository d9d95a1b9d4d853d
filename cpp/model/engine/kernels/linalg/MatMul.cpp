#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engine/ThreadPool.hpp"
#include "engine/blas/Arithmetic.hpp"
#include "engine/blas/Gemm.hpp"
#include "engine/blas/SmallProducts.hpp"
#include "engine/kernels/Kernel.hpp"

/// The host kernel "poplin.matmul": A [G, M, K], B [G, K, N], C [G, M, N]; attributes half_block,
/// scale, accumulate.
namespace ipujax::engine {
namespace {

/// Products smaller than this are shared out by group, larger ones run one after another.
constexpr std::int64_t kLargeGroup = 1 << 22;
constexpr std::int64_t kTaskWork = 1 << 16;

std::int64_t bytesOf(const OperandDesc& desc, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeOf(desc.type));
}

class MatMul final : public Kernel {
 public:
  explicit MatMul(const StepDesc& step) {
    const auto& a = step.operands[0];
    const auto& b = step.operands[1];
    const auto& c = step.operands[2];
    groups_ = a.shape[0];
    g_.m = a.shape[1];
    g_.k = a.shape[2];
    g_.n = b.shape[2];
    g_.a = {nullptr, a.type, a.strides[1], a.strides[2]};
    g_.b = {nullptr, b.type, b.strides[1], b.strides[2]};
    g_.c = {nullptr, c.type, c.strides[1], c.strides[2]};
    for (auto* m : {&g_.a, &g_.b}) tidy(*m, m == &g_.a ? g_.m : g_.k, m == &g_.a ? g_.k : g_.n);
    g_.scale = static_cast<float>(step.attributes.real("scale"));
    g_.accumulate = step.attributes.integer("accumulate") != 0;
    g_.half_block = step.attributes.integer("half_block");
    const bool joined = b.strides[0] == 0 && a.strides[0] == g_.m * a.strides[1] &&
                        c.strides[0] == g_.m * c.strides[1];
    if (groups_ > 1 && joined) {  // one B for all groups: one tall product
      g_.m *= groups_;
      groups_ = 1;
    }
    if (blas::suitsLanes(g_, groups_))
      small_ = {g_, a.strides[0], b.strides[0], c.strides[0], !isByDot(blas::oriented(g_))};
    a_step_ = bytesOf(a, a.strides[0]);
    b_step_ = bytesOf(b, b.strides[0]);
    c_step_ = bytesOf(c, c.strides[0]);
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    if (small_) return runSmall(context, pointers);
    const std::int64_t work = g_.m * g_.n * g_.k;
    if (groups_ == 1 || work >= kLargeGroup) {
      for (std::int64_t g = 0; g < groups_; ++g) one(&context.pool, pointers, g);
      return;
    }
    context.pool.parallelFor(groups_, kTaskWork / std::max<std::int64_t>(work, 1) + 1,
                             [&](std::int64_t begin, std::int64_t end) {
                               for (std::int64_t g = begin; g < end; ++g) one(nullptr, pointers, g);
                             });
  }

 private:
  /// Strides of dimensions of size one are arbitrary: sets them to what the fast paths look for.
  static void tidy(blas::ConstMatrix& m, std::int64_t rows, std::int64_t cols) {
    if (cols == 1 && m.row != 1) m.col = 1;
    if (rows == 1 && m.col != 1) m.row = 1;
  }

  void runSmall(RunContext& context, std::span<std::byte* const> pointers) const {
    constexpr std::int64_t kTask = 1024;
    blas::SmallProducts products = *small_;
    products.first.a.data = pointers[0];
    products.first.b.data = pointers[1];
    products.first.c.data = pointers[2];
    context.pool.parallelFor(groups_, kTask, [&](std::int64_t begin, std::int64_t end) {
      blas::multiply(products, begin, end);
    });
  }

  void one(ThreadPool* pool, std::span<std::byte* const> pointers, std::int64_t g) const {
    blas::Gemm problem = g_;
    problem.a.data = pointers[0] + g * a_step_;
    problem.b.data = pointers[1] + g * b_step_;
    problem.c.data = pointers[2] + g * c_step_;
    blas::gemm(pool, problem);
  }

  blas::Gemm g_;
  std::optional<blas::SmallProducts> small_;
  std::int64_t groups_ = 1, a_step_ = 0, b_step_ = 0, c_step_ = 0;
};

void checkMatMul(StepCheck& check) {
  check.operands(3);
  const bool accumulates = check.flag("accumulate");
  check.real("scale");
  check.integer("half_block", 0, StepCheck::kMostElements);
  const auto a = check.read(0).hasRank(3);
  const auto b = check.read(1).hasRank(3);
  const auto c = (accumulates ? check.updated(2) : check.written(2)).hasRank(3);
  const std::int64_t groups = a->shape[0];
  b.hasShape(std::array{groups, a->shape[2], b->shape[2]});
  c.hasShape(std::array{groups, a->shape[1], b->shape[2]});
  blas::arithmeticOf(a->type, b->type, c->type);  // throws where there is none
}

const RegisterKernel kMatMul{"poplin.matmul", makeKernel<MatMul>, checkMatMul};

}  // namespace
}  // namespace ipujax::engine
