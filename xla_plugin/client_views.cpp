#include "client_views.hpp"

namespace ipujax::plugin {
namespace {

std::atomic<ClientViews::Keep> keep{[](const ClientViews&) {}};
std::atomic<ClientViews::Drop> drop{[] {}};

}  // namespace

/// The viewed array keeps the client alive until this has returned.
void ClientViews::add() {
  if (count_.fetch_add(1) == 0 && retired_.load()) keep.load()(*this);
}

/// Called by the view's destructor, which still reads the client afterwards.
void ClientViews::drop() {
  if (count_.fetch_sub(1) == 1 && retired_.load()) plugin::drop.load()();
}

void ClientViews::retire() { retired_.store(true); }

void ClientViews::react(Keep new_keep, Drop new_drop) {
  keep.store(new_keep);
  plugin::drop.store(new_drop);
}

}  // namespace ipujax::plugin
