#include "tuner/emit/header_text.h"

namespace tuner {

std::string_view header_manual() {
  return R"(// 1D transposed convolution, as PyTorch's conv_transpose1d:
//   y[b, oc, t] = bias[oc] + sum over ic in the group of oc, k in 0..K-1 with (t + p - k*d) divisible by s and in range
//                 of x[b, ic, (t + p - k*d) / s] * w[ic, oc within the group, k]
//   x (batch, in_channels, length), w (in_channels, out_channels / groups, kernel_size), bias (out_channels) or null,
//   y (batch, out_channels, length_out); all in device memory, elements of the accuracy class: float for fp32 and tf32,
//   __half for fp16, __nv_bfloat16 for bf16. The last axis is contiguous; w and bias are contiguous throughout; rows and
//   batches of x and y may be apart (Problem's strides, in elements). y does not overlap x, w or bias.
//
//   Plan plan = make_plan(problem, Accuracy::fp32, device);          // once; not per call
//   if (!plan.status()) report(plan.status().message());
//   cudaMalloc(&packed, plan.prepare_bytes());                       // yours; 0 bytes: pass w itself to run
//   cudaMalloc(&workspace, plan.workspace_bytes());                  // yours; 0 bytes: pass null
//   plan.prepare(w, packed, stream);                                 // once for each content of w
//   plan.run(x, packed, bias, y, workspace, stream);                 // as often as you like
//
// Errors: every call returns a Status, and nothing throws. Errors of kernels that run later surface where the CUDA
//   runtime reports them.
// Streams: prepare and run enqueue on `stream` and return; they never synchronise and never allocate. The plan's device
//   must be current. Both may be captured into a CUDA graph. make_plan may not (it asks the driver).
// Threads: a Plan is a value that does not change; several threads may use one, with a workspace each per call in flight.
// Memory: x, w, y, packed and workspace as cudaMalloc aligns them, or at least to their element (packed and workspace: 16
//   bytes). An empty batch is a call that does nothing.
// Compile this header with nvcc, for the architectures of the GPUs you name to make_plan.
)";
}

std::string_view header_types() {
  return R"(/// What a call comes to. True when it is all right.
class Status {
 public:
  enum class Code {
    ok,
    invalid_problem,    // make_plan: not a legal ConvTranspose1d; message() says which rule
    invalid_argument,   // prepare, run: a null pointer where there must be none
    unsupported_class,  // make_plan: this header holds no kernel of that accuracy class
    cuda_failure,       // cuda() has the runtime's error
    no_plan             // a Plan that make_plan did not make
  };
  constexpr Status(Code code, const char* message, cudaError_t cuda = cudaSuccess)
      : code_(code), message_(message), cuda_(cuda) {}
  constexpr Status() : Status(Code::ok, "ok") {}

  constexpr explicit operator bool() const { return code_ == Code::ok; }
  constexpr Code code() const { return code_; }
  constexpr cudaError_t cuda() const { return cuda_; }
  constexpr const char* message() const { return message_; }  // static storage

 private:
  Code code_;
  const char* message_;
  cudaError_t cuda_;
};

/// Accuracy class: element type of x, w, bias and y, and the bound that the kernels were proven to meet.
enum class Accuracy { fp32, tf32, fp16, bf16 };

struct Problem {
  long long batch = 1;
  long long in_channels = 0;
  long long out_channels = 0;
  long long kernel_size = 0;
  long long stride = 1;
  long long padding = 0;
  long long output_padding = 0;
  long long dilation = 1;
  long long groups = 1;
  long long length = 0;
  // Elements from one row (channel) or batch item to the next; 0: contiguous.
  long long x_row_stride = 0;
  long long x_batch_stride = 0;
  long long y_row_stride = 0;
  long long y_batch_stride = 0;

  constexpr long long length_out() const {
    return (length - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1;
  }
};
)";
}

