#include <algorithm>

#include "engine/Errors.hpp"
#include "engine/Workspace.hpp"
#include "engine/blas/Lapack.hpp"
#include "engine/kernels/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

template <class T>
class SvdItem {
 public:
  explicit SvdItem(const StepDesc& step)
      : values_(batch::valuesOf(step)),
        job_(static_cast<char>(step.attributes.integer("job"))),
        divide_(step.attributes.integer("divide") != 0) {}

  std::int64_t items() const { return values_[0].items(); }
  std::int64_t flops() const { return 10 * values_[0].size() * values_[1].rows(); }

  void run(std::span<std::byte* const> pointers, std::int64_t item) const {
    Workspace workspace;
    auto* a = workspace.get<T>(values_[0].size());
    auto* s = workspace.get<float>(values_[1].size());
    auto* u = workspace.get<T>(values_[2].size());
    auto* vt = workspace.get<T>(values_[3].size());
    values_[0].load(pointers, item, a);
    // LAPACK leaves vectors alone that nobody asked for, and all of them where it fails.
    std::fill(u, u + values_[2].size(), T(0));
    std::fill(vt, vt + values_[3].size(), T(0));
    std::fill(s, s + values_[1].size(), 0.0f);
    const std::int32_t status = blas::gesvd(job_, divide_, static_cast<int>(values_[0].rows()),
                                            static_cast<int>(values_[0].columns()), a, s, u, vt);
    values_[1].store(pointers, item, s);
    values_[2].store(pointers, item, u);
    values_[3].store(pointers, item, vt);
    values_[4].store(pointers, item, &status);
  }

 private:
  std::vector<batch::Value> values_;
  char job_;  // LAPACK's letter: N, S or A
  bool divide_;
};

void checkSvd(StepCheck& check) {
  const std::int64_t job = check.integer("job", 'A', 'S');
  check.need(job == 'A' || job == 'N' || job == 'S', "one of LAPACK's letters");
  check.flag("divide");
  batch::ValuesCheck values(check);
  values.first(2);
  const std::int64_t small = values.small();
  values.out({small}, batch::ValuesCheck::Kind::kReal);
  // Without vectors there may be room for more.
  const auto left = values.next(2);
  check.need(left[1] == (job == 'A' ? values.rows() : small) || job == 'N', "fitting vectors");
  values.out({values.rows(), left[1]});
  const auto right = values.next(2);
  check.need(right[0] == (job == 'A' ? values.columns() : small) || job == 'N', "fitting vectors");
  values.out({right[0], values.columns()}).status().end();
}
const RegisterKernel kSvd{"popx.svd", batch::make<SvdItem>, checkSvd};

}  // namespace
}  // namespace ipujax::engine
