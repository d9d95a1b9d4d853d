# C++ compiler settings, for the IPU Model alone and for ipujax, which includes this file first.
if(DEFINED compile_quickly)
  return()
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(IPUJAX_VERSION "0.1.0" CACHE STRING "Version written into executables")
set(IPUJAX_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

add_compile_options(-Wall -Wextra -Werror -ffp-contract=off -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees an overlap and an overflow in every `"text" + std::string` (its bug 105651).
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(IPUJAX_SANITIZE)
  # Checks take most of the time of such a build: less optimisation makes it three times faster.
  add_compile_definitions(IPUJAX_SANITIZED)
  add_compile_options(-fsanitize=${IPUJAX_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${IPUJAX_SANITIZE})
  # With these checks, gcc considers members of std::regex uninitialized.
  add_compile_options(-Wno-maybe-uninitialized)
endif()

# For code that runs rarely or briefly: calls from Python, graphs that are built once, tests.
# Compiles in a quarter to a third less time than -O3.
set(compile_quickly "$<$<CONFIG:Release>:-O1>")
set(compile_small "$<$<CONFIG:Release>:-O2>")
