#pragma once
#include "poplar/DataStream.hpp"  // where RemoteBuffer is
