#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "engine/Kernel.hpp"
#include "engine/Workspace.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/Transpose.hpp"

/// The host kernel of every elementwise step: an expression over strided views.
namespace {
using namespace ipujax::engine;
using expr::ExprEvaluator;
using expr::ExprProgram;
using expr::Op;
using expr::RandomState;

constexpr std::int64_t kBlock = ExprEvaluator::kBlock;

/// The iteration space after sorting by the first output's memory order and merging dimensions
/// that are one for all operands. strides[operand][dim], in elements.
struct Space {
  std::vector<std::int64_t> shape;
  std::vector<std::vector<std::int64_t>> strides;
};

Space collapse(const StepDesc& step, std::size_t num_inputs) {
  const auto& shape = step.operands[num_inputs].shape;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) order.push_back(d);
  const auto& lead = step.operands[num_inputs].strides;
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

double weightOf(const ExprProgram& program) {
  double weight = 0.3;
  for (const auto& i : program.instructions()) weight += weightOf(i.op);
  return weight;
}

/// Elements worth waking a thread for.
std::int64_t grainOf(double weight) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(16384.0 / weight) / 1024 * 1024, 1024,
                                  32768);
}

class MapKernel : public Kernel {
 public:
  MapKernel(const StepDesc& step, const ExprProgram& program, const Space& space,
            const std::vector<bool>& uniform)
      : num_inputs_(program.numInputs()),
        num_operands_(step.operands.size()),
        evaluator_(program, uniform),
        grain_(grainOf(weightOf(program))),
        space_(space),
        random_(program.isRandom()) {
    for (const auto& o : step.operands) bytes_.push_back(static_cast<std::int64_t>(sizeOf(o.type)));
  }

 protected:
  void evaluate(std::byte* const* operands, std::int64_t n, RandomState random) const {
    evaluator_.run({const_cast<const std::byte* const*>(operands), num_inputs_},
                   {operands + num_inputs_, num_operands_ - num_inputs_}, n, random);
  }
  static RandomState at(std::uint64_t seed, std::int64_t element) {
    return {seed, static_cast<std::uint64_t>(element)};
  }
  /// Another one for each run of a kernel that is random.
  std::uint64_t nextSeed() const { return random_ ? runs_.fetch_add(1) << 32 : 0; }

  std::size_t num_inputs_;
  std::size_t num_operands_;
  ExprEvaluator evaluator_;
  std::int64_t grain_;  ///< elements
  Space space_;
  std::vector<std::int64_t> bytes_;  ///< of an element of each operand

 private:
  bool random_;
  mutable std::atomic<std::uint64_t> runs_{1};
};

/// Pointers of one call; a few live on the stack.
class Pointers {
 public:
  explicit Pointers(std::span<std::byte* const> from) {
    if (from.size() > kFew) {
      many_.assign(from.begin(), from.end());
      data_ = many_.data();
    } else {
      std::copy(from.begin(), from.end(), few_);
    }
  }
  Pointers(const Pointers&) = delete;
  std::byte** data() { return data_; }
  std::byte*& operator[](std::size_t i) { return data_[i]; }

 private:
  static constexpr std::size_t kFew = 24;
  std::byte* few_[kFew];
  std::vector<std::byte*> many_;
  std::byte** data_ = few_;
};

/// All operands run along memory, or are one element.
class FlatMap final : public MapKernel {
 public:
  using MapKernel::MapKernel;

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::int64_t n = space_.shape.empty() ? 1 : space_.shape[0];
    const std::uint64_t seed = nextSeed();
    if (n <= grain_) {
      evaluate(pointers.data(), n, {seed, 0});
      return;
    }
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Pointers moved(pointers);
      for (std::size_t o = 0; o < num_operands_; ++o)
        moved[o] += begin * kBlock * space_.strides[o][0] * bytes_[o];
      evaluate(moved.data(), std::min(end * kBlock, n) - begin * kBlock, at(seed, begin * kBlock));
    };
    context.pool.parallelFor((n + kBlock - 1) / kBlock, grain_ / kBlock, part);
  }
};

