#include <algorithm>
#include <functional>
#include <limits>

#include "engine/Workspace.hpp"
#include "engine/kernels/Kernel.hpp"
#include "engine/kernels/sequence/Ctc.hpp"

/// The host kernel "popnn.ctc_beams": a prefix beam search. Reads log-probabilities [T, B, C] and
/// data lengths [B]; writes losses [B, P], lengths [B, P] and labels [B, P, T] of the P best paths.
/// Attributes: `blank`, and `width`, the number of beams kept after a step.
namespace ipujax::engine {
namespace {

using ctc::kLogZero;

/// A tree of label sequences: a node is its parent's sequence plus one label. Node 0 is empty.
class Sequences {
 public:
  Sequences(std::int64_t most, Workspace& workspace)
      : parent_(workspace.get<std::int32_t>(most)),
        child_(workspace.get<std::int32_t>(most)),
        sibling_(workspace.get<std::int32_t>(most)),
        label_(workspace.get<std::uint32_t>(most)) {
    add(kNone, 0);
  }
  static constexpr std::int32_t kNone = -1;

  std::int32_t parent(std::int32_t node) const { return parent_[node]; }
  std::uint32_t label(std::int32_t node) const { return label_[node]; }

  std::int32_t longer(std::int32_t node, std::uint32_t label) {
    for (std::int32_t at = child_[node]; at != kNone; at = sibling_[at])
      if (label_[at] == label) return at;
    return add(node, label);
  }

 private:
  std::int32_t add(std::int32_t parent, std::uint32_t label) {
    const std::int32_t node = count_++;
    parent_[node] = parent;
    label_[node] = label;
    child_[node] = kNone;
    sibling_[node] = parent == kNone ? kNone : child_[parent];
    if (parent != kNone) child_[parent] = node;
    return node;
  }

  std::int32_t* parent_;
  std::int32_t* child_;
  std::int32_t* sibling_;
  std::uint32_t* label_;
  std::int32_t count_ = 0;
};

/// W beams. Several may hold the same sequence, as the beams of probability 0 do at first.
struct Beams {
  Beams(std::int64_t width, Workspace& workspace)
      : node(workspace.get<std::int32_t>(width)),
        length(workspace.get<std::int32_t>(width)),
        blank(workspace.get<float>(width)),
        label(workspace.get<float>(width)) {}
  std::int32_t *node, *length;
  float *blank, *label;  ///< log-probabilities of alignments ending in a blank, in the last label
};

/// Packs a value's key and its place into one number: larger values rank first, then lower places.
std::uint64_t rankOf(std::int32_t key, std::int64_t place) {
  const auto above = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key) ^ 0x80000000u);
  return above << 32 | (0xffffffffu - static_cast<std::uint32_t>(place));
}
std::int64_t placeOf(std::uint64_t rank) { return 0xffffffffu - static_cast<std::uint32_t>(rank); }
std::int32_t keyIn(std::uint64_t rank) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(rank >> 32) ^ 0x80000000u);
}

/// The search of one sequence.
class Search {
 public:
  Search(std::int64_t steps, std::int64_t width, std::int64_t classes, std::uint32_t blank,
         Workspace& workspace)
      : W(width),
        C(classes),
        blank_(blank),
        sequences_(1 + steps * width, workspace),
        now_(width, workspace),
        next_(width, workspace),
        total_(workspace.get<float>(width)),
        moved_(workspace.get<float>(width)),
        blank_ends_(workspace.get<float>(width)),
        label_ends_(workspace.get<float>(width)),
        score_(workspace.get<float>(width)),
        keys_(workspace.get<std::int32_t>(classes)),
        best_(workspace.get<std::uint64_t>(width)),
        beam_of_(workspace.get<std::int32_t>(1 + steps * width)),
        same_(workspace.get<std::int32_t>(width)),
        taken_(workspace.get<std::int32_t>(width)),
        taken_after_(workspace.get<std::int32_t>(width)) {
    std::fill_n(beam_of_, 1 + steps * width, kNone);
    for (std::int64_t i = 0; i < W; ++i) {
      now_.node[i] = now_.length[i] = 0;
      now_.blank[i] = i == 0 ? 0.0f : kLogZero;
      now_.label[i] = kLogZero;
    }
  }

