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

# CUDA: TUNER_SYSTEM_CUDA's toolkit, else the parts under TUNER_DEPS, else what CMake finds by itself.
set(TUNER_SYSTEM_CUDA "" CACHE PATH "Root of the CUDA toolkit to build with")
set(cuda_wheels ${TUNER_DEPS}/nvidia/cu13)
if(TUNER_SYSTEM_CUDA)
  set(CUDAToolkit_INCLUDE_DIRS ${TUNER_SYSTEM_CUDA}/include)
  set(CUDAToolkit_LIBRARY_DIR ${TUNER_SYSTEM_CUDA}/lib64)
elseif(TUNER_DEPS AND EXISTS ${cuda_wheels}/include/cuda_runtime_api.h)
  set(CUDAToolkit_INCLUDE_DIRS ${cuda_wheels}/include)
  set(CUDAToolkit_LIBRARY_DIR ${cuda_wheels}/lib)
else()
  find_package(CUDAToolkit 12.4 QUIET)
endif()
find_library(TUNER_CUDART NAMES libcudart_static.a PATHS ${CUDAToolkit_LIBRARY_DIR} NO_DEFAULT_PATH)
if(NOT CUDAToolkit_INCLUDE_DIRS OR NOT TUNER_CUDART)
  message(FATAL_ERROR "The CUDA toolkit's headers and libcudart_static.a were not found. ./scripts/tune brings them.")
endif()

# cudart is linked statically and finds the driver by itself; libcuda is never linked. NVRTC, cuBLAS, cuDNN and NVML are
# loaded at run time, so that a program built here starts where they are missing; the run path says where to look.
add_library(tuner_cuda INTERFACE)
target_include_directories(tuner_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(tuner_cuda INTERFACE ${TUNER_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
# The old kind of run path, which also serves what those libraries load themselves: NVRTC opens its builtins by name.
target_link_options(tuner_cuda INTERFACE LINKER:--disable-new-dtags,-rpath,${CUDAToolkit_LIBRARY_DIR})

# cuDNN beside the toolkit. Without a GPU the vendors' headers may be missing: then a baseline says that it is not available.
find_path(TUNER_CUDNN_INCLUDE cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS} ${TUNER_DEPS}/nvidia/cudnn/include)
if(TUNER_CUDNN_INCLUDE)
  target_include_directories(tuner_cuda SYSTEM INTERFACE ${TUNER_CUDNN_INCLUDE})
endif()
foreach(folder ${cuda_wheels} ${TUNER_DEPS}/nvidia/cudnn)
  if(TUNER_DEPS AND EXISTS ${folder})
    target_include_directories(tuner_cuda SYSTEM INTERFACE ${folder}/include)
    target_link_options(tuner_cuda INTERFACE LINKER:-rpath,${folder}/lib)
  endif()
endforeach()

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

find_path(TUNER_SQLITE_INCLUDE sqlite3.h REQUIRED)
find_library(TUNER_SQLITE NAMES libsqlite3.a sqlite3 REQUIRED)
add_library(tuner_sqlite INTERFACE)
target_include_directories(tuner_sqlite SYSTEM INTERFACE ${TUNER_SQLITE_INCLUDE})
target_link_libraries(tuner_sqlite INTERFACE ${TUNER_SQLITE} Threads::Threads ${CMAKE_DL_LIBS} m)

find_path(TUNER_MBEDTLS_INCLUDE mbedtls/sha256.h REQUIRED)
find_library(TUNER_MBEDCRYPTO NAMES libmbedcrypto.a mbedcrypto REQUIRED)
add_library(tuner_crypto INTERFACE)
target_include_directories(tuner_crypto SYSTEM INTERFACE ${TUNER_MBEDTLS_INCLUDE})
target_link_libraries(tuner_crypto INTERFACE ${TUNER_MBEDCRYPTO})

if(TUNER_TESTS)
  find_package(GTest REQUIRED)
endif()
