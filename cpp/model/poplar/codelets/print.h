#pragma once
#include <cstdio>

// A codelet's printf writes to the standard output of the process.
