#include <algorithm>
#include <cstdlib>

#include "engine/Workspace.hpp"
#include "engine/kernels/map/MapKernel.hpp"

/// The host kernel of every elementwise step: an expression over strided views.
namespace ipujax::engine {
namespace maps {
namespace {
using expr::Op;
/// Cycles per element, roughly: decides what is worth a thread.
double weightOf(Op op) {
  const auto isOneOf = [&](std::initializer_list<Op> ops) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  if (op == Op::kConstant) return 0;
  if (isOneOf({Op::kDivide, Op::kSqrt, Op::kRsqrt, Op::kInverse})) return 0.5;
  if (isOneOf({Op::kExp, Op::kExpm1, Op::kLog, Op::kLog1p, Op::kTanh, Op::kSigmoid, Op::kErf}))
    return 1;
  if (isOneOf({Op::kPower, Op::kAtan2, Op::kSin, Op::kCos, Op::kTan, Op::kErfc, Op::kErfInv,
               Op::kAsin, Op::kAcos, Op::kAtan, Op::kSinh, Op::kCosh, Op::kAsinh, Op::kAcosh,
               Op::kAtanh}))
    return 4;
  return isOneOf({Op::kLogGamma, Op::kRemainder}) ? 20 : 0.1;
}

double weightOf(const expr::ExprProgram& program) {
  double weight = 0.3;
  for (const auto& i : program.instructions()) weight += weightOf(i.op);
  return weight;
}

}  // namespace

std::int64_t grainOf(const expr::ExprProgram& program) {
  const double weight = weightOf(program);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(16384.0 / weight) / 1024 * 1024, 1024,
                                  32768);
}

}  // namespace maps
namespace {

using expr::ExprProgram;
using maps::Cursor;
using maps::kBlock;
using maps::MapKernel;
using maps::Pointers;
using maps::Space;

/// `in_order`: elements keep their row-major numbers, wherever they lie.
Space collapse(const StepDesc& step, std::size_t num_inputs, bool in_order) {
  const auto& shape = step.operands[num_inputs].shape;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) order.push_back(d);
  const auto& lead = step.operands[num_inputs].strides;
  if (!in_order)
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(lead[a]) > std::abs(lead[b]);
    });
  Space space;
  space.strides.resize(step.operands.size());
  for (auto d : order) {
    bool merge = !space.shape.empty();
    for (std::size_t o = 0; merge && o < step.operands.size(); ++o)
      merge = space.strides[o].back() == step.operands[o].strides[d] * shape[d];
    if (merge)
      space.shape.back() *= shape[d];
    else
      space.shape.push_back(shape[d]);
    for (std::size_t o = 0; o < step.operands.size(); ++o) {
      if (merge)
        space.strides[o].back() = step.operands[o].strides[d];
      else
        space.strides[o].push_back(step.operands[o].strides[d]);
    }
  }
  return space;
}

/// For operands that all run along memory, or are one element.
class FlatMap final : public MapKernel {
 public:
  using MapKernel::MapKernel;

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::int64_t n = space_.shape.empty() ? 1 : space_.shape[0];
    if (n <= grain_) {
      evaluate(pointers.data(), n);
      return;
    }
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Pointers moved(pointers);
      for (std::size_t o = 0; o < num_operands_; ++o)
        moved[o] += begin * kBlock * space_.strides[o][0] * bytes_[o];
      evaluate(moved.data(), std::min(end * kBlock, n) - begin * kBlock, begin * kBlock);
    };
    context.pool.parallelFor((n + kBlock - 1) / kBlock, grain_ / kBlock, part);
  }
};

/// For operands that are all contiguous or constant along the last dimension: whole rows at a time.
class RowMap final : public MapKernel {
 public:
  RowMap(const StepDesc& step, const ExprProgram& program, const Space& space,
         const std::vector<bool>& uniform)
      : MapKernel(step, program, space, uniform) {
    const std::size_t last_but_one = space_.shape.size() - 2;
    for (std::size_t o = 0; o < num_operands_; ++o)
      row_bytes_.push_back(space_.strides[o][last_but_one] * bytes_[o]);
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::size_t outer = space_.shape.size() - 1;
    const std::int64_t cols = space_.shape[outer];
    std::int64_t rows = 1;
    for (std::size_t d = 0; d < outer; ++d) rows *= space_.shape[d];
    // Long rows are shared between threads too.
    const std::int64_t piece = cols > grain_ ? grain_ : cols;
    const std::int64_t pieces = (cols + piece - 1) / piece;
    const std::int64_t run = space_.shape[outer - 1];  // rows at equal distances
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, outer, bytes_, pointers);
      for (std::int64_t unit = begin; unit < end;) {
        const std::int64_t row = unit / pieces;
        const std::int64_t first = unit % pieces * piece;
        const std::int64_t count = pieces > 1 ? 1 : std::min(end - unit, run - row % run);
        cursor.seek(row);
        Pointers at_row({cursor.data(), num_operands_});
        for (std::size_t o = 0; o < num_operands_; ++o)
          at_row[o] += first * space_.strides[o][outer] * bytes_[o];
        evaluator_.runRows({at_row.data(), num_inputs_},
                           {at_row.data() + num_inputs_, num_operands_ - num_inputs_},
                           std::min(piece, cols - first), count, row_bytes_,
                           static_cast<std::uint64_t>(row * cols + first));
        unit += count;
      }
    };
    const std::int64_t units = rows * pieces;
    runUnits(context, units, piece, part);
  }

 private:
  std::vector<std::int64_t> row_bytes_;  ///< from one row to the next, of each operand
};

