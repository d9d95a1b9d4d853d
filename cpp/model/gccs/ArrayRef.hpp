#pragma once
#include "poplar/ArrayRef.hpp"

/// The SDK's support library, by the names of it that programs use.
namespace gccs {
using poplar::ArrayRef;
}
