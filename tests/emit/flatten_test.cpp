#include "tuner/emit/flatten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tuner {
namespace {

using testing::ElementsAre;

const EmbeddedFiles kFiles{
    {"kernels/common/a.h", "// a\n#pragma once\n#define A_MACRO(x) x\nint a;\n"},
    {"kernels/f/b.h", "#pragma once\n#include <cuda_fp16.h>\n#include \"kernels/common/a.h\"\nint b;\n"},
    {"kernels/f/host.cuh",
     "#pragma once\n#if defined(CT1D_HOST_EXECUTION)\n#include \"kernels/none.h\"\n#if X\nint hx;\n#else\nint "
     "hy;\n#endif\n"
     "#else\n#if Y\nint y;\n#else\nint z;\n#endif\n#endif\n#if !defined(CT1D_HOST_EXECUTION)\nint device;\n#endif\nint "
     "end;"}};

TEST(Flatten, PutsEachFileOnceBeforeWhatIncludesIt) {
  const Flattened flat = flatten(
      {"#include \"kernels/f/b.h\"\n#include \"kernels/common/a.h\"\nint unit;\n", "#include \"kernels/common/a.h\"\n"},
      kFiles);
  EXPECT_EQ(flat.text, "// a\n#define A_MACRO(x) x\nint a;\nint b;\nint unit;\n");
  EXPECT_THAT(flat.files, ElementsAre("kernels/f/b.h", "kernels/common/a.h"));
  EXPECT_THAT(flat.system, ElementsAre("#include <cuda_fp16.h>"));
  EXPECT_THAT(flat.macros, ElementsAre("A_MACRO"));
}

TEST(Flatten, LeavesOutHostExecutionAndKeepsOtherConditions) {
  EXPECT_EQ(flatten({"#include \"kernels/f/host.cuh\"\n"}, kFiles).text,
            "#if Y\nint y;\n#else\nint z;\n#endif\nint device;\nint end;\n");
}

TEST(Flatten, NamesAnIncludeThatItLacks) {
  EXPECT_THROW(flatten({"#include \"kernels/none.h\"\n"}, kFiles), std::logic_error);
}

}  // namespace
}  // namespace tuner
