#pragma once
#include "support/Serial.hpp"

namespace ipujax::engine {

/// Classes, so that the engine's headers can forward-declare them.
class Writer : public runtime::Writer {};
class Reader : public runtime::Reader {
 public:
  using runtime::Reader::Reader;
};

}  // namespace ipujax::engine
