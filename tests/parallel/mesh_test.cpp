#include "purine/parallel/mesh.h"

#include <gtest/gtest.h>

#include "tests/parallel/devices.h"
#include "tests/support/error_text.h"

namespace purine::parallel {
namespace {

using test::devices;
using test::error_text;

std::vector<std::int64_t> sizes(const Mesh& mesh, int axis, std::int64_t units) {
  std::vector<std::int64_t> sizes;
  std::int64_t end = 0;
  for (int i = 0; i < mesh.axis_size(axis); ++i) {
    const Range range = mesh.part(axis, units, i);
    EXPECT_EQ(range.begin, end);
    end = range.end;
    sizes.push_back(range.size());
  }
  EXPECT_EQ(end, units);
  return sizes;
}

TEST(MeshTest, IsAGridWithNamedAxes) {
  const Mesh mesh("data=2,model=3", devices(6));
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.text(), "data=2,model=3");
  EXPECT_EQ(mesh.axis("model"), 1);
  EXPECT_EQ(mesh.coordinate(4, 0), 1);
  EXPECT_EQ(mesh.coordinate(4, 1), 1);
  EXPECT_EQ(mesh.group(4, 0), (std::vector<int>{1, 4}));
  EXPECT_EQ(mesh.group(4, 1), (std::vector<int>{3, 4, 5}));
}

TEST(MeshTest, OfDevicesHasOneAxis) {
  const Mesh mesh{"cpu:0", "1/emu:2"};
  EXPECT_EQ(mesh.text(), "data=2");
  EXPECT_EQ(mesh.locations()[1].text(), "1/emu:2");
}

TEST(MeshTest, GivesTheFirstOneMoreWhereItDoesNotComeOutEven) {
  const Mesh mesh(devices(2));
  EXPECT_EQ(sizes(mesh, 0, 5), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(sizes(mesh, 0, 1), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(sizes(Mesh(devices(4)), 0, 30), (std::vector<std::int64_t>{8, 8, 7, 7}));
}

TEST(MeshTest, DividesInShares) {
  Mesh mesh(devices(3));
  mesh.set_shares("data", {3, 1, 2});
  EXPECT_EQ(sizes(mesh, 0, 6), (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(sizes(mesh, 0, 12), (std::vector<std::int64_t>{6, 2, 4}));
  EXPECT_EQ(sizes(mesh, 0, 7), (std::vector<std::int64_t>{4, 1, 2}));
}

TEST(MeshTest, SaysWhatIsWrong) {
  EXPECT_EQ(error_text([] { Mesh("data=2,model=2", devices(3)); }),
            "[mesh] data=2,model=2 needs 4 locations, 3 are given");
  EXPECT_EQ(error_text([] { Mesh("data=1", devices(3)); }), "[mesh] data=1 needs 1 location, 3 are given");
  EXPECT_EQ(error_text([] { Mesh("data=2", devices(1)); }), "[mesh] data=2 needs 2 locations, 1 is given");
  EXPECT_EQ(error_text([] { Mesh("data", devices(3)); }),
            "[mesh] 'data' is no axis of a mesh; hint: write names and sizes: data=2,model=4");
  EXPECT_EQ(error_text([] { Mesh("a=1,a=3", devices(3)); }), "[mesh] the axis a is named twice");
  EXPECT_EQ(error_text([] { Mesh({"cpu:0", "cpu:0"}); }), "[mesh] 0/cpu:0 is named twice");
  EXPECT_EQ(error_text([] { Mesh(std::vector<Location>{}); }), "[mesh] has no locations");
  EXPECT_EQ(error_text([] { Mesh(devices(2)).axis("model"); }),
            "[mesh] data=2 has no axis model; hint: Mesh(locations, \"model\") has it alone");
  EXPECT_EQ(error_text([] {
              Mesh(devices(2)).set_shares("data", {1, 0});
            }),
            "[mesh] the shares of axis data are [1, 0]; 2 positive numbers are needed");
}

TEST(MeshTest, SizesPastAnyIntegerAreNoMeshOfFewLocations) {
  // In 32 bits the product is 4, in 64 bits that of the second is 0.
  EXPECT_EQ(error_text([] { Mesh("data=1073741825,model=4", devices(4)); }),
            "[mesh] data=1073741825,model=4 needs 4294967300 locations, 4 are given");
  EXPECT_EQ(
      error_text([] { Mesh("a=1073741824,b=1073741824,c=16", devices(4)); }),
      "[mesh] a=1073741824,b=1073741824,c=16 needs more than 1152921504606846976 locations, 4 are given");
}

}  // namespace
}  // namespace purine::parallel
