# Headers that no change here touches, the standard library's and pybind11's, are parsed once for
# each library instead of once for each source. Our own headers are left out, so that an edit of one
# recompiles only the sources that include it. All sources of a target must have the same
# optimisation level: gcc crashes if they differ.
#   precompile(<targets>)
set(standard_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string>
  <string_view> <tuple> <type_traits> <utility> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)  # so that ccache learns which precompiled header was used
endif()
function(precompile)
  foreach(target ${ARGN})
    target_precompile_headers(${target} PRIVATE ${standard_headers})
  endforeach()
endfunction()
