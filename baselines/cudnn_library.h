// cuDNN, opened at run time: the functions of its backend API and an owning type for its descriptors.
//
// The backend API is used directly, without the cudnn-frontend headers: a dozen calls reach every engine with its knobs
// and notes, cost nothing to compile, and allow beta 1, which adds a convolution to a y that already holds the bias.
#pragma once

#if __has_include(<cudnn.h>)
#define TUNER_CUDNN_HEADERS 1
#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "baselines/library.h"

namespace tuner {

struct Cudnn {
  SharedLibrary library;
  std::string version;  // "9.14.0 (libcudnn.so.9)"
  decltype(cudnnCreate)* create = nullptr;
  decltype(cudnnDestroy)* destroy = nullptr;
  decltype(cudnnSetStream)* set_stream = nullptr;
  decltype(cudnnGetVersion)* get_version = nullptr;
  decltype(cudnnGetErrorString)* error_string = nullptr;
  decltype(cudnnGetLastErrorString)* last_error_string = nullptr;
  decltype(cudnnBackendCreateDescriptor)* create_descriptor = nullptr;
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor = nullptr;
  decltype(cudnnBackendSetAttribute)* set_attribute = nullptr;
  decltype(cudnnBackendGetAttribute)* get_attribute = nullptr;
  decltype(cudnnBackendFinalize)* finalize = nullptr;
  decltype(cudnnBackendExecute)* execute = nullptr;
};

/// Opened at the first call. Failure: what was looked for.
const Expected<Cudnn>& cudnn();

/// A cuDNN call failed; what() names call, file, line and cuDNN's own words. Becomes a Failure before it leaves the
/// baseline.
class CudnnError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
void throw_on_cudnn_error(const Cudnn& library, cudnnStatus_t status, const char* call, const char* file, int line);
#define TUNER_CUDNN(library, call) ::tuner::throw_on_cudnn_error((library), (library).call, #call, __FILE__, __LINE__)

/// Owning backend descriptor.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  cudnnBackendDescriptor_t get() const { return handle_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void finalize();
  /// Several values of one attribute, at most `most`.
  template <class Value>
  std::vector<Value> values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t most) const {
    std::vector<Value> found(static_cast<std::size_t>(most));
    found.resize(static_cast<std::size_t>(read(name, type, most, found.data())));
    return found;
  }
  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  /// Fills descriptors made beforehand; how many there are.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most,
                    void* values) const;

 private:
  const Cudnn* library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// What plans are made for: a handle on a device's stream, which can run them, or the properties of a GPU that is not
/// present, for which cuDNN 9.11 and newer choose engines and build plans all the same.
class CudnnTarget {
 public:
  CudnnTarget(const Cudnn& library, cudaStream_t stream);
  /// cuDNN's own JSON of device properties.
  CudnnTarget(const Cudnn& library, const std::string& device_properties);
  ~CudnnTarget();
  CudnnTarget(const CudnnTarget&) = delete;
  CudnnTarget& operator=(const CudnnTarget&) = delete;

  const Cudnn& library() const { return library_; }
  cudnnHandle_t handle() const { return handle_; }  // null without a device
  /// Sets whichever of the two attributes fits.
  void give(CudnnDescriptor& descriptor, std::optional<cudnnBackendAttributeName_t> handle_name,
            std::optional<cudnnBackendAttributeName_t> properties_name) const;

 private:
  const Cudnn& library_;
  cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> properties_;
};

}  // namespace tuner
#endif
