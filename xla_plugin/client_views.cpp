#include "client_views.hpp"

#include "compiler_bridge.hpp"

namespace ipujax::plugin {

/// The array that is viewed keeps the client until this has returned.
void ClientViews::add() {
  if (count_.fetch_add(1) == 0 && retired_.load()) bridge::keepClient(*this);
}

/// Called in the middle of the view's end, which goes on to read the client.
void ClientViews::drop() {
  if (count_.fetch_sub(1) == 1 && retired_.load()) bridge::dropUnneededClientsLater();
}

void ClientViews::retire() { retired_.store(true); }

}  // namespace ipujax::plugin
