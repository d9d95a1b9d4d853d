#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace poplar {

/// What fills or takes a block of a stream. The engine calls fetch, then complete, for every block
/// that the program copies; the model never prefetches.
class StreamCallback {
 public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallback() = default;
  /// Fills the block ahead of its use, if the data are there.
  virtual Result prefetch(void* p) = 0;
  virtual void fetch(void* p) = 0;
  virtual void complete() = 0;
  virtual void invalidatePrefetched() {}
};

/// A callback that knows fetch alone.
class LegacyStreamCallback : public StreamCallback {
 public:
  Result prefetch(void*) final { return Result::NotAvailable; }
  void complete() final {}
};

/// Owns a callback; made of a StreamCallback or of anything that is called with a `void*`.
class StreamCallbackHandle {
 public:
  template <class Callback, class = std::enable_if_t<std::is_base_of_v<StreamCallback, Callback>>>
  StreamCallbackHandle(std::unique_ptr<Callback> callback)  // NOLINT: implicit as in the SDK
      : callback_(std::move(callback)) {}
  template <class F,
            class = std::enable_if_t<std::is_invocable_v<F&, void*> &&
                                     !std::is_same_v<std::decay_t<F>, StreamCallbackHandle>>>
  StreamCallbackHandle(F&& f) : callback_(std::make_unique<Of>(std::forward<F>(f))) {}  // NOLINT

  StreamCallback& operator*() const { return *callback_; }
  StreamCallback* operator->() const { return callback_.get(); }

 private:
  struct Of final : LegacyStreamCallback {
    explicit Of(std::function<void(void*)> f) : f(std::move(f)) {}
    void fetch(void* p) override { f(p); }
    std::function<void(void*)> f;
  };
  std::shared_ptr<StreamCallback> callback_;
};

}  // namespace poplar
