# Headers that no change here touches, the standard library's and pybind11's, are read once for each
# library instead of once for each source. Headers of ours stay out: an edit of one compiles what
# includes it and nothing else. All sources of a target have its level of optimising: gcc ends by a
# fault where they differ.
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