/// Steps through the outer dimensions of a space, keeping each operand's pointer.
class Cursor {
 public:
  Cursor(const Space& space, std::size_t rank, const std::vector<std::int64_t>& bytes,
         std::span<std::byte* const> base)
      : space_(space), rank_(rank), bytes_(bytes), pointers_(base), index_(rank, 0) {}

  void seek(std::int64_t position) {
    for (std::size_t d = rank_; d-- > 0;) {
      const std::int64_t at = position % space_.shape[d];
      position /= space_.shape[d];
      move(d, at - index_[d]);
      index_[d] = at;
    }
  }
  void next() {
    for (std::size_t d = rank_; d-- > 0;) {
      if (++index_[d] < space_.shape[d]) {
        move(d, 1);
        return;
      }
      move(d, 1 - space_.shape[d]);
      index_[d] = 0;
    }
  }
  std::byte** data() { return pointers_.data(); }

 private:
  void move(std::size_t d, std::int64_t by) {
    for (std::size_t o = 0; o < bytes_.size(); ++o)
      pointers_[o] += by * space_.strides[o][d] * bytes_[o];
  }

  const Space& space_;
  std::size_t rank_;
  const std::vector<std::int64_t>& bytes_;
  Pointers pointers_;
  std::vector<std::int64_t> index_;
};

/// Along the last dimension all operands run along memory or stand still: whole rows at a time.
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
    const std::uint64_t seed = nextSeed();
    const std::int64_t run = space_.shape[outer - 1];  // rows with one distance in between
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
                           at(seed, row * cols + first));
        unit += count;
      }
    };
    const std::int64_t units = rows * pieces;
    if (rows * cols <= grain_)
      part(0, units);
    else
      context.pool.parallelFor(units, std::max<std::int64_t>(1, grain_ / piece), part);
  }

 private:
  std::vector<std::int64_t> row_bytes_;  ///< from one row to the next, of each operand
};

