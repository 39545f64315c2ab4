// The system's C++ compiler as a backend, for Host execution.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <thread>

#include "tuner/core/file.h"
#include "tuner/core/hash.h"
#include "tuner/device/host_device.h"
#include "tuner/jit/compile_service.h"
#include "tuner/jit/host_blame.h"
#include "tuner/jit/includes.h"
#include "tuner/jit/process.h"

namespace tuner {
namespace {

constexpr CompileLimits kProbeLimits{20, std::size_t{2} << 30};
constexpr int kProbes = 3;

constexpr std::uintmax_t kRoom = std::uintmax_t{64} << 20;  // for sources and an object

/// A folder of this process's own, removed with everything in it: below `parent` or, where none can be made there or
/// the disk is full, below /tmp, which the compiler needs anyway.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& parent) {
    std::error_code error;
    std::filesystem::create_directories(parent, error);
    const auto space = std::filesystem::space(parent, error);
    if (!error && space.available >= kRoom && made_below(std::filesystem::absolute(parent))) return;
    if (made_below("/tmp") || made_below(std::filesystem::absolute(parent))) return;
    throw EnvironmentError(parent.string() + ": no folder for the C++ compiler can be made there, nor below /tmp");
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  bool made_below(const std::filesystem::path& parent) {
    std::string pattern = (parent / "tuner-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return false;
    path_ = pattern;
    return true;
  }

  std::filesystem::path path_;
};

/// Removes what killed processes left in `scratch` more than a day ago.
void remove_leftovers(const std::filesystem::path& scratch) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (fs::directory_iterator at(scratch, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (fs::last_write_time(at->path(), ignored) < yesterday && !ignored) fs::remove_all(at->path(), ignored);
  }
}

void write_plainly(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  if (!(file << content << std::flush)) throw EnvironmentError(path.string() + ": cannot be written");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// How a question to a compiler ended; asked again where something else kept it from answering.
ProcessEnd ask(const std::vector<std::string>& arguments, const std::string& folder = {}) {
  ProcessEnd end = run_program(kProbeLimits, -1, arguments, folder);
  for (int again = 1; again < kProbes && !end.success() && disturbed(end); ++again) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    end = run_program(kProbeLimits, -1, arguments, folder);
  }
  return end;
}

/// First line of `<compiler> --version`; empty if there is no such compiler.
std::string version_of(const std::string& compiler) {
  const ProcessEnd end = ask({compiler, "--version"});
  return end.success() ? first_line(end.errors) : std::string{};
}

class HostBackend final : public CompileBackend {
 public:
  HostBackend(const CompilerOptions& options, std::string compiler, std::string version)
      : limits_(options.limits),
        scratch_(options.cache / "hosts" / "scratch"),
        compiler_(std::move(compiler)),
        version_(std::move(version)),
        flags_{"-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-ffp-contract=off", "-DCT1D_HOST_EXECUTION"} {
    remove_leftovers(scratch_);
    if (options.address_sanitizer) add_address_sanitizer();
  }

