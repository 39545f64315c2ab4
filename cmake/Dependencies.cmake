# Third-party libraries (docs/DEPENDENCIES.md says why each). TUNER_DEPS names a folder that scripts/ filled where the
# system lacks them: a prefix with include/ and lib/.
set(TUNER_DEPS "" CACHE PATH "Prefix with dependencies that the system lacks")
if(TUNER_DEPS)
  list(PREPEND CMAKE_PREFIX_PATH ${TUNER_DEPS} ${TUNER_DEPS}/usr)
endif()

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(fmt 8 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

find_package(CUDAToolkit 12.4 QUIET)
if(NOT CUDAToolkit_FOUND AND TUNER_DEPS)
  find_path(CUDAToolkit_INCLUDE_DIRS cuda_runtime_api.h PATHS ${TUNER_DEPS}/nvidia/cu13/include NO_DEFAULT_PATH)
  set(CUDAToolkit_LIBRARY_DIR ${TUNER_DEPS}/nvidia/cu13/lib)
endif()
find_library(TUNER_CUDART cudart_static PATHS ${CUDAToolkit_LIBRARY_DIR} NO_DEFAULT_PATH)
if(NOT CUDAToolkit_INCLUDE_DIRS OR NOT TUNER_CUDART)
  message(FATAL_ERROR "The CUDA toolkit's headers and libcudart_static.a were not found. ./scripts/tune brings them.")
endif()

# cudart is linked statically and finds the driver by itself; libcuda is never linked. NVRTC, cuBLAS, cuDNN and NVML are
# loaded at run time, so that a program built here starts where they are missing.
add_library(tuner_cuda INTERFACE)
target_include_directories(tuner_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(tuner_cuda INTERFACE ${TUNER_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)

find_path(TUNER_BOOST_INCLUDE boost/context/fiber.hpp REQUIRED)
find_library(TUNER_BOOST_CONTEXT NAMES libboost_context.a boost_context REQUIRED)
add_library(tuner_fiber INTERFACE)
target_include_directories(tuner_fiber SYSTEM INTERFACE ${TUNER_BOOST_INCLUDE})
target_link_libraries(tuner_fiber INTERFACE ${TUNER_BOOST_CONTEXT})

find_path(TUNER_MUPARSER_INCLUDE muParser.h REQUIRED)
find_library(TUNER_MUPARSER NAMES libmuparser.a muparser REQUIRED)
add_library(tuner_muparser INTERFACE)
target_include_directories(tuner_muparser SYSTEM INTERFACE ${TUNER_MUPARSER_INCLUDE})
target_link_libraries(tuner_muparser INTERFACE ${TUNER_MUPARSER})

find_path(TUNER_MBEDTLS_INCLUDE mbedtls/sha256.h REQUIRED)
find_library(TUNER_MBEDCRYPTO NAMES libmbedcrypto.a mbedcrypto REQUIRED)
add_library(tuner_crypto INTERFACE)
target_include_directories(tuner_crypto SYSTEM INTERFACE ${TUNER_MBEDTLS_INCLUDE})
target_link_libraries(tuner_crypto INTERFACE ${TUNER_MBEDCRYPTO})

if(TUNER_TESTS)
  find_package(GTest REQUIRED)
endif()
