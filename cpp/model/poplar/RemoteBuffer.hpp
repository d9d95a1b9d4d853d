#pragma once
#include "poplar/DataStream.hpp"  // defines RemoteBuffer
