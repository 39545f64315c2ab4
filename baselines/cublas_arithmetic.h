// What cuBLAS and cublasLt are asked to compute in, by accuracy class.
#pragma once

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <library_types.h>

#include "tuner/core/accuracy.h"

namespace tuner {

struct CublasArithmetic {
  cudaDataType_t element;  // of A and B
  cudaDataType_t sum;      // of C
  cublasComputeType_t compute;
  const char* compute_name;
  cublasMath_t math;  // cuBLAS alone
};

inline CublasArithmetic cublas_arithmetic(Accuracy accuracy) {
  switch (accuracy) {
    case Accuracy::tf32:
      return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, "CUBLAS_COMPUTE_32F_FAST_TF32",
              CUBLAS_TF32_TENSOR_OP_MATH};
    case Accuracy::fp16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F", CUBLAS_DEFAULT_MATH};
    case Accuracy::bf16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F", CUBLAS_DEFAULT_MATH};
    case Accuracy::fp32:
      break;
  }
  return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F", CUBLAS_DEFAULT_MATH};
}

}  // namespace tuner
#endif
