# Source this file: compilers, the linker and CMake then find the SDK in its folder.
_sdk=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export POPLAR_SDK_ENABLED=$_sdk
export PATH=$_sdk/bin:$PATH
export CPATH=$_sdk/include${CPATH:+:$CPATH}
export LIBRARY_PATH=$_sdk/lib${LIBRARY_PATH:+:$LIBRARY_PATH}
export LD_LIBRARY_PATH=$_sdk/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CMAKE_PREFIX_PATH=$_sdk${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
unset _sdk
