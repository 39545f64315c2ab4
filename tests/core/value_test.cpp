#include "tuner/core/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tuner/core/accuracy.h"
#include "tuner/core/failure.h"
#include "tuner/core/hash.h"

namespace tuner {
namespace {

TEST(Value, PrintsAsAPersonWouldWriteIt) {
  EXPECT_EQ(to_string(Value{std::int64_t{128}}), "128");
  EXPECT_EQ(to_string(Value{Block{32, 8}}), "32x8");
  EXPECT_EQ(to_string(Value{std::string("shuffle")}), "shuffle");
  EXPECT_EQ(to_string(Configuration{{"T", std::int64_t{128}}, {"block", Block{32, 8}}}), "T=128 block=32x8");
}

TEST(Value, IdentityIsStableAndTellsVariantsApart) {
  const Variant variant{"direct", {{"T", std::int64_t{128}}, {"block", Block{32, 8}}}};
  EXPECT_EQ(id_of(variant), "direct-" + sha256("direct T=128 block=32x8").substr(0, 10));
  std::set<std::string> ids;
  for (const std::int64_t t : {64, 128, 256})
    for (const char* family : {"direct", "tiled"}) ids.insert(id_of({family, {{"T", t}}}));
  EXPECT_EQ(ids.size(), 6u);
}

TEST(Hash, AgreesWithThePublishedVectors) {  // FIPS 180-2, appendix B
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Outcome, NamesAreThoseOfTheResultFile) {
  const std::vector<std::string> names{"ok",        "rejected", "compile_failed", "launch_failed", "wrong_result",
                                       "timed_out", "crashed",  "implausible",    "cut",           "unproven"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(to_string(static_cast<Outcome>(i)), names[i]);
    EXPECT_EQ(parse_outcome(names[i]), static_cast<Outcome>(i));
  }
  EXPECT_EQ(parse_outcome("OK"), std::nullopt);
}

TEST(Accuracy, NamesElementsAndBounds) {
  for (const Accuracy accuracy : kAccuracies) EXPECT_EQ(parse_accuracy(to_string(accuracy)), accuracy);
  EXPECT_EQ(parse_accuracy("fp64"), std::nullopt);
  EXPECT_EQ(element_of(Accuracy::tf32), Element::f32);
  EXPECT_EQ(element_of(Accuracy::bf16), Element::bf16);
  EXPECT_EQ(bytes_of(Element::f32), 4);
  EXPECT_EQ(bytes_of(Element::f16), 2);
  EXPECT_EQ(bound_in_words(Accuracy::fp32), "(8 + 2 sqrt(n)) u S + n 2^-149");
}

TEST(Accuracy, Fp32BoundAtLiteralPoints) {
  EXPECT_DOUBLE_EQ(fp32_element_bound(4, 1), 12 * 0x1p-24 + 4 * 0x1p-149);
  EXPECT_DOUBLE_EQ(fp32_element_bound(0, 1), 8 * 0x1p-24);  // bias only
  EXPECT_DOUBLE_EQ(fp32_element_bound(1, 0), 0x1p-149);
  EXPECT_NEAR(fp32_element_bound(384, 1), (8 + 2 * 19.595918) * 5.9604645e-8, 1e-13);
}

}  // namespace
}  // namespace tuner
