#pragma once
#include <cstdio>

// Text of a codelet goes to the standard output of the process, by printf.
