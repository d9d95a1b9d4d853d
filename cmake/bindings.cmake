# The bindings, objects of the extension. Templates take most of their compile time, so the compiler
# gets four files at a time as one source: those four share the names of anonymous namespaces and
# the names that they bring in by `using`.
#   add_bindings(<libraries they are compiled against> SOURCES <files>)
function(add_bindings)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" SOURCES)
  add_library(ipujax_bindings OBJECT ${arg_SOURCES})
  target_link_libraries(ipujax_bindings PRIVATE pybind11::module ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(ipujax_bindings PRIVATE xla_plugin)
  target_compile_options(ipujax_bindings PRIVATE "${compile_quickly}")
  set_target_properties(ipujax_bindings PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  precompile(ipujax_bindings)
  target_precompile_headers(ipujax_bindings PRIVATE <pybind11/pybind11.h> <pybind11/stl.h>)
endfunction()
