#pragma once
#include <memory>

#include "error.hpp"
#include "failure.hpp"
#include "support/FloatEnvironment.hpp"

namespace ipujax::plugin {

/// Ownership across the C ABI: `release` gives an object to jaxlib, `adopt` takes it back when
/// jaxlib calls the Destroy entry. T derives from its PJRT handle type.
template <typename T>
T* release(std::unique_ptr<T> object) {
  return object.release();
}

template <typename T, typename Handle>
std::unique_ptr<T> adopt(Handle* handle) {
  return std::unique_ptr<T>(static_cast<T*>(handle));
}

/// The object behind a handle, still owned by jaxlib.
template <typename T, typename Handle>
T& object(Handle* handle) {
  return *static_cast<T*>(handle);
}

template <typename T, typename Handle>
const T& object(const Handle* handle) {
  return *static_cast<const T*>(handle);
}

template <auto Function>
struct Guard;

template <typename Args, void (*Function)(Args&)>
struct Guard<Function> {
  static PJRT_Error* call(Args* args) noexcept {
    const runtime::FloatEnvironment environment;
    try {
      Function(*args);
      return nullptr;
    } catch (...) {
      return makeError(currentFailure());
    }
  }
};

/// Wraps `void f(X_Args&)` as the table's `PJRT_Error* (X_Args*)`: the only place where exceptions
/// meet the C ABI and where the caller's floating-point environment is replaced by ours.
template <auto Function>
inline constexpr auto guarded = &Guard<Function>::call;

}  // namespace ipujax::plugin
