#pragma once
#include "popsolver/Model.hpp"

namespace gccs {
namespace popsolver = ::popsolver;
}
