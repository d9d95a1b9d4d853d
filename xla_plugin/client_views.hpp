#pragma once
#include <atomic>
#include <cstdint>

namespace ipujax::plugin {

/// The views of a client's arrays that the host holds, and whether JAX still has the client.
///
/// A view of jaxlib's reads the client object when it ends, but does not keep it alive. So Python
/// keeps each client from the start until JAX has let go of it and no view is left. Shared by the
/// client, its devices and what Python remembers of it; any thread may call.
class ClientViews {
 public:
  void add();
  void drop();
  /// JAX has let go of the client: from now on only views keep it.
  void retire();
  bool isNeeded() const { return !retired_.load() || count_.load() > 0; }

  /// Called where the first view of a retired client begins, and where its last one ends.
  using Keep = void (*)(const ClientViews&);
  using Drop = void (*)();
  static void react(Keep keep, Drop drop);

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<bool> retired_{false};
};

}  // namespace ipujax::plugin