  std::string identity() const override { return version_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  std::string preload() const override { return preload_; }

  std::string key(const CompileUnit& unit) const override {
    const CompileUnit host = host_unit(unit);
    return compile_key(host, host_forms(host), "host", version_, fmt::format("{}", fmt::join(flags_, " ")));
  }

  Expected<Artefact> build(const CompileUnit& unit, int cancel) override {
    const CompileUnit host = host_unit(unit);
    const PrivateFolder folder(scratch_);
    std::vector<std::string> sources{"unit.cpp", "unit"};  // the latter by a #line of host_translation_unit
    write_plainly(folder.path() / sources[0], host.source);
    for (const auto& [name, content] : host_forms(host)) {
      write_plainly(folder.path() / name, content);
      sources.push_back(name);
    }

    const ProcessEnd end = run_program(limits_, cancel, command(folder.path(), unit.options), folder.path());
    const std::string log = without_folder(end.errors, folder.path());
    if (!end.success()) return blame(compiler_, end, limits_, log, sources);
    Artefact artefact;
    artefact.content = read_file(folder.path() / "unit.so");
    artefact.facts.compile_ms = end.seconds * 1000;
    artefact.facts.log = log;
    // The object's table (kernels/common/host_abi.h) names its entries by the name expressions themselves.
    for (const std::string& kernel : unit.kernels) artefact.facts.symbols.emplace_back(kernel, kernel);
    return artefact;
  }

 private:
  static CompileUnit host_unit(const CompileUnit& unit) {
    CompileUnit host = unit;
    host.source = host_translation_unit(unit);
    return host;
  }

  static Headers host_forms(const CompileUnit& host) {
    Headers headers = included_files(host.source);
    for (auto& [name, content] : headers) content = host_form_of_source(content);
    return headers;
  }

  /// Run in `folder`. Reports name files by their paths from the repository root, and the object does not tell which
  /// folder it was: the main file is given without it, since AddressSanitizer's descriptions ignore the prefix map.
  std::vector<std::string> command(const std::filesystem::path& folder, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments{compiler_};
    arguments.insert(arguments.end(), flags_.begin(), flags_.end());
    for (const std::string& option : options)
      if (option.rfind("-D", 0) == 0) arguments.push_back(option);  // the others are NVRTC's
    arguments.push_back("-ffile-prefix-map=" + folder.string() + "=.");
    arguments.push_back("-ffile-prefix-map=" + folder.string() + "/=");
    arguments.insert(arguments.end(), {"-I" + folder.string(), "unit.cpp", "-o", "unit.so"});
    return arguments;
  }

  static std::string without_folder(std::string text, const std::filesystem::path& folder) {
    const std::string prefix = folder.string() + "/";
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }

  bool is_clang() const { return version_.find("clang") != std::string::npos; }

  /// Only where the sanitizer's runtime is installed, as a trial shows.
  void add_address_sanitizer() {
    std::vector<std::string> flags{"-fsanitize=address", "-fno-omit-frame-pointer"};
    if (is_clang()) flags.emplace_back("-shared-libasan");
    const PrivateFolder folder(scratch_);
    write_plainly(folder.path() / "trial.cpp", "int trial(int* p) { return *p; }\n");
    std::vector<std::string> arguments{compiler_, "-shared", "-fPIC", "trial.cpp", "-o", "trial.so"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ProcessEnd trial;
    preload_ = sanitizer_runtime(trial);
    if (!preload_.empty()) trial = ask(arguments, folder.path());
    if (!preload_.empty() && trial.success()) {
      flags_.insert(flags_.end(), flags.begin(), flags.end());
      return;
    }
    preload_.clear();
    if (!trial.success() && disturbed(trial))
      warnings_.push_back(fmt::format("{} {} when asked for AddressSanitizer: Host execution ran without it", version_,
                                      describe(trial, kProbeLimits)));
    else
      warnings_.push_back(version_ + " has no AddressSanitizer: Host execution ran without it");
  }

  /// The runtime's shared library, as the compiler names it; empty if it has none. `last`: how its last answer ended.
  std::string sanitizer_runtime(ProcessEnd& last) const {
    utsname machine{};
    ::uname(&machine);
    const std::vector<std::string> names =
        is_clang()
            ? std::vector<std::string>{fmt::format("libclang_rt.asan-{}.so", machine.machine), "libclang_rt.asan.so"}
            : std::vector<std::string>{"libasan.so"};
    for (const std::string& name : names) {
      last = ask({compiler_, "-print-file-name=" + name});
      const std::string path = first_line(last.errors);
      if (last.success() && path.rfind('/', 0) == 0 && std::filesystem::exists(path)) return path;
    }
    return {};
  }

  CompileLimits limits_;
  std::filesystem::path scratch_;
  std::string compiler_;
  std::string version_;
  std::string preload_;
  std::vector<std::string> flags_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::unique_ptr<Compiler> make_host_compiler(const CompilerOptions& options, std::string compiler) {
  std::string version;
  const std::vector<std::string> candidates =
      compiler.empty() ? std::vector<std::string>{"c++", "g++", "clang++"} : std::vector<std::string>{compiler};
  for (const std::string& candidate : candidates) {
    version = version_of(candidate);
    if (version.empty()) continue;
    return std::make_unique<CompileService>(std::make_unique<HostBackend>(options, candidate, version),
                                            ArtifactCache(options.cache / "hosts", ".so"), options.jobs);
  }
  return nullptr;
}

}  // namespace tuner