  void step(const float* logs) {
    ctc::loops().logAdd(now_.blank, now_.label, total_, W);
    merge(logs);
    for (std::int64_t i = 0; i < W; ++i) {
      blank_ends_[i] = total_[i] + logs[blank_];
      label_ends_[i] = now_.length[i] == 0 ? kLogZero : now_.label[i] + logs[last(i)];
    }
    ctc::loops().logAdd(label_ends_, moved_, label_ends_, W);
    ctc::loops().logAdd(blank_ends_, label_ends_, score_, W);
    select(logs);
    advance();
  }

  /// Writes the p-th best path; labels [steps] are padded with blanks.
  void write(std::int64_t p, std::int64_t steps, float* loss, std::uint32_t* length,
             std::uint32_t* labels) {
    float total = 0.0f;
    ctc::loops().logAdd(now_.blank + p, now_.label + p, &total, 1);
    *loss = total > kLogZero / 2 ? -total : std::numeric_limits<float>::infinity();
    std::int64_t n = now_.length[p];
    *length = static_cast<std::uint32_t>(n);
    std::fill_n(labels, steps, blank_);
    for (std::int32_t node = now_.node[p]; n > 0; node = sequences_.parent(node))
      labels[--n] = sequences_.label(node);
  }

 private:
  static constexpr std::int32_t kNone = Sequences::kNone;

  std::uint32_t last(std::int64_t i) const {
    return now_.length[i] == 0 ? blank_ : sequences_.label(now_.node[i]);
  }
  /// Log-probability of beam i with label c appended; its last label can repeat only after a blank.
  float longer(std::int64_t i, std::uint32_t c, const float* logs) const {
    return (c == last(i) ? now_.blank[i] : total_[i]) + logs[c];
  }

  /// A beam with a label appended may equal another beam j: its probability then goes to moved[j].
  void merge(const float* logs) {
    for (std::int64_t i = W - 1; i >= 0; --i) {
      same_[i] = beam_of_[now_.node[i]];
      beam_of_[now_.node[i]] = static_cast<std::int32_t>(i);
      taken_[i] = kNone;
    }
    for (std::int64_t j = 0; j < W; ++j) {
      moved_[j] = kLogZero;
      taken_after_[j] = kNone;
      if (now_.length[j] == 0) continue;
      const std::int32_t prefix = beam_of_[sequences_.parent(now_.node[j])];
      for (std::int32_t i = prefix; i != kNone; i = same_[i]) {
        const float value = longer(i, last(j), logs);
        if (!(value <= moved_[j])) moved_[j] = value;
      }
      if (prefix == kNone) continue;
      taken_after_[j] = taken_[prefix];  // a list of the beams that are one label longer
      taken_[prefix] = static_cast<std::int32_t>(j);
    }
  }

  /// Selects the W best of the unchanged beams and of each beam with each label appended,
  /// numbered in this order.
  void select(const float* logs) {
    for (std::int64_t i = 0; i < W; ++i) best_[i] = rankOf(ctc::keyOf(score_[i]), i);
    std::make_heap(best_, best_ + W, std::greater<>());
    for (std::int64_t i = 0; i < W; ++i) {
      std::int32_t most = ctc::loops().longer(logs, total_[i], keys_, C);
      if (now_.length[i] > 0) {
        keys_[last(i)] = ctc::keyOf(longer(i, last(i), logs));
        most = std::max(most, keys_[last(i)]);
      }
      if (most <= keyIn(best_[0])) continue;  // ties rank after earlier candidates
      keys_[blank_] = ctc::keyOf(kLogZero);
      for (std::int32_t j = taken_[beam_of_[now_.node[i]]]; j != kNone; j = taken_after_[j])
        keys_[last(j)] = ctc::keyOf(kLogZero);
      for (std::int64_t c = 0; c < C; ++c)
        if (keys_[c] > keyIn(best_[0])) offer(rankOf(keys_[c], W + i * C + c));
    }
    std::sort(best_, best_ + W, std::greater<>());
  }
  void offer(std::uint64_t rank) {
    std::pop_heap(best_, best_ + W, std::greater<>());
    best_[W - 1] = rank;
    std::push_heap(best_, best_ + W, std::greater<>());
  }

