#pragma once
#include <cstddef>
#include <iosfwd>
#include <memory>

#include "poputil/DebugInfo.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {
namespace ctc {

/// The sizes that a CTC loss or decoder is planned for. The IPU Model computes them with popops'
/// and poplin's steps, which plan themselves.
class Plan {
 public:
  Plan();
  ~Plan();
  Plan(const Plan& other);
  Plan(Plan&& other) noexcept;
  Plan& operator=(const Plan& other);
  Plan& operator=(Plan&& other) noexcept;

  friend bool operator<(const Plan& a, const Plan& b);
  friend bool operator==(const Plan& a, const Plan& b);
  friend std::ostream& operator<<(std::ostream& o, const Plan& p);

  /// For the library.
  class Impl;
  Impl& getImpl() const { return *impl_; }
  Plan(std::unique_ptr<Impl> impl);  // NOLINT: implicit as in the SDK

 private:
  std::unique_ptr<Impl> impl_;
};

bool operator<(const Plan& a, const Plan& b);
bool operator==(const Plan& a, const Plan& b);
bool operator!=(const Plan& a, const Plan& b);

}  // namespace ctc
}  // namespace popnn

namespace poputil {
template <>
poplar::ProfileValue toProfileValue(const popnn::ctc::Plan& p);
}
