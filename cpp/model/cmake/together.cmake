# Gives the compiler up to eight sources of a folder as one source, so that their headers are read
# once. These sources share the names of anonymous namespaces. Kernels are left
# out: each defines the same names (kLanes, checkReduce).
#   compile_together(<target> [EXCEPT <regular expression of paths>])
function(compile_together target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCEPT" "")
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  foreach(source ${sources})
    if(NOT source MATCHES "\\.cpp$" OR (arg_EXCEPT AND source MATCHES "${arg_EXCEPT}"))
      continue()
    endif()
    file(RELATIVE_PATH folder ${CMAKE_CURRENT_SOURCE_DIR} ${source}/..)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR number "${count_${folder}} + 0")
    math(EXPR group "${number} / 8")
    math(EXPR count_${folder} "${number} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A class in a source may have members from its anonymous namespace; one in a header may not.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()
