#pragma once
#include "../tilearch.h"
