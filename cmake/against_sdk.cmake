# What is built against a Poplar SDK, Graphcore's or the folder that cmake/sdk.cmake makes: popx from
# public names, and its tests that need no model beside it. The extension is not among it yet.
list(APPEND CMAKE_PREFIX_PATH ${IPUJAX_POPLAR_SDK})
find_package(poplar REQUIRED)
find_package(poplibs REQUIRED)
find_package(gcl REQUIRED)

# cpp/ has headers of the model with the SDK's names, so popx is shown alone.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/cpp/popx ${CMAKE_BINARY_DIR}/include/popx SYMBOLIC)
# And the table of elementwise operations, which is nothing but names to the preprocessor.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include/engine/expr)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/cpp/engine/expr/ElementwiseOps.def
  ${CMAKE_BINARY_DIR}/include/engine/expr/ElementwiseOps.def SYMBOLIC)

file(GLOB popx_sources CONFIGURE_DEPENDS cpp/popx/hardware/*.cpp cpp/popx/checks/*.cpp)
add_library(popx SHARED ${popx_sources})
target_include_directories(popx PUBLIC ${CMAKE_BINARY_DIR}/include)
target_compile_definitions(popx PUBLIC IPUJAX_PUBLIC_NAMES)
target_compile_definitions(popx PRIVATE
  IPUJAX_POPX_CODELETS_FOLDER="${CMAKE_SOURCE_DIR}/cpp/popx/codelets")
target_compile_options(popx PUBLIC -fvisibility=default)
target_link_libraries(popx PUBLIC gcl popops poputil poplar)

if(IPUJAX_BUILD_TESTS)
  add_library(ipujax_test_main OBJECT tests/cpp/main.cpp)
  target_include_directories(ipujax_test_main PUBLIC tests/cpp)
  foreach(name test_edges test_host)
    add_executable(${name} tests/cpp/popx_hardware/${name}.cpp
      $<TARGET_OBJECTS:ipujax_test_main>)
    target_include_directories(${name} PRIVATE tests/cpp)
    target_link_libraries(${name} PRIVATE popx)
  endforeach()
endif()
