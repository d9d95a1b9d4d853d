#include "poprand/CounterBits.hpp"

namespace poprand {

const CounterBits& counterBits() {
  static const CounterBits& picked = IPUJAX_PICK(kCounterBits);
  return picked;
}

}  // namespace poprand
