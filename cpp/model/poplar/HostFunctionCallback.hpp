#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "poplar/ArrayRef.hpp"

namespace poplar {

/// Implements a host function: reads `inputs` and writes `outputs`.
class HostCallback {
 public:
  virtual ~HostCallback() = default;
  virtual void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) = 0;
};

/// Owns a callback, made from a HostCallback or any callable that takes (inputs, outputs).
class HostCallbackHandle {
 public:
  template <class Callback, class = std::enable_if_t<std::is_base_of_v<HostCallback, Callback>>>
  HostCallbackHandle(std::unique_ptr<Callback> callback)  // NOLINT: implicit as in the SDK
      : callback_(std::move(callback)) {}
  template <class F, class = std::enable_if_t<
                         std::is_invocable_v<F&, ArrayRef<const void*>, ArrayRef<void*>> &&
                         !std::is_same_v<std::decay_t<F>, HostCallbackHandle>>>
  HostCallbackHandle(F&& f) : callback_(std::make_unique<Of>(std::forward<F>(f))) {}  // NOLINT

  void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) const {
    (*callback_)(inputs, outputs);
  }

 private:
  using Function = std::function<void(ArrayRef<const void*>, ArrayRef<void*>)>;
  struct Of final : HostCallback {
    explicit Of(Function f) : f(std::move(f)) {}
    void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) override {
      f(inputs, outputs);
    }
    Function f;
  };
  std::shared_ptr<HostCallback> callback_;
};

}  // namespace poplar
