#include "purine/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "purine/io/file.h"
#include "tests/support/error_text.h"
#include "tests/support/plain_file.h"
#include "tests/support/temporary_folder.h"

namespace purine::io {
namespace {

using test::error_text;
using test::TemporaryFolder;
using test::write_plain_file;

const char* const golden = "tests/io/golden/every_dtype.safetensors";

template <typename T>
HostTensor tensor(std::string name, const Shape& shape, std::vector<T> values) {
  return HostTensor::of<T>(std::move(name), shape, values);
}

/// What make_safetensors.py put into the golden file, in another order than there.
std::vector<HostTensor> golden_tensors() {
  return {
      tensor<std::uint8_t>("image", {3}, {0, 7, 255}),
      tensor<std::int32_t>("labels", {2, 1}, {-1, std::numeric_limits<std::int32_t>::max()}),
      tensor<float>("net/conv/weight", {2, 3}, {-0.25F, -0.125F, 0.0F, 0.125F, 0.25F, 0.375F}),
      tensor<float>("net/conv/bias", {2}, {1.5F, -2.0F}),
      tensor<float>("na\xc3\xafve \"name\"\\", {1}, {3.0F}),
      tensor<float>("empty", {0, 4}, {}),
      tensor<double>("net/mean", {3}, {0.1, 1e300, -0.0}),
      tensor<std::int64_t>("step", {}, {-(std::int64_t{1} << 62)}),
  };
}

std::string file_of(std::string header, std::string_view data) {
  const auto length = std::bit_cast<std::array<char, 8>>(static_cast<std::uint64_t>(header.size()));
  return std::string(length.data(), length.size()) + header + std::string(data);
}

TEST(SafetensorsTest, ReadsWhatThePythonPackageWrote) {
  const Safetensors content = load_safetensors(golden);
  EXPECT_EQ(content.metadata, (Metadata{{"note", "made by the Python package\n"}}));
  ASSERT_EQ(content.tensors.size(), 8U);
  for (const HostTensor& expected : golden_tensors()) {
    const HostTensor* got = find_tensor(content.tensors, expected.name);
    ASSERT_NE(got, nullptr) << expected.name;
    EXPECT_EQ(*got, expected) << expected.name;
  }
}

TEST(SafetensorsTest, WritesTheBytesThatThePythonPackageWrites) {
  const TemporaryFolder folder;
  std::vector<HostTensor> tensors = golden_tensors();
  const Metadata metadata{{"note", "made by the Python package\n"}};
  save_safetensors(folder / "a", tensors, metadata);
  EXPECT_EQ(read_file(folder / "a"), read_file(golden));
  std::ranges::reverse(tensors);
  save_safetensors(folder / "b", tensors, metadata);
  EXPECT_EQ(read_file(folder / "b"), read_file(golden));
}

TEST(SafetensorsTest, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  const Metadata metadata{{"z", "\"quoted\"\n"}, {"a", ""}};
  const std::vector<HostTensor> tensors{tensor<double>("x", {2}, {1.0, -0.0}),
                                        tensor<float>("y", {}, {2.0F})};
  save_safetensors(folder / "a", tensors, metadata);
  const Safetensors content = load_safetensors(folder / "a");
  EXPECT_EQ(content.tensors, tensors);
  EXPECT_EQ(content.metadata, metadata);

  const SafetensorsHeader header = load_safetensors_header(folder / "a");
  EXPECT_EQ(header.metadata, metadata);
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[1].name, "y");
  EXPECT_EQ(header.entries[1].info, (TensorInfo{{}, DType::f32}));
  EXPECT_EQ(header.entries[1].offset, 16U);
}

TEST(SafetensorsTest, AFileMayHoldNothing) {
  const TemporaryFolder folder;
  save_safetensors(folder / "a", {});
  EXPECT_EQ(read_file(folder / "a"), file_of("{}      ", ""));
  EXPECT_TRUE(load_safetensors(folder / "a").tensors.empty());
}

TEST(SafetensorsTest, ValuesAreReadAsTheirOwnType) {
  const HostTensor x = tensor<float>("net/x", {2}, {1.0F, 2.0F});
  EXPECT_EQ(x.values<float>()[1], 2.0F);
  EXPECT_EQ(error_text([&] { x.values<double>(); }), "[tensor] net/x: holds f32[2] but is read as f64");
  EXPECT_EQ(error_text([&] {
              tensor<float>("y", {2, 2}, {1.0F});
            }),
            "[tensor] y: shape [2, 2] has 4 elements, but 1 values are given");
}

TEST(SafetensorsTest, RefusesToWriteWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  const std::string start = "[safetensors] " + path + ": ";
  const HostTensor x = tensor<float>("x", {1}, {1.0F});
  const auto error_for = [&](std::vector<HostTensor> tensors) {
    return error_text([&] { save_safetensors(path, tensors); });
  };
  EXPECT_EQ(error_for({x, x}), start + "two tensors have the name `x`");
  EXPECT_EQ(error_for({x, tensor<std::uint8_t>("x", {1}, {1})}), start + "two tensors have the name `x`");
  EXPECT_EQ(error_for({tensor<float>("__metadata__", {1}, {1.0F})}),
            start + "no tensor can have the name __metadata__");
  EXPECT_EQ(error_for({HostTensor{"x", {{2}, DType::f32}, {}}}),
            start + "tensor `x` is f32[2], 8 bytes, but its data has 0");
  EXPECT_EQ(error_for({tensor<float>("\xff", {1}, {1.0F})}),
            start + "a name or metadata text is not UTF-8: \"\\ufffd\"");
  EXPECT_FALSE(std::filesystem::exists(path));
}

struct WrongFile {
  std::string content;
  std::string message;
};

TEST(SafetensorsTest, SaysWhatIsWrongWithAFile) {
  const auto one = [](std::string_view fields) { return "{\"x\":{" + std::string(fields) + "}}"; };
  const std::string four = "1234";
  const std::string x = "\"dtype\":\"F32\",\"shape\":[1],";
  const std::vector<WrongFile> wrong{
      {"", "the file has 0 bytes, too few for a header"},
      {"1234567", "the file has 7 bytes, too few for a header"},
      {"PK\3\4aaaabbbb",
       "the header would be 7016996763726990160 bytes long; 100000000 is the format's limit; hint: this is "
       "probably not a safetensors file"},
      {file_of("{}      ", "").substr(0, 12),
       "the header is 8 bytes long, but the file ends after 4 of them; hint: the file is cut short, or is "
       "not "
       "a safetensors file"},
      {file_of("", ""), "the header is not a JSON object"},
      {file_of("[]", ""), "the header is not a JSON object"},
      {file_of("{}\t", ""), "the header is not a JSON object"},
      {file_of(one("\"dtype\":{\"a\":{}}"), ""), "the header is nested too deeply"},
      {file_of("{\"a\":[[[[[[]]]]]]}", ""), "the header is nested too deeply"},
      {file_of("{\"a\":{},\"a\":{}}", ""), "the header has the name `a` twice"},
      {file_of(one(x + "\"shape\":[1],\"data_offsets\":[0,4]"), four),
       "the header has the name `shape` twice"},
      {file_of("{\"x\":1}", ""), "tensor `x` is described by something else than an object"},
      {file_of(one("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), four), "tensor `x` has no shape"},
      {file_of(one("\"shape\":[1],\"data_offsets\":[0,4]"), four), "tensor `x` has no dtype"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":[1]"), four), "tensor `x` has no data_offsets"},
      {file_of(one(x + "\"more\":1,\"data_offsets\":[0,4]"), four),
       "tensor `x` has the unknown field `more`"},
      {file_of(one("\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]"), four),
       "tensor `x` has a dtype that is not a text"},
      {file_of(one("\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]"), four),
       "tensor `x` has the dtype BF16; hint: purine reads F32, F64, I32, I64 and U8; convert the file with "
       "the "
       "Python package"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]"), four),
       "tensor `x` has a shape that is not a list"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), four),
       "tensor `x` has a shape with an extent that is not a natural number"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]"), four),
       "tensor `x` has a shape with an extent that is not a natural number"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), four),
       "tensor `x` has 7 dimensions; at most 6 are possible"},
      {file_of(one("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), four),
       "tensor `x` has a shape with too many elements"},
      {file_of(one(x + "\"data_offsets\":[4]"), four),
       "tensor `x` has data_offsets that are not two natural numbers"},
      {file_of(one(x + "\"data_offsets\":[0,-4]"), four),
       "tensor `x` has data_offsets that are not two natural numbers"},
      {file_of(one(x + "\"data_offsets\":[4,0]"), four), "tensor `x` ends at byte 0, before it begins at 4"},
      {file_of(one(x + "\"data_offsets\":[0,5]"), four),
       "tensor `x` is f32[1], 4 bytes, but its data_offsets hold 5"},
      {file_of(one(x + "\"data_offsets\":[0,4]"), "123"),
       "tensor `x` ends at byte 4, but the file has 3 bytes of data; hint: the file is cut short"},
      {file_of(one(x + "\"data_offsets\":[0,4]"), "12345"),
       "the tensors end at byte 4, but the file has 5 bytes of data"},
      {file_of(one(x + "\"data_offsets\":[4,8]"), "12345678"),
       "tensor `x` begins at byte 4, after a gap; the one before it ends at 0"},
      {file_of("{\"x\":{" + x + "\"data_offsets\":[0,4]},\"y\":{" + x + "\"data_offsets\":[2,6]}}", "123456"),
       "tensor `y` begins at byte 2, inside the one before it, which ends at 4"},
      {file_of("{\"__metadata__\":[]}", ""), "__metadata__ is not an object"},
      {file_of("{\"__metadata__\":{\"a\":1}}", ""), "the metadata `a` is not a text"},
  };
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (const WrongFile& file : wrong) {
    write_plain_file(path, file.content);
    EXPECT_EQ(error_text([&] { load_safetensors(path); }), "[safetensors] " + path + ": " + file.message);
  }
  write_plain_file(path, file_of("{\"x\"}", ""));
  EXPECT_EQ(error_text([&] { load_safetensors(path); }),
            "[safetensors] " + path + ": the header is not JSON (line 1, column 5)");
}

TEST(SafetensorsTest, EveryCutIsRefused) {
  const TemporaryFolder folder;
  const std::string whole = read_file(golden);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_plain_file(folder / "a", whole.substr(0, length));
    EXPECT_NE(error_text([&] { load_safetensors(folder / "a"); }), "") << length;
  }
}

TEST(SafetensorsTest, ChangedBytesGiveAnErrorOrAnotherFile) {
  // Without a checksum most changes of the data cannot be seen; none may do more than that.
  const TemporaryFolder folder;
  const std::string whole = read_file(golden);
  const Safetensors original = load_safetensors(golden);
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      write_plain_file(folder / "a", changed);
      try {
        const Safetensors content = load_safetensors(folder / "a");
        EXPECT_FALSE(content.tensors == original.tensors && content.metadata == original.metadata) << i;
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.path(), (folder / "a").string());
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace purine::io