/// Any strides: blocks of rows x cols of the last two dimensions, each operand copied to a dense
/// block before and the results copied out after.
class TileMap final : public MapKernel {
 public:
  TileMap(const StepDesc& step, const ExprProgram& program, Space space,
          const std::vector<bool>& uniform)
      : MapKernel(step, program, space, uniform), uniform_(uniform) {
    if (space_.shape.size() < 2) {  // a second dimension of one
      space_.shape.insert(space_.shape.begin(), 1);
      for (auto& s : space_.strides) s.insert(s.begin(), 0);
    }
    const std::size_t rank = space_.shape.size();
    const std::int64_t rows = space_.shape[rank - 2];
    const std::int64_t cols = space_.shape[rank - 1];
    bool transposed = false;
    for (const auto& s : space_.strides)
      transposed = transposed || (s[rank - 2] == 1 && std::abs(s[rank - 1]) > 1);
    cols_ = std::min(cols, transposed ? std::int64_t{32} : kBlock);
    rows_ = std::min(rows, kBlock / cols_);
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      const bool one = o < num_inputs_ && uniform_[o];
      direct_.push_back(one || (s[rank - 1] == 1 && (rows_ == 1 || s[rank - 2] == cols_)));
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::size_t rank = space_.shape.size();
    std::int64_t outer = 1;
    for (std::size_t d = 0; d + 2 < rank; ++d) outer *= space_.shape[d];
    const std::int64_t row_tiles = (space_.shape[rank - 2] + rows_ - 1) / rows_;
    const std::int64_t col_tiles = (space_.shape[rank - 1] + cols_ - 1) / cols_;
    const std::int64_t tiles = row_tiles * col_tiles;
    const std::uint64_t seed = nextSeed();
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Cursor cursor(space_, rank - 2, bytes_, pointers);
      std::int64_t at = begin / tiles;
      cursor.seek(at);
      Pointers block(pointers);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        if (unit / tiles != at) {
          cursor.next();
          ++at;
        }
        // Down the rows first: a transposed operand's lines are used up while they are cached.
        const std::int64_t tile = unit % tiles;
        runTile(cursor.data(), tile % row_tiles * rows_, tile / row_tiles * cols_, block,
                MapKernel::at(seed, unit * rows_ * cols_));
      }
    };
    const std::int64_t units = outer * tiles;
    const std::int64_t size = rows_ * cols_;
    if (units * size <= grain_)
      part(0, units);
    else
      context.pool.parallelFor(units, std::max<std::int64_t>(1, grain_ / size), part);
  }

 private:
  void runTile(std::byte* const* base, std::int64_t row, std::int64_t col, Pointers& block,
               RandomState random) const {
    const std::size_t rank = space_.shape.size();
    const std::int64_t rows = std::min(rows_, space_.shape[rank - 2] - row);
    const std::int64_t cols = std::min(cols_, space_.shape[rank - 1] - col);
    constexpr std::size_t kStage = static_cast<std::size_t>(kBlock) * 8;
    ipujax::engine::Workspace workspace;
    std::byte* stage = workspace.get(static_cast<std::int64_t>(num_operands_ * kStage));
    for (std::size_t o = 0; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      const bool whole = direct_[o] && (cols == cols_ || rows == 1);
      const bool one = o < num_inputs_ && uniform_[o];
      block[o] = one || whole ? at : stage + o * kStage;
      if (o < num_inputs_ && block[o] != at)
        copy(at, s[rank - 2] * bytes_[o], s[rank - 1] * bytes_[o], block[o], cols * bytes_[o],
             bytes_[o], rows, cols, bytes_[o]);
    }
    evaluate(block.data(), rows * cols, random);
    for (std::size_t o = num_inputs_; o < num_operands_; ++o) {
      const auto& s = space_.strides[o];
      std::byte* at = base[o] + (row * s[rank - 2] + col * s[rank - 1]) * bytes_[o];
      if (block[o] != at)
        copy(block[o], cols * bytes_[o], bytes_[o], at, s[rank - 2] * bytes_[o],
             s[rank - 1] * bytes_[o], rows, cols, bytes_[o]);
    }
  }

  /// rows x cols elements of `size` bytes; strides in bytes.
  static void copy(const std::byte* src, std::int64_t src_row, std::int64_t src_col, std::byte* dst,
                   std::int64_t dst_row, std::int64_t dst_col, std::int64_t rows, std::int64_t cols,
                   std::int64_t size) {
    const simd::CopyKernels& kernels = simd::copyKernels();
    const int log2 = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    if (src_col == size && dst_col == size) {
      for (std::int64_t r = 0; r < rows; ++r)
        std::memcpy(dst + r * dst_row, src + r * src_row, static_cast<std::size_t>(cols * size));
    } else if (src_col == 0 && dst_col == size) {
      kernels.fill[log2](src, dst, rows, cols, src_row, dst_row);
    } else if (src_row == size && dst_col == size && rows >= 8 && src_col > 0) {
      kernels.transpose[log2](src, dst, rows, cols, src_col, dst_row);
    } else {
      kernels.strided[log2](src, dst, rows, cols, src_row, src_col, dst_row, dst_col);
    }
  }

  std::vector<bool> uniform_;
  std::vector<bool> direct_;  ///< a full tile of it is dense in memory
  std::int64_t rows_ = 1;
  std::int64_t cols_ = 1;
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
  const Space space = collapse(step, num_inputs);
  const std::size_t rank = space.shape.size();
  if (std::find(space.shape.begin(), space.shape.end(), 0) != space.shape.end())
    return kernelOf([](RunContext&, std::span<std::byte* const>) {});
  if (rank == 0 || (rank == 1 && runsAlongMemory(space, num_inputs)))
    return std::make_unique<FlatMap>(step, program, space, uniformAlong(space, num_inputs, 0));
  constexpr std::int64_t kShortRow = 96;
  if (runsAlongMemory(space, num_inputs) && space.shape.back() >= kShortRow)
    return std::make_unique<RowMap>(step, program, space,
                                    uniformAlong(space, num_inputs, rank - 1));
  return std::make_unique<TileMap>(step, program, space, uniformAlong(space, num_inputs, 0));
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
