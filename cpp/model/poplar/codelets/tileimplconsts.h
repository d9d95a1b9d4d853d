#pragma once
#include "poplar/TileConstants.hpp"
