#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace ipujax::plugin {

/// Base of objects that count their own references: one allocation each, and a reference can cross
/// the C ABI as a bare pointer. Starts at 0; the first Ref makes it 1; the last one deletes.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  ~Counted() = default;

 private:
  template <typename T>
  friend class Ref;
  std::atomic<std::int64_t> references_{0};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && object_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete object_;
    }
  }

  /// Takes over a reference that `detach` gave away.
  static Ref attach(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  /// Gives the reference away, to whoever will `attach` it.
  T* detach() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void retain() {
    if (object_) object_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> makeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace ipujax::plugin
