#include "purine/core/location.h"

#include <gtest/gtest.h>

#include "purine/core/error.h"

namespace purine {
namespace {

TEST(LocationTest, ReadsWhatItWrites) {
  for (const char* text : {"0/cpu:0", "2/cuda:1", "13/emu:7", "1/sim:1023"}) {
    EXPECT_EQ(Location::parse(text).text(), text);
  }
  EXPECT_EQ(Location::parse("emu:3"), (Location{0, DeviceKind::emu, 3}));
}

TEST(LocationTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "cpu", "cpu:", "cpu:-1", "gpu:0", "x/cpu:0", "1/cpu:0x", "/cpu:0", "-1/cpu:0"}) {
    try {
      Location::parse(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("is not a location"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace purine
