// The real families under Host execution: right on odd shapes, and caught when something is taken out of them.
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "tests/host/host_fixture.h"
#include "tuner/family/family.h"
#include "tuner/verify/verify.h"

namespace tuner {
namespace {

using namespace host_test;
using testing::HasSubstr;

BuildContext context_of(const Problem& problem, Accuracy accuracy = Accuracy::fp32) {
  DeviceFacts device;
  device.name = "NVIDIA H200";
  device.arch = "sm_90a";
  device.compute_major = 9;
  device.sm_count = 132;
  device.shared_per_sm = 228 * 1024;
  device.shared_per_block_optin = 227 * 1024;
  return {problem, accuracy, device};
}

struct OddShape {
  const char* name;
  Problem problem;
};
void PrintTo(const OddShape& shape, std::ostream* out) { *out << shape.name; }

const OddShape kOddShapes[] = {
    {"one_of_everything", {1, 1, 1, 1, 1, 0, 0, 1, 1, false, 1}},
    {"seed_cut_short", {2, 40, 136, 3, 1, 1, 0, 1, 1, true, 203}},
    {"stride_longer_than_kernel", {1, 5, 7, 2, 3, 0, 1, 1, 1, true, 61}},
    {"vocoder", {2, 33, 17, 16, 8, 4, 0, 1, 1, true, 37}},
    {"grouped_and_dilated", {3, 12, 18, 5, 2, 3, 1, 3, 3, false, 50}},
    {"dilation_shares_a_factor_with_stride", {1, 4, 6, 4, 4, 5, 1, 6, 2, true, 41}},
    {"padding_eats_the_ends", {2, 6, 5, 7, 1, 6, 0, 1, 1, true, 19}},
    {"depthwise", {1, 9, 9, 4, 2, 1, 0, 1, 9, true, 77}},
    {"long_kernel", {1, 2, 3, 91, 5, 11, 2, 1, 1, false, 29}},
    {"one_sample_in", {2, 3, 4, 6, 2, 0, 1, 2, 1, true, 1}},
    {"grouped_and_dilated_at_stride_one", {2, 12, 18, 5, 1, 3, 0, 3, 3, false, 300}},
    {"dilated_by_four", {2, 40, 100, 3, 1, 5, 0, 4, 1, true, 301}},
    {"dilated_by_thirty", {1, 17, 9, 2, 1, 1, 0, 30, 1, false, 600}},
    {"rows_of_whole_pieces", {1, 20, 24, 3, 1, 2, 0, 1, 1, true, 600}},
};

/// Verifies a program against the float64 reference.
Expected<Errors> verify_on_host(const Problem& problem, const Program& program, const CompiledUnit& unit,
                                std::uint64_t seed, Accuracy accuracy = Accuracy::fp32,
                                Values values = Values::normal) {
  const auto device = make_host_device({seed, 2});
  auto verifier = make_verifier(*device, problem, accuracy, values, seed);
  if (!verifier) return verifier.failure();
  auto runnable = make_runnable(*device, problem, program, unit, "family");
  if (!runnable) return runnable.failure();
  return (*verifier)->verify(**runnable);
}

class HostFamilies : public testing::TestWithParam<std::tuple<std::string, OddShape>> {};

/// Each family on the shapes that it serves; `direct` and `tiled` serve all, which the test of each asserts.
std::vector<std::tuple<std::string, OddShape>> served() {
  std::vector<std::tuple<std::string, OddShape>> all;
  for (const std::string name :
       {"depthwise", "direct", "mma", "tiled", "wgmma", "wgmma_fused", "wgmma_packed", "wgmma_shared"})
    for (const OddShape& shape : kOddShapes)
      if (!find_family(name)->refuses(context_of(shape.problem))) all.emplace_back(name, shape);
  return all;
}

TEST_P(HostFamilies, ComputeTheTransposedConvolution) {
  const auto& [name, shape] = GetParam();
  const BuildContext context = context_of(shape.problem);
  const Family* family = find_family(name);
  ASSERT_NE(family, nullptr);
  ASSERT_FALSE(family->refuses(context)) << *family->refuses(context);
  for (const Configuration& configuration :
       {family->default_configuration(context), family->general_configuration(context)}) {
    const Program program = family->build(context, configuration);
    const auto unit = kernels(false).compile(program.unit);
    ASSERT_TRUE(unit) << unit.failure().reason << "\n" << unit.failure().log;
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      const auto errors = verify_on_host(shape.problem, program, *unit, seed);
      EXPECT_TRUE(errors) << to_string(configuration) << ": " << errors.failure().reason;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostFamilies, testing::ValuesIn(served()),
                         [](const auto& each) { return std::get<0>(each.param) + "_" + std::get<1>(each.param).name; });

/// Long strips of tiles in rows that lie between 8 bytes: what a tile carries to the next, pairs across lanes.
TEST(HostFamiliesOfWgmmaShared, StoresRowsOfOddLengthByStrips) {
  const Problem problem{2, 20, 70, 3, 1, 1, 0, 1, 1, true, 1001};
  const Family* family = find_family("wgmma_shared");
  const BuildContext context = context_of(problem);
  for (const Configuration& configuration :
       {family->default_configuration(context), family->general_configuration(context)}) {
    Program program = family->build(context, configuration);
    program.run.back().shape.grid_x = 2;
    const auto unit = kernels(false).compile(program.unit);
    ASSERT_TRUE(unit) << unit.failure().reason << "\n" << unit.failure().log;
    const auto errors = verify_on_host(problem, program, *unit, 1);
    EXPECT_TRUE(errors) << to_string(configuration) << ": " << errors.failure().reason;
  }
}

/// A family's program for a problem that keeps every barrier busy: several channel tiles, several tiles a block.
struct Subject {
  explicit Subject(const std::string& family, Accuracy of = Accuracy::fp32, const Configuration& changes = {},
                   const Problem& computed = {2, 70, 20, 3, 1, 1, 0, 1, 1, true, 300})
      : problem(computed), accuracy(of), file("kernels/" + family + "/kernel.cuh"), source(embedded_source(file)) {
    const BuildContext context = context_of(problem, accuracy);
    Configuration configuration = find_family(family)->general_configuration(context);
    for (auto& [key, value] : configuration)
      if (key == "blocks") value = kBlocks;
    for (auto& [key, value] : configuration)
      for (const auto& [name, changed] : changes)
        if (key == name) value = changed;
    program = find_family(family)->build(context, configuration);
    program.run.back().shape.grid_x = kBlocks;
    whole = program.unit.source;
  }
  /// The program's unit over a changed kernel.cuh, whose lines keep their names.
  CompileUnit unit_with(const std::string& changed) const {
    CompileUnit unit = program.unit;
    const std::string include = "#include \"" + file + "\"";
    const std::size_t at = whole.find(include);
    EXPECT_NE(at, std::string::npos) << whole;
    unit.source.replace(at, include.size(), "#line 1 \"" + file + "\"\n" + changed);
    return unit;
  }
  /// The kernel's source with the n-th occurrence of `what` replaced.
  std::string replaced(const std::string& what, const std::string& by, int occurrence = 0) const {
    return host_test::replaced(source, what, by, occurrence);
  }
  int count(const std::string& what) const {
    int found = 0;
    for (std::size_t at = source.find(what); at != std::string::npos; at = source.find(what, at + 1)) ++found;
    return found;
  }

  static constexpr std::int64_t kBlocks = 2;
  Problem problem;
  Accuracy accuracy;
  std::string file, source, whole;
  Program program;
};

enum Ending { right = 3, reported = 4, wrong_result = 5 };

/// How a run of the unit ends, in a process of its own, since garbage out of a race may be used as an address.
int ending_of(const Subject& subject, const CompileUnit& unit, std::uint64_t seed, Values values = Values::normal) {
  const auto compiled = kernels(false).compile(unit);
  EXPECT_TRUE(compiled) << compiled.failure().reason << "\n" << compiled.failure().log;
  if (!compiled) return right;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const auto errors = verify_on_host(subject.problem, subject.program, *compiled, seed, subject.accuracy, values);
    _exit(errors ? right : errors.failure().outcome == Outcome::wrong_result ? wrong_result : reported);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class HostFamilyFaults : public testing::TestWithParam<std::string> {};

TEST_P(HostFamilyFaults, EveryRemovedBarrierIsCaughtWithEverySeed) {
  const Subject subject(GetParam());
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    EXPECT_EQ(ending_of(subject, subject.unit_with(subject.source), seed), right);
  ASSERT_GE(subject.count("__syncthreads();"), 2);
  for (int i = 0; i < subject.count("__syncthreads();"); ++i) {
    const CompileUnit unit = subject.unit_with(subject.replaced("__syncthreads();", "", i));
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_NE(ending_of(subject, unit, seed), right) << "barrier " << i << ", seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostFamilyFaults, testing::Values("direct", "tiled"),
                         [](const auto& each) { return each.param; });

TEST(HostFamilyFaultsOfTiled, AMissingOrLateWaitForCopiesIsCaught) {
  const Subject subject("tiled");
  for (const char* by : {"", "copy_wait<STAGES - 1>();"}) {
    const CompileUnit unit = subject.unit_with(subject.replaced("copy_wait<STAGES - 2>();", by));
    for (std::uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(ending_of(subject, unit, seed), wrong_result) << by;
  }
}

/// Something taken out of a file of a family, or of another's that it shares: "wgmma_packed/store.cuh".
struct Cut {
  const char *file, *what, *by;
};

/// `file`, of the family in folder `own` or shared by it, with families' .cuh files in the place of their includes, and
/// the cut made.
std::string whole_source(const std::string& own, const std::string& file, const Cut& cut, std::set<std::string>& seen) {
  const std::string text(embedded_source(file));
  const std::string name =
      std::string(cut.file).find('/') == std::string::npos ? own + cut.file : std::string("kernels/") + cut.file;
  std::istringstream lines(file == name ? host_test::replaced(text, cut.what, cut.by) : text);
  std::string whole;
  for (std::string line; std::getline(lines, line);) {
    const bool common = line.starts_with("#include \"kernels/common/");
    if (common || !line.starts_with("#include \"kernels/") || !line.ends_with(".cuh\"")) {
      whole += line + "\n";
      continue;
    }
    const std::string included = line.substr(10, line.size() - 11);
    if (seen.insert(included).second) whole += whole_source(own, included, cut, seen);
  }
  return whole;
}

CompileUnit unit_of(const Subject& subject, const Cut& cut, const Cut& other) {
  std::set<std::string> seen;
  const std::string own = subject.file.substr(0, subject.file.rfind('/') + 1);
  return subject.unit_with(host_test::replaced(whole_source(own, subject.file, cut, seen), other.what, other.by));
}

/// A family is right as it is, and caught with every seed with each of the cuts. `repair`: how its kernel calls the
/// exact path; `without`: what stands there without it.
void expect_caught(const Subject& subject, const std::string& repair, const std::vector<Cut>& cuts,
                   const std::string& without = ";") {
  // Without the exact path: it does again what poison, a NaN, got into.
  const auto unit_with = [&](const Cut& cut) { return unit_of(subject, cut, {"", repair.c_str(), without.c_str()}); };
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    EXPECT_EQ(ending_of(subject, unit_with({"kernel.cuh", "", ""}), seed), right);
  for (const Cut& cut : cuts) {
    const CompileUnit unit = unit_with(cut);
    for (std::uint64_t seed = 1; seed <= 2; ++seed)
      EXPECT_NE(ending_of(subject, unit, seed), right) << cut.file << ": " << cut.what << ", seed " << seed;
  }
}
constexpr const char* kSharedRepair = "repair<I>(a, tiles, shared, warp);";

/// What keeps asynchronous copies, products and their readers apart in `wgmma`, each taken out. (Not the kernel's one
/// __syncthreads() and the wait for weights: no thread runs ahead far enough, and no load stays out long enough.)
TEST(HostFamilyFaultsOfWgmma, EveryMissingFenceWaitAndArrivalIsCaught) {
  const std::vector<Cut> cuts = {
      {"kernel.cuh", "barrier_init_fence();", ""},
      {"kernel.cuh", "        matrix_wait<0>();\n        promote<0>(s0", "        promote<0>(s0"},
      {"kernel.cuh", "        matrix_wait<0>();\n        promote<0>(s1", "        promote<0>(s1"},
      {"kernel.cuh", "if (lane_of_warp() == 0) barrier_arrive(empty_barrier(weight_barriers",
       "if (false) barrier_arrive(empty_barrier(weight_barriers"},
      {"products.cuh", "  matrix_fence();", ""},
      {"products.cuh", "  matrix_commit();", ""},
      {"fragments.cuh", "barrier_wait(full, parity);", ""},
      {"fragments.cuh", "barrier_arrive(empty);", ";"},
      {"feed.cuh", "barrier_wait(empty_barrier(shared + I::kShared.weight_barriers, s.slot), (s.round - 1) & 1);", ""},
      {"feed.cuh", "barrier_arrive_after_copies(full);", "barrier_arrive(full);"}};
  expect_caught(Subject("wgmma"), "repair<I>(a, shared, consumer);", cuts);
}

/// The same of `wgmma_shared`. (Not the producers' __syncwarp() either: no lane is left behind for so long.)
TEST(HostFamilyFaultsOfWgmmaShared, EveryMissingFenceWaitAndArrivalIsCaught) {
  const std::vector<Cut> cuts = {
      {"kernel.cuh", "barrier_init_fence();", ""},
      {"consume.cuh", "barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);",
       ""},
      {"consume.cuh", "if (one_lane()) barrier_arrive(empty_barrier", "if (false) barrier_arrive(empty_barrier"},
      {"consume.cuh", "      matrix_wait<1>();\n      c.release(it - 1);\n      promote(sum, high",
       "      c.release(it - 1);\n      promote(sum, high"},
      {"consume.cuh", "    matrix_wait<1>();\n    promote(sum, cross", "    promote(sum, cross"},
      {"consume.cuh", "    matrix_wait<0>();\n    c.release(first + I::kTileStages - 1);\n    promote(sum, high",
       "    c.release(first + I::kTileStages - 1);\n    promote(sum, high"},
      {"products.cuh", "  matrix_fence();", ""},
      {"products.cuh", "  matrix_commit();", ""},
      {"produce.cuh", "async_proxy_fence();", ""},
      {"produce.cuh", "barrier_wait(empty_barrier(shared + I::kShared.barriers, slot), (it / I::kStages - 1) & 1);",
       ";"},
      {"produce.cuh", "if (one_lane()) barrier_arrive(full", "if (false) barrier_arrive(full"}};
  expect_caught(Subject("wgmma_shared"), kSharedRepair, cuts);
}

/// What only operands of 16 bits go through.
TEST(HostFamilyFaultsOfWgmmaShared, EveryMissingFenceWaitAndArrivalOf16BitsIsCaught) {
  const std::string end = "    async_proxy_fence();\n    __syncwarp();\n    if (one_lane()) barrier_arrive(full";
  const std::string halo = "I::kStageSteps + i, to);\n      }\n    }\n";
  const std::string wait =
      "barrier_wait(empty_barrier(shared + I::kShared.barriers, slot), (it / I::kStages - 1) & 1);\n";
  const std::string save = "    if (it % I::kTileStages == 0 && one_lane()) {\n";
  const std::string last = "    c.release(first + I::kTileStages - 1);\n    gather";
  const std::string other = "        c.release(it - 1);\n      }\n      if (n > 0) {";
  const std::string fenced = halo + end, waited = wait + save, done = "    matrix_wait<0>();\n" + last,
                    one_left = "        matrix_wait<1>();\n" + other, empty = ";\n" + save,
                    silent = halo + "    async_proxy_fence();\n    __syncwarp();\n    if (false) barrier_arrive(full",
                    unfenced = halo + "    __syncwarp();\n    if (one_lane()) barrier_arrive(full";
  expect_caught(Subject("wgmma_shared", Accuracy::fp16), kSharedRepair,
                {{"produce.cuh", fenced.c_str(), unfenced.c_str()},
                 {"produce.cuh", fenced.c_str(), silent.c_str()},
                 {"produce.cuh", waited.c_str(), empty.c_str()},
                 {"consume.cuh", done.c_str(), last.c_str()},
                 {"consume.cuh", one_left.c_str(), other.c_str()}});
}

/// The same of `wgmma_packed`.
TEST(HostFamilyFaultsOfWgmmaPacked, EveryMissingFenceWaitAndArrivalIsCaught) {
  const std::vector<Cut> cuts = {
      {"kernel.cuh", "barrier_init_fence();", ""},
      {"kernel.cuh",
       "barrier_wait(empty_barrier(shared + I::kShared.barriers, static_cast<int>(slot)), (it / I::kStages - 1) & 1);",
       ""},
      {"products.cuh",
       "barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);", ""},
      {"products.cuh", "if (one_lane()) barrier_arrive(empty_barrier", "if (false) barrier_arrive(empty_barrier"},
      {"products.cuh", "  matrix_wait<1>();\n  promote(sum, cross", "  promote(sum, cross"},
      {"products.cuh", "  matrix_wait<0>();\n  s.release(first + I::kGroup - 1);\n  promote(sum, high",
       "  s.release(first + I::kGroup - 1);\n  promote(sum, high"},
      {"products.cuh", "  matrix_fence();", ""},
      {"products.cuh", "  matrix_commit();", ""},
      {"store.cuh", "    if (chunk > 0) consumer_barrier<I>(consumer);  // all have stored the chunk before\n", ""},
      {"store.cuh", "  consumer_barrier<I>(consumer);\n#pragma unroll\n  for (int chunk",
       "#pragma unroll\n  for (int chunk"},
      {"store.cuh", "    consumer_barrier<I>(consumer);\n    store_chunk", "    store_chunk"},
      {"pack_x.cuh", "  __syncthreads();\n  const int group", "  const int group"}};
  expect_caught(Subject("wgmma_packed"), "repair<I>(a, shared, consumer);", cuts);
}

/// What keeps the blocks of a cluster apart.
TEST(HostFamilyFaultsOfWgmmaPacked, WhatBlocksOfAClusterMissOfEachOtherIsCaught) {
  const std::string first =
      "    cluster_arrive();  // none reaches another block's barriers before they are there\n    cluster_wait();";
  const std::vector<Cut> cuts = {
      {"kernel.cuh", first.c_str(), "    __syncthreads();"},
      {"kernel.cuh", "barrier_init_fence();", ""},
      {"kernel.cuh", "CLUSTER * kConsumers * 4", "kConsumers * 4"},
      {"kernel.cuh",
       "barrier_wait(empty_barrier(shared + I::kShared.barriers, static_cast<int>(slot)), (it / I::kStages - 1) & 1);",
       ""},
      {"kernel.cuh", "(1u << I::kCluster) - 1", "1"},
      {"products.cuh", "if (rank < static_cast<int>(I::kCluster))", "if (rank < 1)"},
      {"products.cuh", "if (rank < static_cast<int>(I::kCluster))", "if (rank == static_cast<int>(blockIdx.x))"},
      {"products.cuh",
       "barrier_wait(full_barrier(shared + I::kShared.barriers, it % I::kStages), it / I::kStages & 1);", ""}};
  const Configuration changes{{"cluster", std::int64_t{2}}, {"band", std::int64_t{2}}};
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16})
    expect_caught(Subject("wgmma_packed", accuracy, changes), "repair<I>(a, shared, consumer);", cuts);
  // A block's last arrival at another comes too late with some seeds only.
  const Subject subject("wgmma_packed", Accuracy::fp32, changes);
  const std::string last =
      "    cluster_arrive();  // none ends while another may still write to it or arrive there\n    cluster_wait();";
  const CompileUnit unit = subject.unit_with(subject.replaced(last, ""));
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) caught += ending_of(subject, unit, seed) == reported ? 1 : 0;
  EXPECT_GT(caught, 0);
}

/// The same of `wgmma_fused`. (Not the __syncwarp() of the warps that convert, nor the block's __syncthreads(): no lane
/// and no warp is left behind for so long. Nor when registers change hands, which the CPU has of its own.)
class HostFamilyFaultsOfWgmmaFused : public testing::Test {
 protected:
  static void expect_all_caught(const Subject& of, const std::vector<Cut>& cuts) {
    expect_caught(of, kExactPath.what, cuts, kExactPath.by);
  }
  static constexpr Cut kExactPath{"kernel.cuh",
                                  "      repair<I>(a, shared, 0);\n    } else {\n      consume<I>(a, shared, 1);\n"
                                  "      repair<I>(a, shared, 1);\n",
                                  "    } else {\n      consume<I>(a, shared, 1);\n"};
  static constexpr Cut kWaitForWeights{
      "consume.cuh",
      "barrier_wait(full_barrier(shared + I::kShared.weight_barriers, "
      "static_cast<int>(w.slot())),\n                   I::kResident ? 0 : w.parity());",
      ""};
  static constexpr Cut kWaitForImages{
      "consume.cuh",
      "barrier_wait(full_barrier(shared + I::kShared.image_barriers, static_cast<int>(i.slot())), i.parity());", ""};
  static constexpr Cut kReleaseImages{"consume.cuh", "barrier_arrive(empty_barrier(shared + I::kShared.image_barriers",
                                      "if (false) barrier_arrive(empty_barrier(shared + I::kShared.image_barriers"};
  static constexpr Cut kWaitForSlot{
      "produce.cuh", "barrier_wait(empty_barrier(barriers, static_cast<int>(slot)), (image / I::kStages - 1) & 1);",
      ""};
};

TEST_F(HostFamilyFaultsOfWgmmaFused, EveryMissingFenceWaitAndArrivalIsCaught) {
  expect_all_caught(
      Subject("wgmma_fused"),
      {{"kernel.cuh", "barrier_init_fence();", ""},
       kWaitForWeights,
       kWaitForImages,
       kReleaseImages,
       kWaitForSlot,
       {"consume.cuh", "barrier_arrive(empty_barrier(shared + I::kShared.weight_barriers",
        "if (false) barrier_arrive(empty_barrier(shared + I::kShared.weight_barriers"},
       {"consume.cuh", "  bulk_wait<0>();", ""},
       {"produce.cuh", "    async_proxy_fence();\n", ""},
       {"produce.cuh", "if (one_lane()) barrier_arrive(full", "if (false) barrier_arrive(full"},
       {"produce.cuh", "barrier_wait(empty_barrier(barriers, static_cast<int>(slot)), (it / I::kWeightSlots - 1) & 1);",
        ""},
       {"wgmma_packed/products.cuh", "  matrix_wait<1>();\n  promote(sum, cross", "  promote(sum, cross"},
       {"wgmma_packed/products.cuh", "  matrix_wait<0>();\n  s.release(first + I::kGroup - 1);\n  promote(sum, high",
        "  s.release(first + I::kGroup - 1);\n  promote(sum, high"},
       {"wgmma_packed/products.cuh", "  matrix_fence();", ""},
       {"wgmma_packed/products.cuh", "  matrix_commit();", ""},
       {"store.cuh", "    bulk_wait_read<0>();\n", ""},
       {"store.cuh", "    consumer_barrier<I>(consumer);  // all have left what is written now\n", ""},
       {"store.cuh", "    async_proxy_fence();\n", ""},
       {"store.cuh", "    consumer_barrier<I>(consumer);\n    store_runs", "    store_runs"}});
}

/// What operands of 16 bits go through. (Not the wait for images: nothing converts them, so that they are mostly there
/// before their weights.)
TEST_F(HostFamilyFaultsOfWgmmaFused, EveryMissingFenceWaitAndArrivalOf16BitsIsCaught) {
  expect_all_caught(
      Subject("wgmma_fused", Accuracy::fp16),
      {kWaitForWeights,
       kReleaseImages,
       kWaitForSlot,
       {"produce.cuh", "    async_proxy_fence();\n", ""},
       {"wgmma_packed/products.cuh", "      matrix_wait<1>();\n", ""},
       {"wgmma_packed/products.cuh", "  matrix_wait<0>();\n  s.release(first + I::kGroup - 1);\n  promote(sum, d",
        "  s.release(first + I::kGroup - 1);\n  promote(sum, d"},
       {"store.cuh", "    bulk_wait_read<0>();\n", ""},
       {"store.cuh", "    async_proxy_fence();\n", ""}});
}

/// Images that stay for the next group of rows.
TEST_F(HostFamilyFaultsOfWgmmaFused, WhatSeveralGroupsOfRowsMissIsCaught) {
  const Problem problem{2, 40, 150, 3, 1, 1, 0, 1, 1, true, 300};  // 3 panels: 2 groups of rows
  const Configuration streamed{{"rows", std::int64_t{128}}, {"passes", std::int64_t{2}}};
  Configuration resident = streamed;
  resident.emplace_back("weights", std::int64_t{0});
  for (const Accuracy accuracy : {Accuracy::fp32, Accuracy::fp16}) {
    expect_all_caught(Subject("wgmma_fused", accuracy, streamed, problem),
                      {kWaitForWeights, kReleaseImages, kWaitForSlot, {"consume.cuh", "    if (last) {\n", "    {\n"}});
    expect_all_caught(Subject("wgmma_fused", accuracy, resident, problem),
                      {kWaitForWeights, kReleaseImages, kWaitForSlot});
  }
}

/// Without the meeting of the warps that convert first, one may scale by less than all of the others' data: steps of 16
/// and of 1 channel of 5 positions, in one sum. With some seeds only: the first has mostly seen the largest value.
TEST_F(HostFamilyFaultsOfWgmmaFused, ConvertersThatDoNotMeetAreCaught) {
  const Subject of("wgmma_fused", Accuracy::fp32, {}, {2, 17, 20, 3, 1, 1, 0, 1, 1, true, 5});
  const CompileUnit unit =
      unit_of(of, {"produce.cuh", "    numbered_barrier<32 * I::kConverters>(4);\n", ""}, {"kernel.cuh", "", ""});
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(ending_of(of, of.unit_with(of.source), seed), right);
    caught += ending_of(of, unit, seed) == wrong_result ? 1 : 0;
  }
  EXPECT_GT(caught, 0);
}

/// Outputs are done again after their stores have left; with some seeds only these are late. (Not that the other warps'
/// stores have: none is left behind from a tile's last barrier to here.)
TEST_F(HostFamilyFaultsOfWgmmaFused, OutputsDoneAgainTooEarlyAreCaught) {
  const Subject of("wgmma_fused", Accuracy::fp32, {{"rows", std::int64_t{128}}});
  const auto wrong = [&](const Cut& cut) {
    int count = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed)
      count += ending_of(of, unit_of(of, cut, {"", "", ""}), seed, Values::patches) == right ? 0 : 1;
    return count;
  };
  EXPECT_EQ(wrong({"kernel.cuh", "", ""}), 0);
  EXPECT_EQ(wrong(kExactPath), 6) << "the data needs it";
  EXPECT_GT(wrong({"consume.cuh", "  bulk_wait<0>();", ""}), 0);
}

/// Output of a run under the sanitizer of the family with `what` in its kernel replaced; it must end in a report.
std::string report_of(const std::string& family, const std::string& what, const std::string& by) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_NE(end.status, 0);
    return end.output;
  }
  const Subject subject(family);
  const auto unit = kernels(true).compile(subject.unit_with(subject.replaced(what, by)));
  if (!unit) {
    ADD_FAILURE() << unit.failure().log;
  } else {
    const auto errors = verify_on_host(subject.problem, subject.program, *unit, 1);
    ADD_FAILURE() << "no report" << (errors ? "" : ": " + errors.failure().reason);
  }
  std::exit(0);
}

