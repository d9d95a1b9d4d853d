# Runs programs that ipujax.precompile saved, without Python: libipujax_runtime.so and a C header
# (docs/guides/deploying.md). It contains the part of the IPU Model that runs programs, but not the
# part that compiles them.
#   cmake --build build/release --target ipujax_runtime
#   cmake --install build/release --component runtime --prefix <folder>     (make runtime)
# Wheels contain it as ipujax/embedded; ipujax.runtime.folder() returns that folder.
if(IPUJAX_BUILD_WHEEL)
  set(runtime_folder ipujax/embedded/)
  set(runtime_install)
  set(runtime_blas "$ORIGIN/../../../scipy_openblas32/lib")
else()
  set(runtime_folder)
  set(runtime_blas "${OPENBLAS_LIB_DIR}")
  set(runtime_install COMPONENT runtime EXCLUDE_FROM_ALL)
endif()
set_source_files_properties(cpp/embedded/CInterface.cpp PROPERTIES COMPILE_OPTIONS
  -fvisibility=default)
add_library(ipujax_runtime SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ipujax_embedded>
  $<TARGET_OBJECTS:ipujax_engine>)
target_link_libraries(ipujax_runtime PRIVATE ipujax_simd Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(ipujax_runtime PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/runtime.map)
if(NOT IPUJAX_SANITIZE)
  target_link_options(ipujax_runtime PRIVATE -Wl,-z,defs)
endif()
set_target_properties(ipujax_runtime PROPERTIES
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/runtime.map
  INSTALL_RPATH "$ORIGIN;${runtime_blas}")
if(IPUJAX_BUILD_WHEEL)
  set_target_properties(ipujax_runtime PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()

install(TARGETS ipujax_runtime LIBRARY DESTINATION ${runtime_folder}lib ${runtime_install})
install(FILES cmake/ipujax-runtime-config.cmake
  DESTINATION ${runtime_folder}lib/cmake/ipujax-runtime ${runtime_install})
install(FILES cpp/embedded/ipujax_runtime.h DESTINATION ${runtime_folder}include
  ${runtime_install})
