# Programs over several processes: gloo moves the bytes, where it is installed (libgloo-dev).
# add_hosts(<target>): adds the sources of cpp/hosts.
option(IPUJAX_WITH_GLOO "Connect processes with gloo if it is installed" ON)
find_path(GLOO_INCLUDE_DIR gloo/rendezvous/context.h)
find_library(GLOO_LIBRARY gloo)

function(add_hosts target)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cpp/hosts/*.cpp)
  if(IPUJAX_WITH_GLOO AND GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
    list(FILTER sources EXCLUDE REGEX "/NoTransport.cpp$")
    target_link_libraries(${target} PRIVATE ${GLOO_LIBRARY})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/cpp/hosts/GlooTransport.cpp PROPERTIES
      INCLUDE_DIRECTORIES ${GLOO_INCLUDE_DIR} SKIP_PRECOMPILE_HEADERS ON)
  else()
    list(FILTER sources EXCLUDE REGEX "/GlooTransport.cpp$")
  endif()
  target_sources(${target} PRIVATE ${sources})
endfunction()
