#include "engine/kernels/CounterBits.hpp"

namespace ipujax::engine {

const CounterBits& counterBits() {
  static const CounterBits& picked = IPUJAX_PICK(kCounterBits);
  return picked;
}

}  // namespace ipujax::engine
