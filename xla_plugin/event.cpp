#include "event.hpp"

#include <utility>

#include "handle.hpp"

namespace ipujax::plugin {

Ref<Event> Event::ready() {
  // Never destroyed: jaxlib may hold events longer than static objects live.
  static Event* const instance = [] {
    auto event = pending();
    event->set();
    return event.detach();
  }();
  return Ref<Event>(instance);
}

Ref<Event> Event::pending() { return makeRef<Event>(); }

Ref<Event> Event::failed(FailurePtr failure) {
  auto event = pending();
  event->set(std::move(failure));
  return event;
}

void Event::set(FailurePtr failure) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    failure_ = std::move(failure);
    done_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  done_.notify_all();
  for (const auto& callback : callbacks) callback(failure_);
}

void Event::then(Callback callback) {
  if (!isReady()) {
    const std::lock_guard lock(mutex_);
    if (!done_.load(std::memory_order_relaxed)) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(failure_);
}

void Event::wait() const { done_.wait(false, std::memory_order_acquire); }

namespace {

void destroy(PJRT_Event_Destroy_Args& args) {
  if (args.event) event::takeBack(args.event);
}

void isReady(PJRT_Event_IsReady_Args& args) { args.is_ready = object<Event>(args.event).isReady(); }

void errorOf(PJRT_Event_Error_Args& args) {
  if (auto failure = object<Event>(args.event).failure()) throw PluginError(failure);
}

void await(PJRT_Event_Await_Args& args) {
  auto& event = object<Event>(args.event);
  event.wait();
  if (auto failure = event.failure()) throw PluginError(failure);
}

void onReady(PJRT_Event_OnReady_Args& args) {
  const auto callback = args.callback;
  void* const user_arg = args.user_arg;
  auto& event = object<Event>(args.event);
  if (event.isReady()) {  // the usual case, without making a std::function
    callback(makeError(event.failure()), user_arg);
    return;
  }
  event.then(
      [callback, user_arg](const FailurePtr& failure) { callback(makeError(failure), user_arg); });
}

void create(PJRT_Event_Create_Args& args) { args.event = event::give(Event::pending()); }

void set(PJRT_Event_Set_Args& args) {
  FailurePtr failure;
  if (args.error_code != PJRT_Error_Code_OK) {
    failure =
        makeFailure(args.error_code, std::string(args.error_message, args.error_message_size));
  }
  object<Event>(args.event).set(std::move(failure));
}

}  // namespace

PJRT_Event* event::give(Ref<Event> event) { return event.detach(); }

void event::takeBack(PJRT_Event* event) { Ref<Event>::attach(static_cast<Event*>(event)); }

void event::bind(PJRT_Api& api) {
  api.PJRT_Event_Destroy = guarded<destroy>;
  api.PJRT_Event_IsReady = guarded<isReady>;
  api.PJRT_Event_Error = guarded<errorOf>;
  api.PJRT_Event_Await = guarded<await>;
  api.PJRT_Event_OnReady = guarded<onReady>;
  api.PJRT_Event_Create = guarded<create>;
  api.PJRT_Event_Set = guarded<set>;
}

}  // namespace ipujax::plugin