std::string line_of(const Subject& subject, const std::string& what) {
  const std::size_t at = subject.source.find(what);
  const auto lines = std::count(subject.source.begin(), subject.source.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return subject.file + ":" + std::to_string(lines + 1);
}

TEST(HostFamilyFaultsUnderSanitizer, AReadPastTheTileOfDirectIsLocated) {
  const std::string row = "w_tile + (ic * OC_TILE + oc) * p.taps";
  const std::string report = report_of("direct", row, "w_tile + (ic * OC_TILE + oc + 1) * p.taps");
  EXPECT_THAT(report, HasSubstr("READ of size 4"));
  EXPECT_THAT(report, HasSubstr(line_of(Subject("direct"), "to_float(x[position]) * to_float(w[j])")));
  EXPECT_THAT(report, HasSubstr("past the end of its"));
}

TEST(HostFamilyFaultsUnderSanitizer, AReadPastTheTileOfTiledIsLocated) {
  const std::string piece = "row + (piece * I::kBlockY + ty)";
  const std::string report = report_of("tiled", piece, "row + (piece * I::kBlockY + ty + 4)");
  EXPECT_THAT(report, HasSubstr("READ of size"));
  EXPECT_THAT(report, HasSubstr(line_of(Subject("tiled"), piece)));
  EXPECT_THAT(report, HasSubstr("past the end of its"));
}

TEST(HostFamilyFaultsUnderSanitizer, FamiliesRunWithoutAReport) {
  if (!under_sanitizer()) {
    const ChildEnd end = run_under_sanitizer();
    EXPECT_EQ(end.status, 0) << end.output;
    EXPECT_THAT(end.output, HasSubstr("1 test"));
    return;
  }
  for (const char* family : {"direct", "tiled", "wgmma", "wgmma_fused", "wgmma_packed", "wgmma_shared"}) {
    const Subject subject(family);
    const auto unit = kernels(true).compile(subject.program.unit);
    ASSERT_TRUE(unit) << unit.failure().log;
    const auto errors = verify_on_host(subject.problem, subject.program, *unit, 1);
    EXPECT_TRUE(errors) << family << ": " << errors.failure().reason;
  }
}

}  // namespace
}  // namespace tuner