/// Evaluates pieces of rows of any strides, row-major; copies operands that are not contiguous.
class StagedMap final : public MapKernel {
 public:
  using MapKernel::MapKernel;

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::size_t outer = space_.shape.size() - 1;
    const std::int64_t cols = space_.shape[outer];
    const std::int64_t pieces = (cols + kBlock - 1) / kBlock;
    std::int64_t units = pieces;
    for (std::size_t d = 0; d < outer; ++d) units *= space_.shape[d];
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, outer, bytes_, pointers);
      Workspace workspace;
      std::byte* const memory = workspace.get(static_cast<std::int64_t>(num_operands_ * kStage));
      for (std::int64_t unit = begin; unit < end; ++unit) {
        cursor.seek(unit / pieces);
        const std::int64_t first = unit % pieces * kBlock;
        runPiece(cursor.data(), unit / pieces * cols, first, std::min(kBlock, cols - first),
                 memory);
      }
    };
    runUnits(context, units, std::min(kBlock, cols), part);
  }

 private:
  static constexpr std::size_t kStage = static_cast<std::size_t>(kBlock) * 8;

  /// Evaluates n elements of a row from its element `first` on; its element 0 has the number `row`.
  void runPiece(std::byte* const* base, std::int64_t row, std::int64_t first, std::int64_t n,
                std::byte* memory) const {
    const std::size_t inner = space_.shape.size() - 1;
    Pointers there({base, num_operands_});
    Pointers staged({base, num_operands_});
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const std::int64_t step = space_.strides[o][inner] * bytes_[o];
      there[o] += first * step;
      staged[o] = isDirect(o) ? there[o] : memory + o * kStage;
      if (o < num_inputs_ && !isDirect(o))
        maps::copy(there[o], 0, step, staged[o], 0, bytes_[o], 1, n, bytes_[o]);
    }
    evaluate(staged.data(), n, row + first);
    for (std::size_t o = num_inputs_; o < num_operands_; ++o)
      if (!isDirect(o))
        maps::copy(staged[o], 0, bytes_[o], there[o], 0, space_.strides[o][inner] * bytes_[o], 1, n,
                   bytes_[o]);
  }
  bool isDirect(std::size_t o) const {
    const std::int64_t step = space_.strides[o].back();
    return step == 1 || (o < num_inputs_ && step == 0 && isUniform(o));
  }
  /// The same test as in uniformAlong.
  bool isUniform(std::size_t o) const {
    return std::ranges::all_of(space_.strides[o], [](std::int64_t x) { return x == 0; });
  }
};

/// Inputs that are one element for the whole call.
std::vector<bool> uniformAlong(const Space& space, std::size_t num_inputs, std::size_t first_dim) {
  std::vector<bool> uniform(num_inputs);
  for (std::size_t i = 0; i < num_inputs; ++i) {
    const auto& s = space.strides[i];
    uniform[i] =
        s.size() > first_dim && std::all_of(s.begin() + static_cast<std::ptrdiff_t>(first_dim),
                                            s.end(), [](std::int64_t x) { return x == 0; });
  }
  return uniform;
}

bool runsAlongMemory(const Space& space, std::size_t num_inputs) {
  const std::size_t inner = space.shape.size() - 1;
  for (std::size_t o = 0; o < space.strides.size(); ++o) {
    const std::int64_t s = space.strides[o][inner];
    if (s != 1 && (o >= num_inputs || s != 0)) return false;
  }
  return true;
}

std::unique_ptr<Kernel> makeMap(const StepDesc& step) {
  const auto program = ExprProgram::fromIntegers(step.attributes.integers("expr"));
  const std::size_t num_inputs = program.numInputs();
  const bool is_random = program.isRandom();
  const Space space = collapse(step, num_inputs, is_random);
  const std::size_t rank = space.shape.size();
  if (std::find(space.shape.begin(), space.shape.end(), 0) != space.shape.end())
    return kernelOf([](RunContext&, std::span<std::byte* const>) {});
  if (rank == 0 || (rank == 1 && runsAlongMemory(space, num_inputs)))
    return std::make_unique<FlatMap>(step, program, space, uniformAlong(space, num_inputs, 0));
  constexpr std::int64_t kShortRow = 96;
  const bool rows_are_whole = runsAlongMemory(space, num_inputs);
  if (rank > 1 && rows_are_whole &&
      (is_random ||
       (space.shape.back() >= kShortRow && !maps::haveRepeatedRows(space, num_inputs))))
    return std::make_unique<RowMap>(step, program, space,
                                    uniformAlong(space, num_inputs, rank - 1));
  if (is_random)
    return std::make_unique<StagedMap>(step, program, space, uniformAlong(space, num_inputs, 0));
  return maps::makeTiledMap(step, program, space, uniformAlong(space, num_inputs, 0));
}

void checkMap(StepCheck& check) {
  const auto program = check.program("expr");
  const std::size_t num_inputs = program.numInputs();
  const auto types = program.outputTypes();
  check.operands(num_inputs + types.size());
  check.need(!types.empty(), "an expression that gives something");
  const auto made = check.written(num_inputs);
  for (std::size_t i = 0; i < num_inputs; ++i)
    check.read(i).isOf(program.inputTypes()[i]).hasShapeOf(made);
  for (std::size_t j = 0; j < types.size(); ++j)
    check.written(num_inputs + j).isOf(types[j]).hasShapeOf(made);
  check.mayReplaceAny(num_inputs);
}

const RegisterKernel kMap{"popx.map", makeMap, checkMap, KernelRole::kElementwise};
}  // namespace
}  // namespace ipujax::engine
