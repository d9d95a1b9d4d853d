# The IPU Model as a folder shaped like Graphcore's Poplar SDK: include/, lib/, enable.sh.
# libpoplar.so has the engine and all libraries; the others are empty, exist for -l, and need it.
add_library(poplar SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ipujax_engine>
  $<TARGET_OBJECTS:ipujax_libraries> $<TARGET_OBJECTS:ipujax_sdk_only>)
target_link_libraries(poplar PRIVATE ipujax_simd Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(poplar PROPERTIES INSTALL_RPATH "$ORIGIN;${OPENBLAS_LIB_DIR}")

set(empty ${CMAKE_BINARY_DIR}/sdk/empty.cpp)
file(CONFIGURE OUTPUT ${empty} CONTENT "// Everything is in libpoplar.so.\n" @ONLY)
foreach(lib ${sdk_libraries})
  add_library(${lib} SHARED EXCLUDE_FROM_ALL ${empty})
  target_link_options(${lib} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${lib} PUBLIC poplar)
  set_target_properties(${lib} PROPERTIES INSTALL_RPATH "$ORIGIN")
endforeach()
foreach(lib poplar ${sdk_libraries})
  target_include_directories(${lib} INTERFACE $<INSTALL_INTERFACE:include>)
endforeach()
add_custom_target(sdk DEPENDS poplar ${sdk_libraries})

install(TARGETS poplar ${sdk_libraries} EXPORT poplar-targets LIBRARY DESTINATION lib
  COMPONENT sdk EXCLUDE_FROM_ALL)
install(EXPORT poplar-targets FILE poplar-config.cmake DESTINATION lib/cmake/poplar COMPONENT sdk
  EXCLUDE_FROM_ALL)
# Build files find the other libraries by these names; all are in poplar's file.
foreach(package poplibs gcl)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/sdk/${package}-config.cmake CONTENT
    "include(\"\${CMAKE_CURRENT_LIST_DIR}/../poplar/poplar-config.cmake\")\n" @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/sdk/${package}-config.cmake
    DESTINATION lib/cmake/${package} COMPONENT sdk EXCLUDE_FROM_ALL)
endforeach()

# Installs the public headers and the few engine headers whose enumerations and types they use.
# Further arguments go to install().
function(install_public_headers destination)
  set(model ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/..)
  foreach(folder ${sdk_folders})
    install(DIRECTORY ${model}/${folder} DESTINATION ${destination} ${ARGN}
      FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "codelets/*" PATTERN internal EXCLUDE)
  endforeach()
  foreach(header Machine.hpp ElementType.hpp Errors.hpp Reducer.hpp VertexAbi.hpp ops/ExprOp.hpp
      ops/ElementwiseCycles.hpp ops/ElementwiseOps.def kernels/conv/PoolGradient.hpp
      kernels/collectives/CollectiveOperator.hpp)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${model}/engine/${header} DESTINATION ${destination}/engine/${folder} ${ARGN})
  endforeach()
endfunction()
install_public_headers(include COMPONENT sdk EXCLUDE_FROM_ALL)
# Puts codelets into .gp files; needs only the part of the engine that reads codelets.
add_executable(popc EXCLUDE_FROM_ALL popc/main.cpp)
foreach(source BlockCounts BracedAssignments CodeletArchive CodeletBuild CodeletGuard CodeletParser CodeletStatics CodeletStore CodeletText Codelets Compiler Interruptible LoopCost Process WorkerCalls)
  target_sources(popc PRIVATE engine/codelets/${source}.cpp)
endforeach()
target_sources(popc PRIVATE support/Interrupts.cpp)
target_include_directories(popc PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(popc PRIVATE IPUJAX_VERSION="${IPUJAX_VERSION}")
target_link_libraries(popc PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(sdk popc)
install(TARGETS popc RUNTIME DESTINATION bin COMPONENT sdk EXCLUDE_FROM_ALL)

install(FILES ${CMAKE_CURRENT_LIST_DIR}/enable.sh DESTINATION . COMPONENT sdk EXCLUDE_FROM_ALL)
