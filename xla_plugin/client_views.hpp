#pragma once
#include <atomic>
#include <cstdint>

namespace ipujax::plugin {

/// Counts the host's views of a client's arrays, and knows whether JAX still has the client.
///
/// The destructor of a jaxlib view reads the client object, but the view does not keep it alive. So
/// Python keeps each client alive until JAX has released it and no view is left. The client, its
/// devices and Python's record of it share this. Thread-safe.
class ClientViews {
 public:
  void add();
  void drop();
  /// JAX has released the client: from now on only views keep it.
  void retire();
  bool isNeeded() const { return !retired_.load() || count_.load() > 0; }

  /// Called when the first view of a retired client is made and when its last one is destroyed.
  using Keep = void (*)(const ClientViews&);
  using Drop = void (*)();
  static void react(Keep keep, Drop drop);

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<bool> retired_{false};
};

}  // namespace ipujax::plugin
