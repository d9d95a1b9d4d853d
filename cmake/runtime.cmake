# What runs programs that ipujax.precompile saved, without Python: libipujax_runtime.so, a C header
# (docs/guides/deploying.md). The part of the IPU Model that runs programs is inside; what compiles
# them is not.
#   cmake --build build/release --target ipujax_runtime
#   cmake --install build/release --component runtime --prefix <folder>     (make runtime)
set_source_files_properties(cpp/embedded/CInterface.cpp PROPERTIES COMPILE_OPTIONS
  -fvisibility=default)
add_library(ipujax_runtime SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ipujax_embedded>
  "$<FILTER:$<TARGET_OBJECTS:ipujax_model>,INCLUDE,/cpp/(engine|runtime)/>")
foreach(lib ${simd_libraries})
  target_sources(ipujax_runtime PRIVATE $<TARGET_OBJECTS:${lib}>)
endforeach()
target_link_libraries(ipujax_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(ipujax_runtime PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/runtime.map)
if(NOT IPUJAX_SANITIZE)
  target_link_options(ipujax_runtime PRIVATE -Wl,-z,defs)
endif()
set_target_properties(ipujax_runtime PROPERTIES
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/runtime.map
  INSTALL_RPATH "$ORIGIN;${OPENBLAS_LIB_DIR}")
target_include_directories(ipujax_runtime INTERFACE $<INSTALL_INTERFACE:include>)

install(TARGETS ipujax_runtime EXPORT ipujax-runtime-targets LIBRARY DESTINATION lib
  COMPONENT runtime EXCLUDE_FROM_ALL)
install(EXPORT ipujax-runtime-targets NAMESPACE ipujax:: FILE ipujax-runtime-config.cmake
  DESTINATION lib/cmake/ipujax-runtime COMPONENT runtime EXCLUDE_FROM_ALL)
install(FILES cpp/embedded/ipujax_runtime.h DESTINATION include COMPONENT runtime EXCLUDE_FROM_ALL)
