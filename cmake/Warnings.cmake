# Compiler warnings and sanitizers, as an interface target that every target of the project links.
add_library(tuner_options INTERFACE)
target_include_directories(tuner_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tuner_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                                               $<$<BOOL:${TUNER_WERROR}>:-Werror>)
# The CPU's reference must give the GPU's bits: no multiply-add is contracted behind its back.
target_compile_options(tuner_options INTERFACE -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of its own std::string (bug 105651) and std::optional (bug 80635).
  target_compile_options(tuner_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(TUNER_SANITIZE)
  target_compile_options(tuner_options INTERFACE -fsanitize=${TUNER_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer -g1)
  target_link_options(tuner_options INTERFACE -fsanitize=${TUNER_SANITIZE})
endif()
# Tests compile in four fifths of the time with -O1, and what they test keeps its -O2.
target_compile_options(tuner_options INTERFACE
  $<$<AND:$<CONFIG:Release>,$<STREQUAL:$<TARGET_PROPERTY:SOURCE_DIR>,${PROJECT_SOURCE_DIR}/tests>>:-O1>)
