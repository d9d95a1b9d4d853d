# Up to eight sources of a folder are one source to the compiler, which reads their headers once: half
# the time. They share the names of their anonymous namespaces. Kernels are left out: each has its own
# names for the same things (kLanes, checkReduce).
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
  # A class of a source may have members of its anonymous namespace; in a header it may not.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()
