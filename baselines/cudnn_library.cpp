#include "baselines/cudnn_library.h"

#ifdef TUNER_CUDNN_HEADERS
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tuner {
namespace {

Expected<Cudnn> open_cudnn() {
  const std::array<std::string, 2> names{"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  auto opened = SharedLibrary::open("cuDNN", names);
  if (!opened) return opened.failure();
  Cudnn c{*opened, {}};
  const SharedLibrary& library = c.library;
  const bool found = library.find(c.create, "cudnnCreate") && library.find(c.destroy, "cudnnDestroy") &&
                     library.find(c.set_stream, "cudnnSetStream") && library.find(c.get_version, "cudnnGetVersion") &&
                     library.find(c.error_string, "cudnnGetErrorString") &&
                     library.find(c.last_error_string, "cudnnGetLastErrorString") &&
                     library.find(c.create_descriptor, "cudnnBackendCreateDescriptor") &&
                     library.find(c.destroy_descriptor, "cudnnBackendDestroyDescriptor") &&
                     library.find(c.set_attribute, "cudnnBackendSetAttribute") &&
                     library.find(c.get_attribute, "cudnnBackendGetAttribute") &&
                     library.find(c.finalize, "cudnnBackendFinalize") && library.find(c.execute, "cudnnBackendExecute");
  if (!found)
    return Failure{Outcome::rejected, fmt::format("{} lacks functions of cuDNN 9's backend API", library.name()), {}};
  const std::size_t version = c.get_version();
  c.version = fmt::format("{}.{}.{} ({})", version / 10000, version / 100 % 100, version % 100, library.name());
  return c;
}

}  // namespace

const Expected<Cudnn>& cudnn() {
  static const Expected<Cudnn> library = open_cudnn();
  return library;
}

void throw_on_cudnn_error(const Cudnn& library, cudnnStatus_t status, const char* call, const char* file, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> text{};
  library.last_error_string(text.data(), text.size());
  throw CudnnError(fmt::format("{} ({}:{}): {} {}", call, file, line, library.error_string(status), text.data()));
}

CudnnDescriptor::CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  TUNER_CUDNN(*library_, create_descriptor(type, &handle_));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_) library_->destroy_descriptor(handle_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(handle_, other.handle_);
  return *this;
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) {
  TUNER_CUDNN(*library_, set_attribute(handle_, name, type, count, values));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
}

void CudnnDescriptor::finalize() { TUNER_CUDNN(*library_, finalize(handle_)); }

std::int64_t CudnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                   std::int64_t most, void* values) const {
  std::int64_t count = 0;
  TUNER_CUDNN(*library_, get_attribute(handle_, name, type, most, &count, values));
  return std::min(count, most);
}

std::int64_t CudnnDescriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  read(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

CudnnTarget::CudnnTarget(const Cudnn& library, cudaStream_t stream) : library_(library) {
  TUNER_CUDNN(library_, create(&handle_));
  if (const cudnnStatus_t status = library_.set_stream(handle_, stream); status != CUDNN_STATUS_SUCCESS) {
    library_.destroy(handle_);
    throw_on_cudnn_error(library_, status, "set_stream", __FILE__, __LINE__);
  }
}

CudnnTarget::CudnnTarget(const Cudnn& library, const std::string& device_properties) : library_(library) {
#if CUDNN_VERSION >= 91100
  CudnnDescriptor properties(library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<std::int64_t>(device_properties.size()), device_properties.data());
  properties.finalize();
  properties_ = std::move(properties);
#else
  throw CudnnError("built with a cuDNN older than 9.11, which knows no device but those present: " + device_properties);
#endif
}

CudnnTarget::~CudnnTarget() {
  if (handle_) library_.destroy(handle_);
}

void CudnnTarget::give(CudnnDescriptor& descriptor, std::optional<cudnnBackendAttributeName_t> handle_name,
                       std::optional<cudnnBackendAttributeName_t> properties_name) const {
  if (handle_ && handle_name) descriptor.set(*handle_name, CUDNN_TYPE_HANDLE, 1, &handle_);
  if (properties_ && properties_name) descriptor.set(*properties_name, *properties_);
}

}  // namespace tuner
#endif
