// The fast build's tests of linear algebra, which are about definitions, on popx/hardware: CMake
// gives it the name popx here.
#include "../popx/test_linalg.cpp"
