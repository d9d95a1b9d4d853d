// Runs the fast build's tests of linear algebra, which check definitions, on popx/hardware, which
// CMake names popx here.
#include "../popx/test_linalg.cpp"
