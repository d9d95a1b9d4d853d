#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "poplar/Quarter.hpp"

namespace poplar {

/// Fills or receives the blocks of a stream. The engine calls fetch, then complete, for every block
/// that the program copies; the model never prefetches.
class StreamCallbackBase {
 public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallbackBase() = default;
  virtual void complete() = 0;
  virtual void invalidatePrefetched() {}
};

class StreamCallback : public StreamCallbackBase {
 public:
  /// Fills the block ahead of its use if the data is available.
  virtual Result prefetch(void* p) = 0;
  virtual void fetch(void* p) = 0;
};

/// A callback for quarters that also returns their metadata. The model's streams carry only the
/// quarters: host writes set a tensor's metadata, and getMetadata is never called.
class StreamCallbackWithMetadata : public StreamCallback {
 public:
  virtual QuarterMetadata getMetadata() const = 0;
};

/// A callback that may wait in fetch until another thread, or another callback, notifies it.
class ResumableStreamCallback : public StreamCallback {
 public:
  /// Resumes the waiting callback, or the next one to wait if none is waiting.
  void notify();
  bool isAwaiting() const;

 protected:
  /// Called by the callback itself; returns after notify is called.
  void wait();

 private:
  mutable std::mutex mutex_;
  std::condition_variable notified_;
  bool waits_ = false;
  bool is_notified_ = false;
};

/// A callback that implements only fetch.
class LegacyStreamCallback : public StreamCallback {
 public:
  Result prefetch(void*) final { return Result::NotAvailable; }
  void invalidatePrefetched() final {}
  void complete() final {}
};

/// Owns a callback, made from a StreamCallback or any callable that takes a `void*`.
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
