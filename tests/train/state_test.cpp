#include "purine/train/state.h"

#include <gtest/gtest.h>

#include "purine/nn/initializer.h"
#include "purine/session/runtime.h"
#include "tests/support/error_text.h"

namespace purine::train {
namespace {

using test::error_text;

constexpr std::string_view hint = "; hint: the checkpoint is another network's, or another optimizer's";

class StateTest : public testing::Test {
 protected:
  StateTest() {
    const TensorInfo info{{2, 3}, DType::f32};
    graph_.variable("b", info, nn::normal(0, 1)(info));
    graph_.variable("a", {{}, DType::f32}, nn::constant(2)({{}, DType::f32}));
    variables_.create(graph_, runtime_.cpu_kernels(), 1);
  }
  std::string error_with(std::vector<io::HostTensor> tensors, bool rest_is_ignored) {
    const std::vector<io::HostTensor> before = variables_.values();
    const std::string text = error_text([&] {
      set_values(runtime_, parallel::whole_variables(graph_), variables_, tensors, rest_is_ignored);
    });
    EXPECT_EQ(variables_.values(), before) << "nothing may have changed";
    return text;
  }

  Runtime runtime_{{.workers = 1}};
  Graph graph_;
  Variables variables_;
};

TEST_F(StateTest, ValuesGoOutAndIn) {
  std::vector<io::HostTensor> tensors = variables_.values();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].values<float>()[0], 2.0F);
  const float three = 3;
  tensors[0] = io::HostTensor::of<float>("a", {}, std::span(&three, 1));
  set_values(runtime_, parallel::whole_variables(graph_), variables_, tensors, false);
  EXPECT_EQ(variables_.values(), tensors);
}

TEST_F(StateTest, WhatDoesNotFitIsNamedAndNothingChanges) {
  std::vector<io::HostTensor> tensors = variables_.values();
  std::vector<io::HostTensor> missing = {tensors[0]};
  EXPECT_EQ(error_with(missing, false), "[checkpoint] b is not in the checkpoint" + std::string(hint));
  std::vector<io::HostTensor> reshaped = tensors;
  reshaped[1].info.shape = {3, 2};
  EXPECT_EQ(error_with(reshaped, false),
            "[checkpoint] b is f32[3, 2] in the checkpoint and f32[2, 3] in the network" + std::string(hint));
  std::vector<io::HostTensor> more = tensors;
  more.push_back(tensors[0]);
  more.back().name = "c";
  EXPECT_EQ(error_with(more, false),
            "[checkpoint] c is in the checkpoint, but not in the network" + std::string(hint));
  EXPECT_NO_THROW(set_values(runtime_, parallel::whole_variables(graph_), variables_, more, true));
}

}  // namespace
}  // namespace purine::train
