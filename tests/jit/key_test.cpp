#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tuner/jit/cache.h"
#include "tuner/jit/includes.h"
#include "tuner/jit/jit.h"

namespace tuner {
namespace {

using Files = std::map<std::string, std::string, std::less<>>;

HeaderLookup lookup_in(const Files& files) {
  return [&files](std::string_view path) -> std::string_view {
    const auto at = files.find(path);
    return at == files.end() ? std::string_view{} : std::string_view{at->second};
  };
}

std::string key_with(const Files& files, const CompileUnit& unit) {
  return compile_key(unit, included_files(unit.source, lookup_in(files)), "sm_90a", "NVRTC 13.0", "");
}

TEST(IncludedFiles, AreFoundThroughOtherFilesInEveryWayOfWriting) {
  const Files files{{"kernels/a.cuh", "#pragma once\n  #  include <kernels/b.h>\n"},
                    {"kernels/b.h", "#include \"kernels/a.cuh\"  // a cycle\r\nint b;"},
                    {"kernels/last.h", "int last;"},
                    {"kernels/unused.h", "int unused;"}};
  const Headers headers = included_files(
      "#include \"kernels/a.cuh\"\n#include <not_available.h>\n// #include \"kernels/unused.h\"\n"
      "#include \"kernels/last.h\"",
      lookup_in(files));
  std::vector<std::string> names;
  for (const auto& [name, content] : headers) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"kernels/a.cuh", "kernels/b.h", "kernels/last.h"}));
  EXPECT_EQ(headers[2].second, "int last;");
}

TEST(IncludedFiles, OfTheProgramAreItsOwnCopies) {
  const Headers headers = included_files("#include \"kernels/common/geometry.h\"\n");
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_NE(headers[0].second.find("struct Geometry"), std::string::npos);
  EXPECT_EQ(embedded_source("kernels/common/geometry.h"), headers[0].second);
  EXPECT_TRUE(embedded_source("kernels/common/none.h").empty());
}

// H26
TEST(CompileKey, ChangesWithAConstantInAnIncludedHeader) {
  const CompileUnit unit{"#include \"a.h\"\n", {"k"}, {}};
  const Files before{{"a.h", "#include \"b.h\"\n"}, {"b.h", "constexpr int n = 1;"}};
  Files after = before;
  after["b.h"] = "constexpr int n = 2;";
  EXPECT_EQ(key_with(before, unit), key_with(Files(before), unit));
  EXPECT_NE(key_with(before, unit), key_with(after, unit));
}

TEST(CompileKey, IgnoresFilesThatAreNotIncluded) {
  const CompileUnit unit{"#include \"a.h\"\n", {"k"}, {}};
  EXPECT_EQ(key_with({{"a.h", "int a;"}}, unit), key_with({{"a.h", "int a;"}, {"b.h", "int b;"}}, unit));
}

// H17, H19
TEST(CompileKey, ChangesWithEverythingThatAffectsTheCode) {
  const CompileUnit unit{"source", {"kernel<1>"}, {"-DX=1"}};
  const auto key = [](const CompileUnit& u, const char* arch, const char* compiler, const char* extra) {
    return compile_key(u, arch, compiler, extra);
  };
  std::vector<std::string> keys{key(unit, "sm_90a", "NVRTC 13.0", "x")};
  keys.push_back(key(unit, "sm_90", "NVRTC 13.0", "x"));
  keys.push_back(key(unit, "sm_120", "NVRTC 13.0", "x"));
  keys.push_back(key(unit, "sm_121", "NVRTC 13.0", "x"));
  keys.push_back(key(unit, "sm_90a", "NVRTC 12.9", "x"));
  keys.push_back(key(unit, "sm_90a", "NVRTC 13.0", "y"));
  keys.push_back(key({"source ", {"kernel<1>"}, {"-DX=1"}}, "sm_90a", "NVRTC 13.0", "x"));
  keys.push_back(key({"source", {"kernel<2>"}, {"-DX=1"}}, "sm_90a", "NVRTC 13.0", "x"));
  keys.push_back(key({"source", {"kernel<1>"}, {"-DX=2"}}, "sm_90a", "NVRTC 13.0", "x"));
  keys.push_back(key({"source", {"kernel<1>", "-DX=1"}, {}}, "sm_90a", "NVRTC 13.0", "x"));
  keys.push_back(key({"source", {}, {"kernel<1>", "-DX=1"}}, "sm_90a", "NVRTC 13.0", "x"));
  const std::set<std::string> different(keys.begin(), keys.end());
  EXPECT_EQ(different.size(), keys.size());
}

}  // namespace
}  // namespace tuner
