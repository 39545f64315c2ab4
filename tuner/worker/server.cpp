// The worker's side: opens the device and serves one request at a time.
#include <unistd.h>

#include <string>
#include <utility>

#include "baselines/baseline.h"
#include "tuner/device/cuda_device.h"
#include "tuner/device/host_device.h"
#include "tuner/worker/channel.h"
#include "tuner/worker/messages.h"
#include "tuner/worker/run_off.h"
#include "tuner/worker/vendor_routes.h"
#include "tuner/worker/workbench.h"

namespace tuner {
namespace {

namespace msg = messages;

/// "cuda:N", "host" or "host:SEED".
std::unique_ptr<Device> open_device(const std::string& name) {
  if (name.rfind("host", 0) == 0) {
    HostOptions options;
    if (const auto colon = name.find(':'); colon != std::string::npos)
      options.seed = std::stoull(name.substr(colon + 1));
    return make_host_device(options);
  }
  if (cuda_device_count() == 0 && cuda_unusable_reason().empty())
    throw NoDevice("the CUDA driver shows no device (CUDA_VISIBLE_DEVICES may hide it)");
  auto device = open_cuda_device(std::stoi(name.substr(name.find(':') + 1)));
  if (!device) throw EnvironmentError(device.failure().reason);
  return std::move(*device);
}

class Server {
 public:
  Server(int socket, const std::string& device) : bench_(socket, open_device(device)) {}

  /// To be called before a reply is sent: from then on nothing else is.
  void calm() { bench_.watchdog().calm(); }

  /// True when the device can no longer be trusted: the process ends after the reply.
  bool poisoned() const { return bench_.poisoned(); }

  Json answer(const Json& request) {
    const auto op = request.at("op").get<std::string>();
    if (op == "environment") return msg::from(environment());
    if (op == "support") return support(request);
    if (op == "load") return load(request);
    if (op == "evaluate") return evaluate(request);
    if (op == "baseline") return answer_baseline(bench_, baseline_unit_, request);
    if (op == "run_off") return answer_run_off(bench_, baseline_unit_, request);
    throw std::logic_error("request " + op);
  }

 private:
  /// The device's, with the versions of the vendor libraries that its baselines use.
  Environment environment() {
    Environment environment = bench_.device().environment();
    if (!bench_.device().is_cuda()) return environment;
    const auto version_of = [](std::string_view name) {
      const auto version = find_baseline(name)->version();
      return version ? *version : "not available: " + version.failure().reason;
    };
    environment.cudnn = version_of("cudnn");
    environment.cublas = version_of("cublas_shift_add");
    return environment;
  }

  Json support(const Json& request) {
    baseline_unit_ = msg::unit(request.at("baselines"));
    if (const auto failure = bench_.support(msg::unit(request.at("verify")), msg::unit(request.at("measure"))))
      return {{"failure", msg::from(*failure)}};
    return Json::object();
  }

  Json load(const Json& request) {
    const BuildContext context{msg::problem(request.at("problem")),
                               *parse_accuracy(request.at("class").get<std::string>()),
                               msg::device_facts(request.at("device"))};
    const auto error = bench_.load(context, [&](const CompiledUnit* kernels) {
      if (!request.contains("inputs"))
        return make_verifier(bench_.device(), context.problem, context.accuracy,
                             *parse_values(request.at("values").get<std::string>()),
                             request.at("seed").get<std::uint64_t>(), kernels);
      const Json& given = request["inputs"];
      Inputs inputs{given.at("x").get<std::vector<float>>(), given.at("w").get<std::vector<float>>(),
                    given.at("bias").get<std::vector<float>>()};
      return make_verifier(bench_.device(), context.problem, context.accuracy, std::move(inputs), kernels);
    });
    if (!error) return {{"failure", msg::from(error.failure())}};
    return {{"plain_error", *error}};
  }

  Json evaluate(const Json& request) {
    std::optional<MeasureOptions> options;
    if (request.contains("measure")) options = msg::measure_options(request["measure"]);
    return msg::from(bench_.evaluate(msg::variant(request.at("variant")), msg::unit(request.at("unit")),
                                     options ? &*options : nullptr, request.at("grace_seconds").get<double>()));
  }

  Workbench bench_;
  std::optional<CompiledUnit> baseline_unit_;
};

}  // namespace

int worker_main(int socket, const std::string& device) {
  std::optional<Server> server;
  try {
    server.emplace(socket, device);
  } catch (const NoDevice& none) {
    send_message(socket, {{"none", none.what()}});
    return 3;
  } catch (const std::exception& error) {
    send_message(socket, {{"fatal", error.what()}});
    return 3;
  }
  send_message(socket, {{"ready", true}});
  Json request;
  while (receive_message(socket, request, -1) == Received::message) {
    Json reply;
    try {
      reply = server->answer(request);
    } catch (const std::bad_alloc&) {
      reply = {{"failure", msg::from(Failure{Outcome::launch_failed, "out of memory", {}})}};
    } catch (const UsageError& error) {
      reply = {{"failure", msg::from(Failure{Outcome::wrong_result, error.what(), {}})}};
    } catch (const std::exception& error) {
      reply = {{"failure", msg::from(Failure{Outcome::crashed, error.what(), {}})}};
    }
    server->calm();
    if (!send_message(socket, reply)) return 0;
    if (server->poisoned()) _exit(0);  // destructors would call a driver that only returns errors now
  }
  return 0;
}

}  // namespace tuner
