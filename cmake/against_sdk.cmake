# Targets built against a Poplar SDK, either Graphcore's or the folder that
# cpp/model/cmake/sdk.cmake makes: popx, which uses only public names; the Python extension with the
# PJRT plugin, whose devices run programs with poplar::Engine; and tests that do not need the model.
list(APPEND CMAKE_PREFIX_PATH ${IPUJAX_POPLAR_SDK})
find_package(poplar REQUIRED)
find_package(poplibs REQUIRED)
find_package(gcl REQUIRED)

# cpp/ also has the model's headers, which have the SDK's names, so only these folders are visible.
# popx shares the table of elementwise operations.
set(shown ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${shown}/backends ${shown}/engine/ops)
foreach(folder popx runtime hosts embedded bindings backends/poplar)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/cpp/${folder} ${shown}/${folder} SYMBOLIC)
endforeach()
foreach(folder support engine/ops/ElementwiseOps.def)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/cpp/model/${folder} ${shown}/${folder} SYMBOLIC)
endforeach()
# Graphs are built once, and the SDK does the rest.
add_compile_options("${compile_quickly}")

file(GLOB popx_sources CONFIGURE_DEPENDS cpp/popx/hardware/*.cpp cpp/popx/checks/*.cpp)
add_library(popx SHARED ${popx_sources} cpp/popx/CustomOp.cpp cpp/popx/CustomOpBuild.cpp)
target_include_directories(popx BEFORE PUBLIC ${shown})
target_compile_definitions(popx PUBLIC IPUJAX_PUBLIC_NAMES PRIVATE
  IPUJAX_POPX_CODELETS_FOLDER="${CMAKE_SOURCE_DIR}/cpp/popx/codelets")
target_compile_options(popx PRIVATE -fvisibility=default)
target_link_libraries(popx PUBLIC gcl popops poputil poplar PRIVATE ${CMAKE_DL_LIBS})
precompile(popx)
compile_together(popx EXCEPT "CustomOp")

# The extension runs programs with this backend, and so does a test without JAX.
file(GLOB backend_sources CONFIGURE_DEPENDS cpp/backends/poplar/*.cpp cpp/runtime/*.cpp
  cpp/model/support/*.cpp)
add_library(ipujax_backend OBJECT ${backend_sources})
target_link_libraries(ipujax_backend PRIVATE popx)
target_compile_definitions(ipujax_backend PRIVATE IPUJAX_VERSION="${IPUJAX_VERSION}")
precompile(ipujax_backend)

if(IPUJAX_BUILD_EXTENSION)
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
  find_package(pybind11 CONFIG REQUIRED)
  file(GLOB binding_sources CONFIGURE_DEPENDS cpp/bindings/*.cpp cpp/bindings/sdk/*.cpp)
  file(GLOB extension_sources CONFIGURE_DEPENDS cpp/embedded/*.cpp xla_plugin/*.cpp)
  add_bindings(popx poplin popnn poprand SOURCES ${binding_sources})
  target_compile_definitions(ipujax_bindings PRIVATE IPUJAX_VERSION="${IPUJAX_VERSION}")
  pybind11_add_module(_poplar MODULE NO_EXTRAS $<TARGET_OBJECTS:ipujax_bindings>
    $<TARGET_OBJECTS:ipujax_backend> ${extension_sources})
  target_include_directories(_poplar PRIVATE xla_plugin)
  target_compile_definitions(_poplar PRIVATE IPUJAX_VERSION="${IPUJAX_VERSION}")
  target_link_libraries(_poplar PRIVATE popx poplin popnn poprand)
  add_hosts(_poplar)
  precompile(_poplar)
  target_link_options(_poplar PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/extension.map)
  # IPUJAX_EXTENSION tells Python to use this folder.
  set_target_properties(_poplar PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/extension)
endif()

if(IPUJAX_BUILD_TESTS)
  add_library(ipujax_test_main OBJECT cpp/model/tests/main.cpp)
  target_include_directories(ipujax_test_main PRIVATE cpp/model/tests)
  foreach(name test_edges test_host)
    add_executable(${name} tests/cpp/popx_hardware/${name}.cpp
      $<TARGET_OBJECTS:ipujax_test_main>)
    target_include_directories(${name} PRIVATE cpp/model/tests tests/cpp)
    target_link_libraries(${name} PRIVATE popx)
  endforeach()
  add_executable(test_container tests/sdk/cpp/test_container.cpp $<TARGET_OBJECTS:ipujax_backend>
    $<TARGET_OBJECTS:ipujax_test_main>)
  target_include_directories(test_container PRIVATE cpp/model/tests tests/cpp)
  target_link_libraries(test_container PRIVATE popx)
endif()
