# find_package(ipujax-runtime): the target ipujax::ipujax_runtime, of the folder that this file is in.
get_filename_component(_ipujax_runtime "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ipujax::ipujax_runtime)
  add_library(ipujax::ipujax_runtime SHARED IMPORTED)
  set_target_properties(ipujax::ipujax_runtime PROPERTIES
    IMPORTED_LOCATION "${_ipujax_runtime}/lib/libipujax_runtime.so"
    IMPORTED_SONAME libipujax_runtime.so
    INTERFACE_INCLUDE_DIRECTORIES "${_ipujax_runtime}/include")
endif()
unset(_ipujax_runtime)