std::string_view header_details() {
  return R"(/// Why a problem is illegal; null if it is legal. Offsets must fit 64 bits.
inline const char* illegal(const Problem& p) {
  if (p.batch < 0) return "batch must not be negative";
  if (p.in_channels < 1 || p.out_channels < 1) return "in_channels and out_channels must be positive";
  if (p.kernel_size < 1) return "kernel_size must be positive";
  if (p.stride < 1) return "stride must be positive";
  if (p.dilation < 1) return "dilation must be positive";
  if (p.length < 1) return "length must be positive";
  if (p.groups < 1) return "groups must be positive";
  if (p.in_channels % p.groups != 0 || p.out_channels % p.groups != 0)
    return "in_channels and out_channels must be divisible by groups";
  if (p.padding < 0) return "padding must not be negative";
  if (p.output_padding < 0) return "output_padding must not be negative";
  if (p.output_padding >= p.stride && p.output_padding >= p.dilation)
    return "output_padding must be smaller than stride or dilation";
  if (p.x_row_stride < 0 || p.x_batch_stride < 0 || p.y_row_stride < 0 || p.y_batch_stride < 0)
    return "strides must not be negative";
  constexpr double kMost = 1e18;  // elements; bytes then fit 63 bits
  const auto real = [](long long value) { return static_cast<double>(value); };
  const double extent = real(p.length - 1) * real(p.stride) + real(p.dilation) * real(p.kernel_size - 1);
  if (extent > kMost || real(p.padding) > kMost) return "length_out does not fit 64 bits";
  if (p.length_out() < 1) return "length_out must be positive";
  const double batches = real(p.batch < 1 ? 1 : p.batch);
  if (batches * real(p.in_channels) * real(p.length) > kMost || batches * real(p.out_channels) * real(p.length_out()) > kMost ||
      real(p.in_channels) * real(p.out_channels) * real(p.kernel_size) > kMost ||
      batches * real(p.x_batch_stride) > kMost || batches * real(p.y_batch_stride) > kMost ||
      real(p.in_channels) * real(p.x_row_stride) > kMost || real(p.out_channels) * real(p.y_row_stride) > kMost)
    return "offsets do not fit 64 bits";
  return nullptr;
}

inline ct1d::Geometry geometry_of(const Problem& p) {
  const long long length_out = p.length_out();
  const long long x_row = p.x_row_stride != 0 ? p.x_row_stride : p.length;
  const long long y_row = p.y_row_stride != 0 ? p.y_row_stride : length_out;
  return {p.batch,
          p.in_channels,
          p.out_channels,
          p.kernel_size,
          p.stride,
          p.padding,
          p.dilation,
          p.groups,
          p.length,
          length_out,
          p.x_batch_stride != 0 ? p.x_batch_stride : p.in_channels * x_row,
          x_row,
          p.y_batch_stride != 0 ? p.y_batch_stride : p.out_channels * y_row,
          y_row};
}

/// A configuration's kernels, by their place in the order of launches, and what they need for a call. No prepare
/// kernels: run reads w itself.
struct Kernels {
  long long (*packed_bytes)(const ct1d::Geometry&);
  long long (*workspace_bytes)(const ct1d::Geometry&);
  int run_steps;
  ct1d::LaunchShape (*run_shape)(const ct1d::Geometry&, int step);
  const void* (*run_kernel)(int step);
  int prepare_steps;
  ct1d::LaunchShape (*prepare_shape)(const ct1d::Geometry&, int step);
  const void* (*prepare_kernel)(int step);
};

/// A row of the table: a problem as it was tuned on a GPU.
struct Tuned {
  const char* device;
  int compute_major;
  Accuracy accuracy;
  long long batch, in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, length;
  int kernels;              // index into the list of kernels
  const char* why;          // on that GPU
  const char* why_another;  // on another one

  constexpr bool is(const Problem& p, Accuracy a) const {
    return accuracy == a && batch == p.batch && in_channels == p.in_channels && out_channels == p.out_channels &&
           kernel_size == p.kernel_size && stride == p.stride && padding == p.padding &&
           output_padding == p.output_padding && dilation == p.dilation && groups == p.groups && length == p.length;
  }
};

/// Serves every problem of a class. The list ends with kernels = -1.
struct General {
  Accuracy accuracy;
  int kernels;
  const char* why;
};

/// Makes a device current for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : error_(cudaGetDevice(&previous_)) {
    if (error_ == cudaSuccess && previous_ != device) {
      error_ = cudaSetDevice(device);
      changed_ = error_ == cudaSuccess;
    }
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(previous_);
  }
  cudaError_t error() const { return error_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t error_;
};

/// Reports an error, and leaves none behind for the caller's own checks.
inline Status failed(cudaError_t error) {
  (void)cudaGetLastError();
  return Status(Status::Code::cuda_failure, cudaGetErrorString(error), error);
}

/// Lets a kernel use the shared memory that `shape` needs, on the current device. The limit is set to the most that the
/// device grants, so that plans of other shapes and threads in the same call agree.
inline Status make_ready(const void* kernel, const ct1d::LaunchShape& shape, const cudaDeviceProp& device) {
  cudaFuncAttributes attributes;
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel)) return failed(error);
  const long long most = static_cast<long long>(device.sharedMemPerBlockOptin) - static_cast<long long>(attributes.sharedSizeBytes);
  if (static_cast<long long>(shape.shared_bytes) > most)
    return Status(Status::Code::cuda_failure, "the device has too little shared memory for this kernel",
                  cudaErrorInvalidConfiguration);
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most));
  return error == cudaSuccess ? Status() : failed(error);
}

template <class Arguments>
Status launch(const void* kernel, const ct1d::LaunchShape& shape, Arguments arguments, cudaStream_t stream) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = shape.cluster_x;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid_x, shape.grid_y, shape.grid_z);
  config.blockDim = dim3(shape.block_x, shape.block_y, shape.block_z);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = shape.cluster_x > 1 ? 1 : 0;
  void* parameters[] = {&arguments};
  const cudaError_t error = cudaLaunchKernelExC(&config, kernel, parameters);
  return error == cudaSuccess ? Status() : failed(error);
}
)";
}