  /// The best candidates become the beams.
  void advance() {
    for (std::int64_t i = 0; i < W; ++i) beam_of_[now_.node[i]] = kNone;
    for (std::int64_t k = 0; k < W; ++k) {
      const std::int64_t place = placeOf(best_[k]);
      const bool is_longer = place >= W;
      const std::int64_t i = is_longer ? (place - W) / C : place;
      const auto c = static_cast<std::uint32_t>(is_longer ? (place - W) % C : 0);
      next_.node[k] = is_longer ? sequences_.longer(now_.node[i], c) : now_.node[i];
      next_.length[k] = now_.length[i] + (is_longer ? 1 : 0);
      next_.blank[k] = is_longer ? kLogZero : blank_ends_[i];
      next_.label[k] = is_longer ? ctc::valueOf(keyIn(best_[k])) : label_ends_[i];
    }
    std::swap(now_, next_);
  }

  std::int64_t W, C;
  std::uint32_t blank_;
  Sequences sequences_;
  Beams now_, next_;
  float* total_;                              ///< log-probability of each beam
  float* moved_;                              ///< log-probability it gets from its prefix beam
  float *blank_ends_, *label_ends_, *score_;  ///< of the unchanged beams
  std::int32_t* keys_;                        ///< of a beam with each label appended
  std::uint64_t* best_;                       ///< a heap, the worst in front
  std::int32_t* beam_of_;  ///< first beam of each node; `same_` links to the next
  std::int32_t* same_;
  std::int32_t *taken_, *taken_after_;  ///< lists of beams that are one label longer
};

class CtcBeams final : public Kernel {
 public:
  explicit CtcBeams(const StepDesc& step)
      : T(step.operands[0].shape[0]),
        B(step.operands[0].shape[1]),
        C(step.operands[0].shape[2]),
        P(step.operands[2].shape[1]),
        W(step.attributes.integer("width")),
        blank_(static_cast<std::uint32_t>(step.attributes.integer("blank"))) {}

  void run(RunContext& context, std::span<std::byte* const> p) const override {
    context.pool.parallelFor(B, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) sequence(p, b);
    });
  }

 private:
  void sequence(std::span<std::byte* const> p, std::int64_t b) const {
    const auto* logs = reinterpret_cast<const float*>(p[0]) + b * C;
    const std::int64_t steps =
        std::min<std::int64_t>(reinterpret_cast<const std::uint32_t*>(p[1])[b], T);
    Workspace workspace;
    Search search(steps, W, C, blank_, workspace);
    for (std::int64_t t = 0; t < steps; ++t) search.step(logs + t * B * C);
    for (std::int64_t k = 0; k < P; ++k)
      search.write(k, T, reinterpret_cast<float*>(p[2]) + b * P + k,
                   reinterpret_cast<std::uint32_t*>(p[3]) + b * P + k,
                   reinterpret_cast<std::uint32_t*>(p[4]) + (b * P + k) * T);
  }

  std::int64_t T, B, C, P, W;
  std::uint32_t blank_;
};

void checkCtcBeams(StepCheck& check) {
  check.operands(5);
  const auto data = check.read(0).hasRank(3).isOf(ElementType::kFloat).isContiguous();
  const std::int64_t T = data->shape[0], B = data->shape[1], C = data->shape[2];
  check.integer("blank", 0, C - 1);
  const auto lengths = check.read(1).isInteger().isOfBytes(4).isContiguous();
  lengths.hasShape(std::vector{B});
  const auto losses = check.written(2).isOf(ElementType::kFloat).isContiguous().hasRank(2);
  const std::int64_t P = losses->shape[1];
  losses.hasShape(std::vector{B, P});
  const std::int64_t W = check.integer("width", std::max<std::int64_t>(P, 1), 1 << 20);
  check.need(T < StepCheck::kMostElements / W && C < StepCheck::kMostElements / W,
             "beams that 31 bits can number");
  check.written(3).isInteger().isOfBytes(4).isContiguous().hasShape(std::vector{B, P});
  check.written(4).isInteger().isOfBytes(4).isContiguous().hasShape(std::vector{B, P, T});
}

const RegisterKernel kCtcBeams{"popnn.ctc_beams", makeKernel<CtcBeams>, checkCtcBeams};

}  // namespace
}  // namespace ipujax::engine
