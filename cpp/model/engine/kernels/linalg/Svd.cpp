#include <algorithm>

#include "engine/blas/Lapack.hpp"
#include "engine/kernels/linalg/MatrixBatch.hpp"

namespace ipujax::engine {

namespace {

std::unique_ptr<Kernel> makeSvd(const StepDesc& step) {
  const auto values = batch::valuesOf(step);
  const auto job = static_cast<char>(step.attributes.integer("job"));  // LAPACK's: N, S or A
  const bool divide = step.attributes.integer("divide") != 0;
  const std::int64_t flops = 10 * values[0].size() * values[1].rows();
  return batch::make(step, values, flops, [=]<class T>(batch::Item& item, T) {
    T* a = item.load<T>(0);
    // LAPACK does not write vectors that were not requested, nor any vectors if it fails.
    auto* s = item.zeros<blas::Real<T>>(item.size(1));
    T* u = item.zeros<T>(item.size(2));
    T* vt = item.zeros<T>(item.size(3));
    const int status = blas::gesvd(job, divide, item.rows(0), item.columns(0), a, s, u, vt);
    item.store(1, s, u, vt, &status);
  });
}

void checkSvd(StepCheck& check) {
  const std::int64_t job = check.integer("job", 'A', 'S');
  check.need(job == 'A' || job == 'N' || job == 'S', "one of LAPACK's letters");
  check.flag("divide");
  batch::ValuesCheck values(check);
  values.first(2);
  const std::int64_t small = values.small();
  values.out({small}, batch::ValuesCheck::Kind::kReal);
  // Without vectors (job N) their numbers may be anything.
  const auto left = values.next(2);
  check.need(left[1] == (job == 'A' ? values.rows() : small) || job == 'N', "fitting vectors");
  values.out({values.rows(), left[1]});
  const auto right = values.next(2);
  check.need(right[0] == (job == 'A' ? values.columns() : small) || job == 'N', "fitting vectors");
  values.out({right[0], values.columns()}).status().end();
}
const RegisterKernel kSvd{"popx.svd", makeSvd, checkSvd};

}  // namespace
}  // namespace ipujax::engine
