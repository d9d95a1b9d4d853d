# Tests. Each source becomes a program build/tests/<folder>_<source>.
enable_testing()
# At -O1 gcc does not follow every branch that sets a variable.
set(test_options "${compile_quickly}" $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  CACHE INTERNAL "How tests are compiled")
# Tests are compiled like the main function, and share its precompiled header. Those in `public` are
# programs like those of SDK users: C++17, linked by the names of libraries.
foreach(main ipujax_test_main ipujax_public_test_main)
  add_library(${main} OBJECT tests/main.cpp)
  target_include_directories(${main} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR}/tests)
  target_compile_options(${main} PRIVATE ${test_options})
  set_target_properties(${main} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  precompile(${main})
endforeach()
set_target_properties(ipujax_public_test_main PROPERTIES CXX_STANDARD 17)

# add_cpp_test(<source> <libraries>)
function(add_cpp_test source)
  set(main ipujax_test_main)
  set(standard 20)
  if(source MATCHES "/public/")
    set(main ipujax_public_test_main)
    set(standard 17)
  endif()
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  set(target ${folder}_${name})
  add_executable(${target} ${source} $<TARGET_OBJECTS:${main}>)
  target_include_directories(${target} PRIVATE
    $<TARGET_PROPERTY:${main},INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(${target} PRIVATE ${test_options})
  target_precompile_headers(${target} REUSE_FROM ${main})
  target_link_libraries(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${OPENBLAS_LIB_DIR}"
    CXX_STANDARD ${standard} POSITION_INDEPENDENT_CODE OFF
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${target} COMMAND ${target} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

file(GLOB model_tests CONFIGURE_DEPENDS tests/*/test_*.cpp)
foreach(source ${model_tests})
  if(source MATCHES "/public/")
    add_cpp_test(${source} poplar ${sdk_libraries})
  else()
    add_cpp_test(${source} ipujax_whole)
  endif()
endforeach()
# This test compares codelets with a loop of its own, which must be as fast as possible.
set_source_files_properties(tests/engine/test_codelet_speed.cpp PROPERTIES COMPILE_OPTIONS -O3
  SKIP_PRECOMPILE_HEADERS ON)

# Compiles every public header alone, as C++17 like SDK users.
list(TRANSFORM sdk_folders APPEND /*.hpp OUTPUT_VARIABLE header_patterns)
file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${header_patterns}
  */experimental/*.hpp graphcore_target_access/*.h)
set(header_sources)
foreach(header ${public_headers})
  string(MAKE_C_IDENTIFIER ${header} name)
  set(source ${CMAKE_BINARY_DIR}/public_headers/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <@header@>\n" @ONLY)
  list(APPEND header_sources ${source})
endforeach()
add_library(public_headers OBJECT ${header_sources})
target_include_directories(public_headers PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(public_headers PROPERTIES CXX_STANDARD 17)
