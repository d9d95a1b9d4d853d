# find_package(ipujax-runtime) defines the target ipujax::ipujax_runtime for this file's folder.
get_filename_component(_ipujax_runtime "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET ipujax::ipujax_runtime)
  add_library(ipujax::ipujax_runtime SHARED IMPORTED)
  set_target_properties(ipujax::ipujax_runtime PROPERTIES
    IMPORTED_LOCATION "${_ipujax_runtime}/lib/libipujax_runtime.so"
    IMPORTED_SONAME libipujax_runtime.so
    INTERFACE_INCLUDE_DIRECTORIES "${_ipujax_runtime}/include")
endif()
unset(_ipujax_runtime)
