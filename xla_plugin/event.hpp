#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "failure.hpp"
#include "ref.hpp"

namespace ipujax::plugin {

/// Something that becomes ready once, with success or a failure. Shared by counting, also across
/// the C ABI: each PJRT_Event* given out is one reference, taken back by PJRT_Event_Destroy.
/// Any thread may set it, wait for it or query it; callbacks run with no lock of the plugin held.
class Event final : public PJRT_Event, public Counted {
 public:
  using Callback = std::function<void(const FailurePtr&)>;

  static Ref<Event> ready();  ///< always the same object: costs one counter
  static Ref<Event> pending();
  static Ref<Event> failed(FailurePtr failure);

  bool isReady() const { return done_.load(std::memory_order_acquire); }
  /// Null while pending or on success.
  FailurePtr failure() const { return isReady() ? failure_ : nullptr; }
  void set(FailurePtr failure = nullptr);
  /// Calls back when ready; at once, on this thread, if it is ready now.
  void then(Callback callback);
  void wait() const;  ///< never with the GIL held

 private:
  std::atomic<bool> done_{false};
  FailurePtr failure_;  // written once, before done_
  std::mutex mutex_;    // guards callbacks_ and the transition
  std::vector<Callback> callbacks_;
};

namespace event {
PJRT_Event* give(Ref<Event> event);  ///< the reference passes to jaxlib
void takeBack(PJRT_Event* event);    ///< the reference that `give` passed on
void bind(PJRT_Api& api);
}  // namespace event

}  // namespace ipujax::plugin
