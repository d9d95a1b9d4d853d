#pragma once
#include "support/Serial.hpp"

namespace ipujax::engine {

/// The engine's headers name these without including them.
class Writer : public runtime::Writer {};
class Reader : public runtime::Reader {
 public:
  using runtime::Reader::Reader;
};

}  // namespace ipujax::engine