std::string_view header_plan() {
  return R"(/// How one problem is computed on one device. A small value: copy it freely.
class Plan {
 public:
  Plan() = default;

  Status status() const { return status_; }
  /// Which kernels were chosen, and on what grounds. Static storage.
  const char* why() const { return why_; }
  /// Device memory that run needs for itself, bytes. Its content does not matter and does not last.
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Device memory for the packed weights, bytes. 0: there is no packing; prepare does nothing and run takes w itself.
  std::size_t prepare_bytes() const { return prepare_bytes_; }

  /// Packs w (device memory) into `packed` (prepare_bytes() of device memory) for run.
  Status prepare(const void* w, void* packed, cudaStream_t stream) const {
    if (!status_ || prepare_bytes_ == 0) return status_;
    if (w == nullptr || packed == nullptr) return Status(Status::Code::invalid_argument, "prepare: w or packed is null");
    Status status;
    for (int step = 0; step < kernels_->prepare_steps && status; ++step)
      status = detail::launch(kernels_->prepare_kernel(step), prepare_shapes_[step],
                              detail::ct1d::PrepareArguments{geometry_, w, packed}, stream);
    return status;
  }

  /// y = conv_transpose1d(x, w, bias). `weights` is what prepare wrote, or w where prepare_bytes() is 0; `bias` may be
  /// null; `workspace` may be null where workspace_bytes() is 0.
  Status run(const void* x, const void* weights, const void* bias, void* y, void* workspace, cudaStream_t stream) const {
    if (!status_ || geometry_.batch == 0) return status_;
    if (x == nullptr || weights == nullptr || y == nullptr)
      return Status(Status::Code::invalid_argument, "run: x, weights or y is null");
    if (workspace == nullptr && workspace_bytes_ != 0)
      return Status(Status::Code::invalid_argument, "run: workspace is null; workspace_bytes() says how much is needed");
    Status status;
    for (int step = 0; step < kernels_->run_steps && status; ++step)
      status = detail::launch(kernels_->run_kernel(step), run_shapes_[step],
                              detail::ct1d::RunArguments{geometry_, x, weights, bias, y, workspace}, stream);
    return status;
  }

 private:
  friend Plan make_plan(const Problem& problem, Accuracy accuracy, int device);

  void use(int kernels, const char* why, const cudaDeviceProp& device) {
    kernels_ = &detail::kKernels[kernels];
    why_ = why;
    workspace_bytes_ = static_cast<std::size_t>(kernels_->workspace_bytes(geometry_));
    status_ = Status();
    for (int step = 0; step < kernels_->run_steps && status_; ++step) {
      run_shapes_[step] = kernels_->run_shape(geometry_, step);
      status_ = detail::make_ready(kernels_->run_kernel(step), run_shapes_[step], device);
    }
    if (!status_ || kernels_->prepare_steps == 0) return;
    prepare_bytes_ = static_cast<std::size_t>(kernels_->packed_bytes(geometry_));
    for (int step = 0; step < kernels_->prepare_steps && status_; ++step) {
      prepare_shapes_[step] = kernels_->prepare_shape(geometry_, step);
      status_ = detail::make_ready(kernels_->prepare_kernel(step), prepare_shapes_[step], device);
    }
  }

  Status status_{Status::Code::no_plan, "make_plan did not make this plan"};
  const char* why_ = "";
  const detail::Kernels* kernels_ = nullptr;
  detail::ct1d::Geometry geometry_{};
  detail::ct1d::LaunchShape run_shapes_[detail::kMostSteps]{};
  detail::ct1d::LaunchShape prepare_shapes_[detail::kMostSteps]{};
  std::size_t workspace_bytes_ = 0;
  std::size_t prepare_bytes_ = 0;
};

/// Chooses kernels: those tuned for exactly this problem on this GPU; else for this problem on another GPU of the same
/// compute capability (major); else a general configuration that is right for every problem. `device` is a CUDA ordinal.
inline Plan make_plan(const Problem& problem, Accuracy accuracy, int device) {
  Plan plan;
  if (const char* fault = detail::illegal(problem)) {
    plan.status_ = Status(Status::Code::invalid_problem, fault);
    return plan;
  }
  plan.geometry_ = detail::geometry_of(problem);
  const detail::CurrentDevice current(device);
  cudaDeviceProp properties;
  cudaError_t error = current.error();
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) {
    plan.status_ = detail::failed(error);
    return plan;
  }
  for (const bool another : {false, true}) {
    for (const detail::Tuned& tuned : detail::kTuned) {
      const bool here = std::strcmp(tuned.device, properties.name) == 0;
      if (!tuned.is(problem, accuracy) || !(here || (another && tuned.compute_major == properties.major))) continue;
      plan.use(tuned.kernels, here ? tuned.why : tuned.why_another, properties);
      if (plan.status_) return plan;
    }
  }
  for (const detail::General& general : detail::kGeneral) {
    if (general.accuracy != accuracy || general.kernels < 0) continue;
    plan.prepare_bytes_ = 0;
    plan.use(general.kernels, general.why, properties);
    return plan;
  }
  if (plan.kernels_ == nullptr)
    plan.status_ = Status(Status::Code::unsupported_class, "this header holds no kernel of that accuracy class");
  return plan;
}
)";
}

}  // namespace tuner
